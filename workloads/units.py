"""What one unit of a class is called. Pure."""

from __future__ import annotations

from catalog.models import GpuClass


def unit_of(gpu_class: GpuClass) -> str:
    if gpu_class.interface == GpuClass.Interface.NONE:
        return "unit"
    if gpu_class.sharing != GpuClass.Sharing.NONE:
        return "share"
    return "slice" if gpu_class.partition != "none" else "card"
