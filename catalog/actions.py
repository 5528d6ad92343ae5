"""The verbs of the catalog: the only code that changes classes and images. Every change touches the Pool."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.actions import deliver, record
from accounts.actor import Actor
from accounts.models import User
from catalog import images, policy, queries, validity
from catalog.discovery import Proposal
from catalog.models import DismissedProposal, GpuClass, Image, Pool
from catalog.policy import Neighbour
from cluster.models import Cluster
from portal.due import touch
from portal.errors import Refused, get_or_refuse, refuse, refuse_if

LifeCycle = GpuClass.LifeCycle
EDITABLE = (
    "name", "summary", "vendor", "product", "partition", "sharing", "replicas", "interface", "resource", "device_class",
    "device_selector", "interconnect", "node_labels", "tolerations", "memory_mib", "units_per_workload", "cpu_per_unit",
    "memory_gib_per_unit", "price_per_unit_hour", "weight", "promise_limit", "borrowing_limit", "terms_version",
    "terms", "kinds", "eligibility", "visibility", "starter", "interconnect_note", "interconnect_on",
    "run_hours_limit", "idle_stop_minutes", "production_limit",
)  # fmt: skip
_NOT_HELD: dict[str, Any] = {"held_since": None, "held_until": None, "held_reason": ""}
_STAYS: dict[str, Any] = {"successor": None, "retiring_message": "", "runs_until": None}
IMAGE_FIELDS = (
    "version", "reference", "digest", "contents", "vendor", "min_cuda", "deprecated_since", "successor", "kind",
    "position",
)  # fmt: skip
# What a class is: pods that run were placed and charged by it.
IDENTITY = ("partition", "sharing", "replicas", "interface", "resource", "device_class")


@transaction.atomic
def create_class(*, slug: str, cluster: Cluster | None = None, by: Actor, **values: Any) -> GpuClass:
    """A draft: seen by operators only, nothing in the cluster yet.

    Raises Refused: not_allowed (403), invalid, reserved (422), and those of the constraints (409).
    """
    refuse_if(policy.may_edit(by))
    refuse_if(policy.slug_refusal(slug))
    _known_fields(values)
    gpu_class = GpuClass(cluster=cluster or queries.cluster(), slug=slug, **values)
    _validated(gpu_class)
    gpu_class.save(force_insert=True)
    record(by, "class.created", gpu_class, after={"slug": slug, **values})
    return gpu_class


@transaction.atomic
def edit_class(class_id: int, *, by: Actor, **values: Any) -> GpuClass:
    """Raises Refused: not_allowed (403), not_found (404), in_use (409), invalid, selector_overlaps (422)."""
    refuse_if(policy.may_edit(by))
    _known_fields(values)
    gpu_class = _locked(class_id)
    changed = {name: value for name, value in values.items() if getattr(gpu_class, name) != value}
    if not changed:
        return gpu_class
    before = {name: getattr(gpu_class, name) for name in changed}
    if gpu_class.life_cycle != LifeCycle.DRAFT and (fixed := [name for name in IDENTITY if name in changed]):
        text = f"{gpu_class.slug} is open: its {fixed[0]} says what people were granted. Make a new class instead."
        raise refuse("in_use", text, field=fixed[0], status=409)
    for name, value in changed.items():
        setattr(gpu_class, name, value)
    _validated(gpu_class)
    if gpu_class.life_cycle != LifeCycle.DRAFT:
        _refuse_confusion(gpu_class)
    gpu_class.save(update_fields=list(changed))
    record(by, "class.edited", gpu_class, before=before, after=changed)
    _touch_pool(gpu_class.cluster)
    return gpu_class


@transaction.atomic
def move_class(class_id: int, *, to: str, by: Actor) -> GpuClass:
    """Along draft → active → retiring → retired. Raises Refused: not_allowed (403), not_found (404), bad_step,
    orphans_grants, orphans_runs (409), selector_overlaps, no_labels, too_many_resources (422).
    """
    if to == LifeCycle.RETIRING:
        return retire_class(class_id, successor="", message="", runs_until=None, by=by)
    refuse_if(policy.may_edit(by))
    gpu_class = _locked(class_id)
    refuse_if(policy.may_move(gpu_class.slug, before=gpu_class.life_cycle, to=to))
    if to == LifeCycle.RETIRED:
        refuse_if(policy.close_refusal(gpu_class.name, queries.claims(gpu_class)))
        return _change(gpu_class, "class.moved", by=by, life_cycle=LifeCycle.RETIRED, **_NOT_HELD)
    if to == LifeCycle.ACTIVE:
        _refuse_confusion(gpu_class)
    return _change(gpu_class, "class.moved", by=by, life_cycle=LifeCycle(to), **_STAYS)


@transaction.atomic
def retire_class(class_id: int, *, successor: str, message: str, runs_until: datetime | None, by: Actor) -> GpuClass:
    """No new requests and starts; what runs goes on until `runs_until` (None: without end). Again: the new words.

    `successor` is a slug or "". Owners of the teams that hold units are told. Raises Refused: not_allowed (403),
    not_found (404), bad_step (409), bad_successor, bad_message, bad_period (422).
    """
    refuse_if(policy.may_edit(by))
    gpu_class = _locked(class_id)
    if gpu_class.life_cycle != LifeCycle.RETIRING:
        refuse_if(policy.may_move(gpu_class.slug, before=gpu_class.life_cycle, to=LifeCycle.RETIRING))
    next_one = GpuClass.objects.filter(cluster=gpu_class.cluster, slug=successor).first() if successor else None
    named = policy.Successor(successor, next_one.life_cycle if next_one else "") if successor else None
    message = " ".join(message.split())
    refuse_if(
        policy.retire_refusal(
            gpu_class.slug, successor=named, message=message, runs_until=runs_until, now=timezone.now()
        )
    )
    words = {"successor": next_one, "retiring_message": message, "runs_until": runs_until}
    return _change(
        gpu_class, "class.moved", by=by, tell=queries.owners(gpu_class), life_cycle=LifeCycle.RETIRING, **words
    )


@transaction.atomic
def hold_class(class_id: int, *, reason: str, until: datetime | None, by: Actor) -> GpuClass:
    """Nothing new is admitted to it, what runs goes on; of a held class: other words. `until` is an expectation, shown
    to all who wait. Raises Refused: not_allowed (403), not_found (404), not_open (409), reason_missing, bad_period.
    """
    refuse_if(policy.may_edit(by))
    gpu_class = _locked(class_id)
    now, reason = timezone.now(), " ".join(reason.split()).rstrip(".")
    refuse_if(
        policy.hold_refusal(
            name=gpu_class.name,
            life_cycle=gpu_class.life_cycle,
            reason=reason,
            until=until,
            now=now,
            is_storage=gpu_class.is_storage,
        )
    )
    since = gpu_class.held_since or now
    return _change(gpu_class, "class.held", by=by, held_since=since, held_until=until, held_reason=reason)


@transaction.atomic
def release_class(class_id: int, *, by: Actor) -> GpuClass:
    """Raises Refused: not_allowed (403), not_found (404), not_held (409)."""
    refuse_if(policy.may_edit(by))
    gpu_class = _locked(class_id)
    refuse_if(policy.release_refusal(name=gpu_class.name, is_held=policy.is_held(gpu_class)))
    return _change(gpu_class, "class.released", by=by, **_NOT_HELD)


def activate(class_id: int, *, by: Actor) -> GpuClass:
    return move_class(class_id, to=LifeCycle.ACTIVE, by=by)


@transaction.atomic
def accept_proposals(proposals: list[Proposal], *, by: Actor, cluster: Cluster | None = None) -> list[GpuClass]:
    """Create and open a class for each proposal whose slug is new; what exists is left as staff made it."""
    cluster = cluster or queries.cluster()
    known = set(GpuClass.objects.filter(cluster=cluster).values_list("slug", flat=True))
    made = [
        create_class(slug=proposal.slug, cluster=cluster, by=by, **values_of(proposal))
        for proposal in proposals
        if proposal.slug not in known
    ]
    return [activate(gpu_class.pk, by=by) for gpu_class in made]


@transaction.atomic
def dismiss_proposal(slug: str, *, reason: str, by: Actor, cluster: Cluster | None = None) -> DismissedProposal:
    """Capacity of this name is no longer proposed. Raises Refused: not_allowed (403), reason_missing (422)."""
    refuse_if(policy.may_edit(by))
    reason = " ".join(reason.split())
    refuse_if(policy.dismiss_refusal(reason=reason))
    row, _made = DismissedProposal.objects.update_or_create(
        cluster=cluster or queries.cluster(), slug=slug[:40], defaults={"reason": reason}
    )
    record(by, "proposal.dismissed", row, after={"reason": reason})
    return row


@transaction.atomic
def restore_proposal(slug: str, *, by: Actor, cluster: Cluster | None = None) -> None:
    """It is proposed again. Raises Refused: not_allowed (403), not_found (404)."""
    refuse_if(policy.may_edit(by))
    rows = DismissedProposal.objects.select_for_update().filter(cluster=cluster or queries.cluster())
    row = get_or_refuse(rows, slug=slug)
    record(by, "proposal.restored", row, before={"reason": row.reason})
    row.delete()


@transaction.atomic
def put_image(*, name: str, by: Actor, **values: Any) -> Image:
    """Create or change the image of that name; the same again changes nothing. `successor` is an Image or None.

    Raises Refused: not_allowed (403), unknown_field, bad_successor, invalid (422).
    """
    refuse_if(policy.may_edit(by))
    if unknown := sorted(set(values) - set(IMAGE_FIELDS)):
        raise refuse("unknown_field", f"An image has no field '{unknown[0]}' to set.", field=unknown[0])
    known = Image.objects.select_for_update().filter(name=name).first()
    image = known or Image(name=name)
    before = {field: getattr(known, field) for field in values} if known else {}
    changed = {field: value for field, value in values.items() if known is None or before[field] != value}
    if known and not changed:
        return known
    for field, value in changed.items():
        setattr(image, field, value)
    _validated(image)
    _refuse_misfit(image)
    image.save()
    record(by, "image.put", image, before=_named({f: before[f] for f in changed if known}), after=_named(changed))
    return image


def _refuse_misfit(image: Image) -> None:
    if problem := images.shape_problem(image.reference, image.digest, image.vendor, image.min_cuda):
        field, text = problem
        raise refuse("invalid", text, field=field)
    successor = image.successor
    if successor and successor.name == image.name:
        raise refuse(
            "bad_successor", "An image cannot replace itself; leave it empty, or name another.", field="successor"
        )
    if successor and successor.kind != image.kind:
        text = f"{successor.name} is for a {successor.kind}; what replaces {image.name} is for a {image.kind} too."
        raise refuse("bad_successor", text, field="successor")


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {field: value.name if isinstance(value, Image) else value for field, value in values.items()}


@transaction.atomic
def remove_image(image_id: int, *, by: Actor) -> None:
    """It is no longer offered; runs keep the reference that they were launched with."""
    refuse_if(policy.may_edit(by))
    image = get_or_refuse(Image.objects.select_for_update(), pk=image_id)
    record(by, "image.removed", image, before={"reference": image.reference})
    image.delete()


@transaction.atomic
def settle_cluster(*, name: str, notebooks_domain: str, cohort: str, by: Actor) -> Cluster:
    """The row of the cluster that this installation works on, made or changed; with its pool."""
    refuse_if(policy.may_edit(by))
    values = {"notebooks_domain": notebooks_domain, "cohort": cohort}
    cluster, _created = Cluster.objects.update_or_create(name=name, defaults=values)
    record(by, "cluster.settled", cluster, after=values)
    _touch_pool(cluster)
    return cluster


@transaction.atomic
def ensure_pool(cluster: Cluster) -> Pool:
    """The pool's row, made with the first class that is opened."""
    return Pool.objects.get_or_create(cluster=cluster)[0]


def _change(gpu_class: GpuClass, verb: str, *, by: Actor, tell: Collection[User] = (), **values: Any) -> GpuClass:
    """One step of a class's life: the fields that differ, its Event, a letter, work for the pool."""
    changed = {name: value for name, value in values.items() if getattr(gpu_class, name) != value}
    before = {name: _told(getattr(gpu_class, name)) for name in changed}
    for name, value in changed.items():
        setattr(gpu_class, name, value)
    gpu_class.save(update_fields=list(changed))
    after = {name: _told(value) for name, value in changed.items()}
    event = record(by, verb, gpu_class, before=before, after=after)
    if tell:
        deliver(event, tell, subject=f"{gpu_class.name} is being retired", body=_farewell(gpu_class))
    _touch_pool(gpu_class.cluster)
    return gpu_class


def _told(value: Any) -> Any:
    return value.slug if isinstance(value, GpuClass) else value


def _farewell(gpu_class: GpuClass) -> str:
    return f"{queries.retirement(gpu_class)}\n\n{settings.PORTAL_URL}/catalog/{gpu_class.slug}"


def _touch_pool(cluster: Cluster) -> None:
    touch(Pool, ensure_pool(cluster).pk)


def _locked(class_id: int) -> GpuClass:
    return get_or_refuse(
        GpuClass.objects.select_related("cluster").select_for_update(of=("self",), no_key=True), pk=class_id
    )


def _known_fields(values: dict[str, Any]) -> None:
    if unknown := sorted(set(values) - set(EDITABLE)):
        raise refuse("unknown_field", f"A class has no field '{unknown[0]}' to set.", field=unknown[0])


def _validated(row: GpuClass | Image) -> None:
    """The first thing that is wrong, beside its field; the constraints of the table are behind it."""
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise refuse("invalid", " ".join(messages), field=field) from error
    if isinstance(row, GpuClass):
        for refusal in validity.problems(vars(row)):
            raise Refused(refusal)


def _refuse_confusion(gpu_class: GpuClass) -> None:
    others = [
        _neighbour(other)
        for other in GpuClass.objects.filter(cluster=gpu_class.cluster, life_cycle__in=queries.OPEN)
        if other.pk != gpu_class.pk
    ]
    has_topology = gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN
    refuse_if(policy.selector_refusal(_neighbour(gpu_class), others, has_topology=has_topology))
    refuse_if(policy.queue_refusal(_neighbour(gpu_class), others))


def _neighbour(gpu_class: GpuClass) -> Neighbour:
    return Neighbour(gpu_class.slug, gpu_class.resource, gpu_class.node_labels)


def values_of(proposal: Proposal) -> dict[str, Any]:
    same = {name: getattr(proposal, name) for name in EDITABLE if hasattr(proposal, name)}
    return {
        **same,
        "node_labels": dict(proposal.node_labels),
        "tolerations": [dict(toleration) for toleration in proposal.tolerations],
        "weight": round(Decimal(proposal.weight.numerator) / Decimal(proposal.weight.denominator), 4),
    }
