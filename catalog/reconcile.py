"""Makes the cluster match a Pool: one ResourceFlavor per class, and the Cohort with what nobody was promised.

What was promised is known to apps above this one, and handed in (`Promises`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from catalog import queries
from catalog.models import GpuClass, Pool
from cluster import queries as mirror
from cluster.apply import converge
from cluster.kube import Kube
from cluster.manifests import pool as manifests
from cluster.models import AppliedObject, Cluster
from cluster.specs import CohortSpec, FlavorSpec, QuotaCell
from portal.due import Deadline, Outcome, owner_label

# How soon to look again while an unwanted flavor is still in use, or the mirror is unknown.
SOON_S = 30.0


@dataclass(frozen=True)
class Promises:
    """`units`: promised at `as_of`, by class id. `clock`: when that changes next by itself."""

    units: dict[int, int]
    clock: datetime | None
    as_of: datetime


def pool(
    row: Pool,
    deadline: Deadline,
    *,
    kube: Kube,
    promises: Callable[[Cluster], Promises],
    queues_may_change: Callable[[Cluster], None],
) -> Outcome:
    """`queues_may_change` is called when classes were edited or flavors came: queues name them and have to look again.

    Flavors come before the queues that name them, and go after: an unwanted one is deleted only when the mirror shows
    that no unfinished Workload is assigned to it. Kueue itself keeps a deleted flavor until no queue names it.
    """
    cluster = row.cluster
    if cluster.queue_system != Cluster.QueueSystem.KUEUE:
        if row.generation > row.observed_generation:
            queues_may_change(cluster)
        return Outcome()
    owner = owner_label(row)
    classes = list(GpuClass.objects.filter(cluster=cluster).exclude(resource="").order_by("slug"))
    wanted = [c for c in classes if c.life_cycle in queries.OPEN]
    flavors = [manifests.resource_flavor(flavor_spec(gpu_class, owner=owner)) for gpu_class in wanted]
    made = converge(
        kube=kube, cluster=cluster, owner=owner, manifests=flavors, deadline=deadline, delete_unwanted=False
    )
    if made.sent or row.generation > row.observed_generation:
        queues_may_change(cluster)
    promised = promises(cluster)
    lent = manifests.cohort(cohort_spec(cluster, wanted, promised.units, owner=owner))
    kept = _in_use(cluster, owner, wanted={flavor["metadata"]["name"] for flavor in flavors})
    if kept:
        converge(kube=kube, cluster=cluster, owner=owner, manifests=[lent], deadline=deadline, delete_unwanted=False)
    else:
        converge(kube=kube, cluster=cluster, owner=owner, manifests=[*flavors, lent], deadline=deadline)
    Pool.objects.filter(pk=row.pk).update(applied_as_of=promised.as_of)
    is_waiting = bool(kept or made.terminating)
    return Outcome(again_in_s=SOON_S if is_waiting else None, clock=promised.clock)


def flavor_spec(gpu_class: GpuClass, *, owner: str) -> FlavorSpec:
    return FlavorSpec(
        name=queries.flavor_name(gpu_class),
        owner=owner,
        slug=gpu_class.slug,
        node_labels=gpu_class.node_labels,
        tolerations=tuple(gpu_class.tolerations),
        has_topology=gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN,
    )


def cohort_spec(cluster: Cluster, classes: list[GpuClass], promised: dict[int, int], *, owner: str) -> CohortSpec:
    """Unknown capacity lends nothing: idle cards that nobody borrows for a while are better than promises broken."""
    capacities = queries.capacities(cluster, classes)
    cells = [
        QuotaCell(
            resource=gpu_class.resource,
            flavor=queries.flavor_name(gpu_class),
            nominal=max(0, (capacities[gpu_class.pk].allocatable or 0) - promised.get(gpu_class.pk, 0)),
        )
        for gpu_class in classes
    ]
    return CohortSpec(
        name=cluster.cohort, owner=owner, cells=tuple(sorted(cells, key=lambda c: (c.resource, c.flavor)))
    )


def _in_use(cluster: Cluster, owner: str, *, wanted: set[str]) -> set[str]:
    """Flavors that the catalog no longer wants and that may still be worked on."""
    unwanted = set(
        AppliedObject.objects.filter(cluster=cluster, owner=owner, kind="ResourceFlavor")
        .exclude(name__in=wanted)
        .values_list("name", flat=True)
    )
    if not unwanted:
        return set()
    if not mirror.is_known(cluster.pk, "Workload"):
        return unwanted
    unfinished = [found for found in mirror.workloads(cluster.pk) if not found.is_true("Finished")]
    return unwanted & {flavor for found in unfinished for flavor in found.flavors.values()}
