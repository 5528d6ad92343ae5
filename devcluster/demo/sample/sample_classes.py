"""The GPU classes that the sample data of the everyday demo use. Needs Django."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

A100, SLICE, XE, MI300X, GAUDI, H100 = "a100", "slice", "xe", "mi300x", "gaudi", "h100"
Names = Mapping[str, str]
# What a class must be, by its columns. Shared classes are left out.
_CONDITIONS: dict[str, dict[str, Any]] = {
    A100: {"resource": "nvidia.com/gpu", "partition": "none"},
    SLICE: {"resource": "nvidia.com/mig-1g.10gb"},
    XE: {"resource": "gpu.intel.com/xe"},
    MI300X: {"resource": "amd.com/gpu"},
    GAUDI: {"resource": "habana.ai/gaudi"},
    H100: {"interface": "dra"},
}


def class_names() -> Names:
    """Returns the slug for each of these classes that the hardware has."""
    from catalog.models import GpuClass

    active = GpuClass.objects.filter(life_cycle=GpuClass.LifeCycle.ACTIVE, sharing=GpuClass.Sharing.NONE)
    found = {key: active.filter(**conditions).order_by("slug").first() for key, conditions in _CONDITIONS.items()}
    return {key: one.slug for key, one in found.items() if one is not None}
