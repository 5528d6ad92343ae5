"""The only code that changes classes. Every change also schedules the pool, so that the cluster follows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import User
from catalog.classes import commitments, policy, topology
from catalog.classes import queries as class_queries
from catalog.classes.policy import PeerClass
from catalog.classes.validation import cel, field_checks
from catalog.discovery.queries import device_capacities
from catalog.models import ClassPrice, GpuClass, Image, NodeUnits, Pool
from catalog.trials.queries import trials_of
from cluster.models import Cluster
from cluster.reads import queries
from portal.core.due import touch
from portal.core.errors import Refusal, Refused, get_or_refuse, refuse, refuse_if

LifeCycle = GpuClass.LifeCycle
EDITABLE_FIELDS = (
    "name", "summary", "vendor", "product", "partition", "sharing", "replicas", "interface", "resource", "device_class",
    "device_selector", "interconnect", "node_labels", "tolerations", "memory_mib", "units_per_workload", "cpu_per_unit",
    "memory_gib_per_unit", "price_per_unit_hour", "weight", "promise_limit", "borrowing_limit", "terms_version",
    "terms", "kinds", "eligibility", "visibility", "starter", "interconnect_note", "interconnect_on",
    "run_hours_limit", "idle_stop_minutes", "idle_action", "idle_minutes", "production_limit", "log_retention_days",
    "damping_minutes", "max_units", "node_minutes", "topology",
)  # fmt: skip
_NOT_HELD: dict[str, Any] = {"held_since": None, "held_until": None, "held_reason": ""}
_STAYS: dict[str, Any] = {"successor": None, "retiring_message": "", "runs_until": None}
# The identity of a class: running pods were placed and charged by these fields.
IDENTITY_FIELDS = ("partition", "sharing", "replicas", "interface", "resource", "device_class")
# They select the nodes and devices of a class.
SELECTING_FIELDS = ("node_labels", "tolerations", "device_selector")


@transaction.atomic
def create_class(*, slug: str, cluster: Cluster | None = None, by: Actor, **values: Any) -> GpuClass:
    """Creates a draft: visible to operators only, nothing in the cluster yet.

    Raises Refused: not_allowed (403), invalid, reserved (422), and those of the constraints (409).
    """
    refuse_if(policy.may_edit(by))
    refuse_if(policy.slug_refusal(slug))
    _known_fields(values)
    gpu_class = GpuClass(cluster=cluster or queries.current_cluster(), slug=slug, **values)
    refuse_invalid(gpu_class)
    _refuse_selector(gpu_class)
    gpu_class.save(force_insert=True)
    _keep_price(gpu_class, by)
    record(by, "class.created", gpu_class, after={"slug": slug, **values})
    return gpu_class


@transaction.atomic
def edit_class(class_id: int, *, by: Actor, **values: Any) -> GpuClass:
    """Raises Refused: not_allowed (403), not_found (404), in_use (409), invalid, selector_overlaps,
    bad_topology (422).
    """
    refuse_if(policy.may_edit(by))
    _known_fields(values)
    gpu_class = _locked(class_id)
    changed = {name: value for name, value in values.items() if getattr(gpu_class, name) != value}
    if not changed:
        return gpu_class
    before = {name: getattr(gpu_class, name) for name in changed}
    flavor = class_queries.flavor_name(gpu_class)
    # What is wrong with an open class since before a rule existed does not keep it from being edited.
    known = field_checks.class_problems(vars(gpu_class))
    if gpu_class.life_cycle != LifeCycle.DRAFT and (fixed := [name for name in IDENTITY_FIELDS if name in changed]):
        text = (
            f"{gpu_class.slug} is open: its {fixed[0]} cannot change, because it defines what teams were granted. "
            "Create a new class."
        )
        raise refuse("in_use", text, field=fixed[0], status=409)
    for name, value in changed.items():
        setattr(gpu_class, name, value)
    refuse_invalid(gpu_class, known=known)
    if gpu_class.life_cycle != LifeCycle.DRAFT and {"topology", "node_labels"} & changed.keys():
        refuse_if(topology.refusal(gpu_class))
    if "topology" in changed and gpu_class.life_cycle != LifeCycle.DRAFT:
        refuse_if(topology.change_refusal(gpu_class, flavor=flavor))
    if "device_selector" in changed:
        _refuse_selector(gpu_class)
    if gpu_class.life_cycle != LifeCycle.DRAFT:
        _refuse_confusion(gpu_class)
    gpu_class.save(update_fields=list(changed))
    if any(name in changed for name in SELECTING_FIELDS):
        # Nodes that it no longer selects have not lost units for a moment: the quota follows at once.
        NodeUnits.objects.filter(gpu_class=gpu_class).delete()
    if "price_per_unit_hour" in changed:
        _keep_price(gpu_class, by)
    record(by, "class.edited", gpu_class, before=before, after=changed)
    touch_pool(gpu_class.cluster)
    return gpu_class


@transaction.atomic
def move_class(class_id: int, *, to: str, by: Actor) -> GpuClass:
    """Moves a class along draft → active → retiring → retired. Raises Refused: not_allowed (403), not_found (404),
    bad_step, orphans_grants, orphans_runs (409), selector_overlaps, no_labels, too_many_resources, bad_cel,
    not_counted, bad_topology (422).
    """
    if to == LifeCycle.RETIRING:
        return retire_class(class_id, successor="", message="", runs_until=None, by=by)
    refuse_if(policy.may_edit(by))
    gpu_class = _locked(class_id)
    refuse_if(policy.may_move(gpu_class.slug, before=gpu_class.life_cycle, to=to))
    if to == LifeCycle.RETIRED:
        refuse_if(policy.close_refusal(gpu_class.name, commitments.commitments_of(gpu_class)))
        return _change(gpu_class, "class.moved", by=by, life_cycle=LifeCycle.RETIRED, **_NOT_HELD)
    if to == LifeCycle.ACTIVE:
        if gpu_class.life_cycle == LifeCycle.DRAFT:
            refuse_invalid(gpu_class)
        _refuse_uncounted(gpu_class)
        refuse_if(topology.refusal(gpu_class))
        _refuse_confusion(gpu_class)
    return _change(gpu_class, "class.moved", by=by, life_cycle=LifeCycle(to), **_STAYS)


@transaction.atomic
def retire_class(class_id: int, *, successor: str, message: str, runs_until: datetime | None, by: Actor) -> GpuClass:
    """Stops new requests and starts; runs continue until `runs_until` (None: no end). A second call sets the new
    values.

    `successor` is a slug or "". Owners of the teams with quota are notified. Raises Refused: not_allowed (403),
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
        gpu_class,
        "class.moved",
        by=by,
        tell=commitments.holder_owners(gpu_class),
        life_cycle=LifeCycle.RETIRING,
        **words,
    )


@transaction.atomic
def hold_class(class_id: int, *, reason: str, until: datetime | None, by: Actor) -> GpuClass:
    """Pauses scheduling: nothing new is admitted, runs continue. A second call sets the new values. `until` is an
    expectation, shown to users with queued workloads. Raises Refused: not_allowed (403), not_found (404), not_open
    (409), reason_missing, bad_period.
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
    """Resumes scheduling. Raises Refused: not_allowed (403), not_found (404), not_held (409)."""
    refuse_if(policy.may_edit(by))
    gpu_class = _locked(class_id)
    refuse_if(policy.release_refusal(name=gpu_class.name, is_held=policy.is_held(gpu_class)))
    return _change(gpu_class, "class.released", by=by, **_NOT_HELD)


def activate(class_id: int, *, by: Actor) -> GpuClass:
    return move_class(class_id, to=LifeCycle.ACTIVE, by=by)


@transaction.atomic
def ensure_pool(cluster: Cluster) -> Pool:
    """Returns the pool's row; creates it with the first class that is opened."""
    return Pool.objects.get_or_create(cluster=cluster)[0]


def _change(gpu_class: GpuClass, verb: str, *, by: Actor, tell: Collection[User] = (), **values: Any) -> GpuClass:
    """One step of the life cycle: writes the changed fields, an Event and a notification; schedules the pool."""
    changed = {name: value for name, value in values.items() if getattr(gpu_class, name) != value}
    before = {name: _told(getattr(gpu_class, name)) for name in changed}
    for name, value in changed.items():
        setattr(gpu_class, name, value)
    gpu_class.save(update_fields=list(changed))
    after = {name: _told(value) for name, value in changed.items()}
    event = record(by, verb, gpu_class, before=before, after=after)
    if tell:
        deliver(event, tell, subject=f"{gpu_class.name} is being retired", body=_farewell(gpu_class))
    touch_pool(gpu_class.cluster)
    return gpu_class


def _told(value: Any) -> Any:
    return value.slug if isinstance(value, GpuClass) else value


def _farewell(gpu_class: GpuClass) -> str:
    return f"{class_queries.retirement_notice(gpu_class)}\n\n{settings.PORTAL_URL}/catalog/{gpu_class.slug}"


def touch_pool(cluster: Cluster) -> None:
    touch(Pool, ensure_pool(cluster).pk)


def _keep_price(gpu_class: GpuClass, by: Actor) -> None:
    """From now on; what was launched before keeps the price that its run froze."""
    ClassPrice.objects.create(gpu_class=gpu_class, price_per_unit_hour=gpu_class.price_per_unit_hour, by=by.user)


def _locked(class_id: int) -> GpuClass:
    return get_or_refuse(
        GpuClass.objects.select_related("cluster").select_for_update(of=("self",), no_key=True), pk=class_id
    )


def _known_fields(values: dict[str, Any]) -> None:
    if unknown := sorted(set(values) - set(EDITABLE_FIELDS)):
        raise refuse("unknown_field", f"A class has no editable field '{unknown[0]}'.", field=unknown[0])


def refuse_invalid(row: GpuClass | Image, *, known: Collection[Refusal] = ()) -> None:
    """Raises Refused for the first invalid value that is not `known`, with its field. The table's constraints check
    the same, except for what follows from the hardware.
    """
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise refuse("invalid", " ".join(messages), field=field) from error
    if isinstance(row, GpuClass):
        for refusal in field_checks.class_problems(vars(row)):
            if refusal not in known:
                raise Refused(refusal)


def _refuse_confusion(gpu_class: GpuClass) -> None:
    others = [
        _neighbour(other)
        for other in GpuClass.objects.filter(cluster=gpu_class.cluster, life_cycle__in=class_queries.OPEN_STATES)
        if other.pk != gpu_class.pk
    ]
    has_topology = gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN
    refuse_if(policy.selector_refusal(_neighbour(gpu_class), others, has_topology=has_topology))
    refuse_if(policy.queue_refusal(_neighbour(gpu_class), others))


def _refuse_selector(gpu_class: GpuClass) -> None:
    """By the devices of the cluster."""
    if gpu_class.interface != GpuClass.Interface.DRA:
        return
    if problem := cel.capacity_problem(gpu_class.device_selector, device_capacities(gpu_class.cluster)):
        raise refuse("bad_cel", problem, field="device_selector")


def _refuse_uncounted(gpu_class: GpuClass) -> None:
    if gpu_class.interface != GpuClass.Interface.DRA or not gpu_class.cluster.has_kueue:
        return
    counted, selected = trials_of(gpu_class)
    refuse_if(
        policy.device_refusal(
            device_class=gpu_class.device_class, resource=gpu_class.resource, counted=counted, selected=selected
        )
    )


def _neighbour(gpu_class: GpuClass) -> PeerClass:
    return PeerClass(gpu_class.slug, gpu_class.resource, gpu_class.node_labels, gpu_class.device_selector)
