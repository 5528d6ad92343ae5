"""Makes the cluster match a pool: one ResourceFlavor per class, and the Cohort with the units that no grant covers.

Grants belong to a higher app, which passes their sums in (`AllocatedUnits`).
"""

from __future__ import annotations

from collections.abc import Callable

from catalog.classes import policy, queries
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass, Pool
from catalog.pool.types import AllocatedUnits
from cluster.apply.reconcile import converge, delete_row, raise_if_not_applied
from cluster.client.kube import Kube
from cluster.manifests import pool as manifests
from cluster.manifests.metadata import Manifest
from cluster.manifests.specs import CohortSpec, FlavorSpec, QuotaCell
from cluster.models import AppliedObject, Cluster
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
    lent = _cohort(cluster, wanted, promised.units, owner=owner)
    done = converge(
        kube=kube,
        cluster_id=cluster.pk,
        owner=owner,
        manifests=[*flavors, *lent],
        deadline=deadline,
        delete_unwanted=False,
    )
    kept = _remove_unused(cluster, owner, {flavor["metadata"]["name"] for flavor in flavors}, deadline, kube=kube)
    raise_if_not_applied(cluster, owner, done, clock=promised.clock)
    Pool.objects.filter(pk=row.pk).update(applied_as_of=promised.as_of)
    is_waiting = bool(kept or done.terminating or not lent)
    return Outcome(again_in_s=SOON_S if is_waiting else None, clock=promised.clock, is_applied=not done.terminating)


def flavor_spec(gpu_class: GpuClass, *, owner: str) -> FlavorSpec:
    return FlavorSpec(
        name=queries.flavor_name(gpu_class),
        owner=owner,
        slug=gpu_class.slug,
        node_labels=gpu_class.node_labels,
        tolerations=tuple(gpu_class.tolerations),
        has_topology=gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN,
        is_held=policy.is_held(gpu_class),
    )


def _cohort(cluster: Cluster, classes: list[GpuClass], promised: dict[int, int], *, owner: str) -> list[Manifest]:
    """Returns [] while the capacity is unknown and a Cohort exists already: lent units do not change.

    Reclaiming them because the mirror is empty for a moment would preempt workloads without need.
    """
    capacities = capacity_queries.capacities(cluster, classes)
    is_known = all(capacity.is_known for capacity in capacities.values())
    made = AppliedObject.objects.filter(cluster=cluster, owner=owner, kind="Cohort").exclude(uid="")
    if not is_known and made.exists():
        return []
    cells = [
        QuotaCell(
            resource=gpu_class.resource,
            flavor=queries.flavor_name(gpu_class),
            nominal=max(0, (capacities[gpu_class.pk].allocatable or 0) - promised.get(gpu_class.pk, 0)),
        )
        for gpu_class in classes
    ]
    cells.sort(key=lambda cell: (cell.resource, cell.flavor))
    return [manifests.cohort(CohortSpec(name=cluster.cohort, owner=owner, cells=tuple(cells)))]


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
