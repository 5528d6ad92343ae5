"""How the queue may preempt runs, and how it did, for all shown runs of a namespace at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from accounts.models import Event
from catalog.classes import queries as catalog
from catalog.models import GpuClass
from cluster.manifests.run_spec import PRIORITIES
from cluster.models import Cluster
from cluster.reads.observed import KueueWorkload as Queued
from cluster.reads.observed import parse_time
from portal.core.due import table_label
from tenants.grants.queries import GrantedUnits as Granted
from tenants.models import Namespace
from workloads.core.observation import Observation, true_since
from workloads.core.unit_sql import rank
from workloads.interruption import exposure, preemption
from workloads.interruption.exposure import Exposure, HeldUnits, QuotaPosition, Standing
from workloads.interruption.preemption import Interruption
from workloads.models import Run, Workload

INTERRUPTED, REQUEUED, RESUMED = "workload.interrupted", "workload.brought_back", "workload.resumed"
VERBS = (INTERRUPTED, REQUEUED, RESUMED)


@dataclass(frozen=True)
class ActiveRun:
    """An unfinished run with its class."""

    run: Run
    gpu_class: GpuClass
    seen: Observation

    @property
    def key(self) -> str:
        return str(self.run.pk)

    @property
    def is_on_a_node(self) -> bool:
        pod = self.seen.pod
        return pod is not None and pod.is_on_a_node

    def held(self, at: datetime) -> HeldUnits:
        return HeldUnits(self.key, self.run.total_units, rank(self.run), at)


# ---- risk of an interruption -----------------------------------------------------------------------------------------


def exposures(namespace: Namespace, shown: Collection[ActiveRun], own: Granted) -> dict[int, Exposure]:
    """Returns exposures by run id. `own`: the team's quota now."""
    places = _places(namespace, shown, own)
    return {
        one.run.pk: exposure.exposure(
            place,
            units=one.run.total_units,
            rank=rank(one.run),
            unit=catalog.unit_of(one.gpu_class),
            holds=holds,
        )
        for one in shown
        for place, holds in [places[one.run.pk]]
    }


def _places(namespace: Namespace, shown: Collection[ActiveRun], own: Granted) -> dict[int, tuple[QuotaPosition, bool]]:
    """By run id, and whether it is admitted."""
    now = timezone.now()
    has_queue = namespace.cluster.queue_system == Cluster.QueueSystem.KUEUE
    counted = {one.gpu_class.pk: one.gpu_class for one in shown if has_queue and one.gpu_class.resource}
    found: dict[int, tuple[QuotaPosition, bool]] = {}
    for pk, gpu_class in counted.items():
        limits = {"granted": own.in_force.get(pk, 0), "keepable": own.keepable.get(pk, 0)}
        mine = [one for one in shown if one.gpu_class.pk == pk]
        held = _held(gpu_class, mine)
        placed = exposure.quota_positions(held, **limits)
        for one in mine:
            if one.key in placed:
                found[one.run.pk] = placed[one.key], True
            else:
                found[one.run.pk] = (
                    exposure.position_of_new_run(
                        held, one.held(now), borrowing_limit=gpu_class.borrowing_limit, **limits
                    ),
                    False,
                )
    return {one.run.pk: found.get(one.run.pk, (QuotaPosition(Standing.NO_QUEUE), one.is_on_a_node)) for one in shown}


def _held(gpu_class: GpuClass, mine: Collection[ActiveRun]) -> list[HeldUnits]:
    """Returns everything that uses units of the class in the team's queue, shown or not, started in the portal or not;
    and runs that are on a node although their queue status was not read yet.
    """
    flavor = catalog.flavor_name(gpu_class)
    by_job = {one.seen.job.uid: one for one in mine if one.seen.job is not None}
    found = {}
    for queued in next((one.seen.holding for one in mine), ()):
        reserved_at = true_since(queued, "QuotaReserved") or queued.created_at
        if (one := by_job.get(queued.job_uid)) is not None:
            found[one.key] = one.held(reserved_at)
        elif units := sum(queued.usage.get(name, 0) for name, its in queued.flavors.items() if its == flavor):
            found[queued.uid] = HeldUnits(queued.uid, units, _rank(queued), reserved_at)
    for one in mine:
        if one.is_on_a_node and one.key not in found:
            found[one.key] = one.held(one.run.admitted_at or one.run.requested_at)
    return list(found.values())


def _rank(queued: Queued) -> int:
    """A workload without a portal priority is preempted first."""
    name = queued.priority_class
    return PRIORITIES.index(name) if name in PRIORITIES else len(PRIORITIES)


# ---- past interruptions ----------------------------------------------------------------------------------------------


def interruptions(shown: Iterable[ActiveRun]) -> dict[int, Interruption]:
    """Returns the last interruption by run id. One query if one was recorded, or may have been recorded for the
    previous run.
    """
    shown = list(shown)
    recorded = last_interruption_events(
        [one.run for one in shown if one.run.preemptions or one.run.disruptions or one.run.number > 1]
    )
    found = {}
    for one in shown:
        event = recorded.get(one.run.pk)
        last = _seen_now(one.seen.queue, earlier_interruptions(event) + len(one.run.disruptions)) or (
            interruption_from_event(event) if event is not None else None
        )
        if last is not None:
            found[one.run.pk] = last
    return found


def _seen_now(queued: Queued | None, earlier: int) -> Interruption | None:
    """While the run is preempted, the queue itself reports it."""
    if queued is None or not queued.is_true("Preempted"):
        return None
    condition = queued.condition("Preempted")
    return (
        None
        if condition is None
        else preemption.interruption_from_condition(condition, earlier + max(1, queued.preemptions))
    )


def last_interruption_events(runs: Collection[Run]) -> dict[int, Event]:
    """Returns by run id the last event about its interruptions, if there is one. One query, none without runs."""
    if not runs:
        return {}
    rows = {f"{table_label(Workload)}.{run.workload_id}": run for run in runs}
    found = Event.objects.filter(row__in=list(rows), verb__in=VERBS).order_by("row", "-id").distinct("row")
    return {rows[one.row].pk: one for one in found if one.after.get("run") == rows[one.row].number}


def interruption_from_event(event: Event) -> Interruption:
    after = event.after
    return Interruption(
        at=parse_time(after.get("at")),
        rule=after.get("rule", ""),
        times=after.get("times", 1),
        cause=after.get("reason", "") if not after.get("rule") else "",
        back_at=event.at if event.verb == RESUMED else None,
    )


def earlier_interruptions(event: Event | None) -> int:
    """Returns how often the earlier runs, which this run continues, had been interrupted."""
    if event is None:
        return 0
    earlier: Mapping[str, int] = event.after
    return earlier.get("times", 1) if event.verb == REQUEUED else earlier.get("earlier", 0)
