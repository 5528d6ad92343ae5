"""The devices with enough memory for the runs that wait for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from catalog.classes.capacity.device_memory import memory_sizes
from catalog.classes.capacity.queries import capacities, of_memory
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.reads.observed import Pod
from workloads.core.class_nodes import SizedDevices
from workloads.core.observation import Observation
from workloads.models import Run


def with_devices(
    cluster: Cluster, seen: Mapping[int, Observation], runs: Mapping[int, Run], classes: Mapping[str, GpuClass]
) -> dict[int, Observation]:
    """Returns the observations, with devices for those that request a memory size and wait for a node. At most three
    queries if one does. `classes`: by slug.
    """
    waiting = {
        pk: (classes[runs[pk].spec["gpu_class"]], int(gib))
        for pk, one in seen.items()
        if pk in runs
        and (gib := runs[pk].spec.get("gpu_memory_gib"))
        and any(_is_unplaced(pod) for pod in one.pods)
        and runs[pk].spec["gpu_class"] in classes
    }
    if not waiting:
        return dict(seen)
    found = capacities(cluster, list({one.pk: one for one, _ in waiting.values()}.values()))
    return {
        pk: replace(one, devices=_devices(*waiting[pk], runs[pk].spec["units"], found)) if pk in waiting else one
        for pk, one in seen.items()
    }


def _is_unplaced(pod: Pod) -> bool:
    placed = pod.condition("PodScheduled") if not pod.node else None
    return placed is not None and placed.reason == "Unschedulable"


def _devices(gpu_class: GpuClass, gib: int, units: int, by_class: Mapping[int, Capacity]) -> SizedDevices | None:
    """Returns None if it is not known how many there are."""
    found = by_class[gpu_class.pk]
    if not memory_sizes(gpu_class, found):
        return None
    sized = of_memory(found, gpu_class, gib)
    return SizedDevices(
        gib,
        units,
        in_all=found.allocatable or 0,
        there=sized.allocatable or 0,
        used=sized.used or 0,
        free=sized.free or 0,
        most_on_one_node=sized.most_on_one_node or 0,
    )
