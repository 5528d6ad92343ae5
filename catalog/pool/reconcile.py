"""Makes the cluster match a pool: one ResourceFlavor per class, and the Cohort with the units that no grant covers.

The Cohort counts a fall of a node's units only when it has lasted (`damping.py`).

Grants belong to a higher app, which passes their sums in (`AllocatedUnits`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from catalog.classes import policy, queries
from catalog.classes.capacity import queries as capacity_queries
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass, NodeUnits, Pool
from catalog.pool.damping import CountedUnits, SeenUnits, counted_now
from catalog.pool.types import AllocatedUnits
from cluster.apply.reconcile import converge, delete_row, raise_if_not_applied
from cluster.client.kube import Kube
from cluster.manifests import pool as manifests
from cluster.manifests.metadata import Manifest
from cluster.manifests.specs import CohortSpec, FlavorSpec, QuotaCell
from cluster.models import AppliedObject, Cluster, MirrorNode
from cluster.reads import queries as mirror
from portal.core.due import Deadline, Outcome, owner_label

# How soon to reconcile again while an unwanted flavor is still in use, or the mirror is unknown.
SOON_S = 30.0


def reconcile_pool(
    row: Pool,
    deadline: Deadline,
    *,
    kube: Kube,
    promises: Callable[[Cluster], AllocatedUnits],
    queues_may_change: Callable[[Cluster], None],
) -> Outcome:
    """`queues_may_change` is called when classes were edited or flavors were sent: queues name them and must be
    reconciled.

    Flavors are created before the queues that name them, and deleted after: an unwanted one is deleted only when the
    mirror shows that no unfinished Workload is assigned to it. Kueue itself keeps a deleted flavor until no queue names
    it.
    """
    cluster = row.cluster
    if not cluster.has_kueue:
        if row.generation > row.observed_generation:
            queues_may_change(cluster)
        return Outcome()
    owner = owner_label(row)
    classes = list(GpuClass.objects.filter(cluster=cluster).exclude(resource="").order_by("slug"))
    wanted = [c for c in classes if c.life_cycle in queries.OPEN_STATES]
    flavors = [manifests.resource_flavor(flavor_spec(gpu_class, owner=owner)) for gpu_class in wanted]
    made = converge(
        kube=kube, cluster_id=cluster.pk, owner=owner, manifests=flavors, deadline=deadline, delete_unwanted=False
    )
    if made.sent or row.generation > row.observed_generation:
        queues_may_change(cluster)
    promised = promises(cluster)
    capacities = capacity_queries.capacities(cluster, wanted, with_nodes=True)
    lent, falls_at, is_late = [], None, False
    if _may_lend(cluster, capacities, owner=owner):
        counted = _count_nodes(cluster, wanted, capacities, now=promised.as_of)
        lent = [_cohort(cluster, wanted, counted, promised.units, owner=owner)]
        falls_at = _next_fall(wanted, counted)
        # A fall whose time has come waits for news of the cluster.
        is_late = falls_at is not None and falls_at <= promised.as_of
    moments = (promised.clock, None if is_late else falls_at)
    clock = min((at for at in moments if at is not None), default=None)
    done = converge(
        kube=kube,
        cluster_id=cluster.pk,
        owner=owner,
        manifests=[*flavors, *lent],
        deadline=deadline,
        delete_unwanted=False,
    )
    kept = _remove_unused(cluster, owner, {flavor["metadata"]["name"] for flavor in flavors}, deadline, kube=kube)
    raise_if_not_applied(cluster, owner, done, clock=clock)
    Pool.objects.filter(pk=row.pk).update(applied_as_of=promised.as_of)
    is_waiting = bool(kept or done.terminating or not lent or is_late)
    return Outcome(again_in_s=SOON_S if is_waiting else None, clock=clock, is_applied=not done.terminating)


def flavor_spec(gpu_class: GpuClass, *, owner: str) -> FlavorSpec:
    return FlavorSpec(
        name=queries.flavor_name(gpu_class),
        owner=owner,
        slug=gpu_class.slug,
        node_labels=gpu_class.node_labels,
        tolerations=tuple(gpu_class.tolerations),
        topology=queries.topology_name(gpu_class),
        is_held=policy.is_held(gpu_class),
    )


def _may_lend(cluster: Cluster, capacities: Mapping[int, Capacity], *, owner: str) -> bool:
    """False while the capacity is unknown and a Cohort exists already: lent units do not change.

    Reclaiming them because the mirror is empty for a moment would preempt workloads without need.
    """
    if all(capacity.is_known for capacity in capacities.values()):
        return True
    made = AppliedObject.objects.filter(cluster=cluster, owner=owner, kind="Cohort").exclude(uid="")
    return not made.exists()


Counted = dict[tuple[int, str], CountedUnits]


def _count_nodes(
    cluster: Cluster, classes: list[GpuClass], capacities: Mapping[int, Capacity], *, now: datetime
) -> Counted:
    """Returns what the quota counts, by class id and node, and stores it. Three queries, and two if it has changed."""
    rows = {(row.gpu_class_id, row.node): row for row in NodeUnits.objects.filter(gpu_class__cluster=cluster)}
    before = {key: CountedUnits(row.counted, row.reported, row.since) for key, row in rows.items()}
    seen = {(one.pk, node): units for one in classes for node, units in _by_node(capacities[one.pk]).items()}
    # A node that lost the labels or the resource of a class, for example while its plugins restart, offers nothing.
    missing = {node for _, node in before.keys() - seen.keys()}
    there = MirrorNode.objects.filter(cluster_id=cluster.pk, name__in=missing).values_list("name", "schedulable")
    is_open = dict(there) if missing else {}
    counted: Counted = {}
    for one in classes:
        mine = {node for pk, node in before if pk == one.pk and node in is_open}
        for node in mine | {node for pk, node in seen if pk == one.pk}:
            counted[one.pk, node] = counted_now(
                before.get((one.pk, node)),
                seen.get((one.pk, node)) or SeenUnits(0, 0, is_open[node]),
                delay=timedelta(minutes=one.damping_minutes),
                now=now,
                is_current=capacities[one.pk].is_current,
            )
    _store(rows, before, counted)
    return counted


def _by_node(capacity: Capacity) -> dict[str, SeenUnits]:
    """A node may have several kinds of devices that a class takes."""
    found: dict[str, SeenUnits] = {}
    for part in capacity.parts:
        other = found.get(part.node, SeenUnits(0, 0, part.schedulable))
        offered = part.allocatable if part.ready else 0
        found[part.node] = SeenUnits(other.offered + offered, other.used + part.used, part.schedulable)
    return found


def _store(rows: Mapping[tuple[int, str], NodeUnits], before: Counted, counted: Counted) -> None:
    changed = [
        NodeUnits(gpu_class_id=pk, node=node, counted=units.counted, reported=units.reported, since=units.since)
        for (pk, node), units in counted.items()
        if before.get((pk, node)) != units
    ]
    if changed:
        NodeUnits.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["gpu_class", "node"],
            update_fields=["counted", "reported", "since"],
        )
    if gone := [row.pk for key, row in rows.items() if key not in counted]:
        NodeUnits.objects.filter(pk__in=gone).delete()


def _next_fall(classes: list[GpuClass], counted: Counted) -> datetime | None:
    delays = {one.pk: timedelta(minutes=one.damping_minutes) for one in classes}
    falls = [units.since + delays[pk] for (pk, _), units in counted.items() if units.is_delayed]
    return min(falls, default=None)


def _cohort(
    cluster: Cluster, classes: list[GpuClass], counted: Counted, promised: dict[int, int], *, owner: str
) -> Manifest:
    units = dict.fromkeys((one.pk for one in classes), 0)
    for (pk, _), node in counted.items():
        units[pk] += node.counted
    cells = [
        QuotaCell(
            resource=gpu_class.resource,
            flavor=queries.flavor_name(gpu_class),
            # Kueue admits what nodes can be added for: an autoscaler sees only pods.
            nominal=max(0, max(units[gpu_class.pk], gpu_class.max_units or 0) - promised.get(gpu_class.pk, 0)),
        )
        for gpu_class in classes
    ]
    cells.sort(key=lambda cell: (cell.resource, cell.flavor))
    return manifests.cohort(CohortSpec(name=cluster.cohort, owner=owner, cells=tuple(cells)))


def _remove_unused(cluster: Cluster, owner: str, wanted: set[str], deadline: Deadline, *, kube: Kube) -> bool:
    """Deletes flavors that the catalog no longer wants. Returns whether some stay because they may still be in use."""
    rows = AppliedObject.objects.filter(cluster=cluster, owner=owner, kind="ResourceFlavor").exclude(name__in=wanted)
    unwanted = {row.name: row for row in rows}
    if not unwanted:
        return False
    if not mirror.is_known(cluster.pk, "Workload"):
        return True
    unfinished = [found for found in mirror.workloads(cluster.pk) if not found.is_true("Finished")]
    in_use = {flavor for found in unfinished for flavor in found.flavors.values()}
    for name, row in unwanted.items():
        if name not in in_use:
            deadline.check()
            delete_row(kube, row)
    return bool(unwanted.keys() & in_use)
