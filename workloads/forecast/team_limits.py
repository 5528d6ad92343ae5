"""What besides grants and the team's own runs decides whether something can start. Pure.

That is what Kueue counts in the team's queue for workloads that were not started in the portal, every ResourceQuota of
the namespace, and whether queue and namespace accept workloads at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cluster.mirror.records.quantities import amount
from cluster.reads.observed import GenericObject
from workloads.status.explain.admission import NAMESPACE_ENDING
from workloads.status.explain.queue_holds import closed_queue_sentence

# Keys of a ResourceQuota that count pods or Jobs: one for each worker, or one for each workload.
_PODS = ("pods", "count/pods")
_JOBS = ("count/jobs.batch",)


@dataclass(frozen=True)
class UnitSize:
    """What one unit of a class requests. `resource`: "" for a class without devices."""

    slug: str
    resource: str
    cpu: int
    memory_gib: int


@dataclass(frozen=True)
class QuotaRoom:
    """One limit of a ResourceQuota. `most` and `left` count units of a class, pods or Jobs (`of`)."""

    quota: str
    key: str
    of: str
    most: int
    left: int

    def needed(self, each: int, workers: int) -> int:
        return {"units": each * workers, "pods": workers, "jobs": 1}[self.of]


@dataclass(frozen=True)
class TeamLimits:
    """`closed`: the sentence about a namespace or queue that accepts nothing, or "". `reserved`: units that Kueue has
    reserved in the team's queue, by class slug and resource. `quotas`: hard and used of each ResourceQuota, by name.
    """

    closed: str = ""
    reserved: Mapping[tuple[str, str], int] = field(default_factory=dict)
    quotas: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = field(default_factory=dict)

    def foreign_units(self, size: UnitSize, own: int) -> int:
        """Units that Kueue counts beyond those of the team's `own` runs. The larger number is right: the portal may
        not have seen yet that a run was admitted, nor Kueue that it has ended.
        """
        return max(0, self.reserved.get((size.slug, size.resource), 0) - own)

    def rooms(self, size: UnitSize, *, freed: int = 0, freed_workers: int = 0) -> tuple[QuotaRoom, ...]:
        """`freed`, `freed_workers`: units and pods of a run that ends first."""
        more = {"units": freed, "pods": freed_workers, "jobs": min(1, freed_workers)}
        return tuple(
            replace(room, left=min(room.most, room.left + more[room.of]))
            for name, (hard, used) in sorted(self.quotas.items())
            for key, most in sorted(hard.items())
            if (room := _room(name, key, most, used.get(key, "0"), size)) is not None
        )


def team_limits(found: Iterable[GenericObject]) -> TeamLimits:
    """`found`: the Namespace, its ClusterQueue, LocalQueues and ResourceQuotas, as far as the mirror has them."""
    closed = ""
    reserved: dict[tuple[str, str], int] = {}
    quotas = {}
    for one in found:
        if one.kind == "Namespace":
            closed = NAMESPACE_ENDING if one.deleting_since is not None else closed
        elif one.kind == "ResourceQuota":
            quotas[one.name] = (one.record["hard"], one.record["used"])
        elif one.kind == "LocalQueue":
            is_stopped = one.record["stop_policy"] != "None"
            closed = closed or closed_queue_sentence("", is_stopped=is_stopped)
        else:
            active = one.condition("Active")
            why = active.message if active is not None and not active.is_true else ""
            closed = closed or closed_queue_sentence(why, is_stopped=one.record["stop_policy"] != "None")
            for flavor, cells in one.record["reserved"].items():
                # A class whose nodes were relabelled has several flavors.
                slug = flavor.rpartition("-")[0]
                for resource, cell in cells.items():
                    reserved[slug, resource] = reserved.get((slug, resource), 0) + cell["total"]
    return TeamLimits(closed, reserved, quotas)


def _room(quota: str, key: str, most: str, used: str, size: UnitSize) -> QuotaRoom | None:
    """Returns None for a key that does not count what a run of the class needs."""
    resource = key.removeprefix("requests.").removeprefix("limits.")
    if key in _PODS:
        of, per_unit, resource = "pods", 1, "pods"
    elif key in _JOBS:
        of, per_unit, resource = "jobs", 1, "pods"
    elif size.resource and resource == size.resource:
        of, per_unit = "units", 1
    elif resource == "cpu":
        of, per_unit = "units", size.cpu * 1000
    elif resource == "memory":
        of, per_unit = "units", size.memory_gib * 2**30
    else:
        return None
    try:
        in_all, in_use = amount(resource, most), amount(resource, used)
    except ValueError:
        return None
    if not per_unit:
        return None
    return QuotaRoom(quota, key, of, in_all // per_unit, max(0, in_all - in_use) // per_unit)
