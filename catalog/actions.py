"""The verbs of the catalog: the only code that changes classes and images. Every change touches the Pool."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.actions import record
from accounts.actor import Actor
from catalog import policy, queries
from catalog.discovery import Proposal
from catalog.models import GpuClass, Image, Pool
from catalog.policy import Neighbour
from cluster.models import Cluster
from portal.due import touch
from portal.errors import get_or_refuse, refuse, refuse_if

LifeCycle = GpuClass.LifeCycle
EDITABLE = (
    "name", "summary", "vendor", "product", "partition", "sharing", "replicas", "interface", "resource", "device_class",
    "device_selector", "interconnect", "node_labels", "tolerations", "memory_mib", "units_per_workload", "cpu_per_unit",
    "memory_gib_per_unit", "price_per_unit_hour", "weight", "promise_limit", "borrowing_limit", "terms_version",
)  # fmt: skip
# What a class is: pods that run were placed and charged by it.
IDENTITY = ("partition", "sharing", "replicas", "interface", "resource", "device_class")


@transaction.atomic
def create_class(*, slug: str, cluster: Cluster | None = None, by: Actor, **values: Any) -> GpuClass:
    """A draft: seen by operators only, nothing in the cluster yet.

    Raises Refused: not_allowed (403), invalid (422), and those of the constraints (409).
    """
    refuse_if(policy.may_edit(by))
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
    """Along draft → active → retiring → retired. Raises Refused: not_allowed (403), not_found (404), bad_step (409),
    selector_overlaps, no_labels, too_many_resources (422).
    """
    refuse_if(policy.may_edit(by))
    gpu_class = _locked(class_id)
    before = gpu_class.life_cycle
    refuse_if(policy.may_move(gpu_class.slug, before=before, to=to))
    gpu_class.life_cycle = LifeCycle(to)
    if to == LifeCycle.ACTIVE:
        _refuse_confusion(gpu_class)
    gpu_class.save(update_fields=["life_cycle"])
    record(by, "class.moved", gpu_class, before={"life_cycle": before}, after={"life_cycle": to})
    _touch_pool(gpu_class.cluster)
    return gpu_class


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
def put_image(*, name: str, by: Actor, **values: Any) -> Image:
    """Create or change the image of that name. Raises Refused: not_allowed (403), invalid (422)."""
    refuse_if(policy.may_edit(by))
    image = Image.objects.select_for_update().filter(name=name).first() or Image(name=name)
    for field, value in values.items():
        setattr(image, field, value)
    _validated(image)
    image.save()
    record(by, "image.put", image, after=values)
    return image


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
    """Shapes of fields; what the constraints say is said by the database, with their own sentences."""
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise refuse("invalid", " ".join(messages), field=field) from error


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
