"""The memory of the single devices of a class, as drivers of dynamic resource allocation publish it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from cluster.reads.units import ResourceUnits

GIB = 1024**3


class MemorySize(NamedTuple):
    """A size in bytes, and the most devices with at least that on one node, in use or not."""

    size: int
    on_one_node: int


def memory_sizes(gpu_class: GpuClass, found: Capacity) -> tuple[MemorySize, ...] | None:
    """Returns the sizes, smallest first. None: no device is known now. (): a size cannot be requested.

    That is so for device plugins, for devices without a published memory, for partitions that exclude each other
    (how many of them are free is not known), and for nodes that are added on demand.
    """
    if gpu_class.interface != GpuClass.Interface.DRA or gpu_class.is_autoscaled:
        return ()
    if not found.parts:
        return None
    if any("memory" not in one.device or "divided" in one.device for one in found.parts):
        return ()
    sizes = sorted({memory_of(one) for one in found.parts})
    return tuple(MemorySize(size, _on_one_node(found.parts, size)) for size in sizes)


def memory_of(one: ResourceUnits) -> int:
    return int(one.device["memory"])


def _on_one_node(seen: Iterable[ResourceUnits], size: int) -> int:
    """A device that is not healthy now is not missing for ever."""
    found: Counter[str] = Counter()
    for one in seen:
        if memory_of(one) >= size:
            found[one.node] += one.largest
    return max(1, *found.values())


def gib_text(size: int) -> str:
    """Returns whole tenths of GiB, rounded down: a device with 79.65 GiB does not have 79.7."""
    return f"{size * 10 // GIB / 10:g}"


def sizes_text(sizes: Collection[MemorySize]) -> str:
    """Returns `9.7, 39.5 and 79.6 GiB`."""
    *most, last = [gib_text(one.size) for one in sizes]
    return f"{', '.join(most)} and {last} GiB" if most else f"{last} GiB"
