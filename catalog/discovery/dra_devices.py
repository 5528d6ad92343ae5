"""Which devices of a ResourceSlice a DRA class may take, as far as plain values tell. Pure.

CEL is the scheduler's: of a class's selector only what discovery itself writes is read, equalities joined by `&&`.
Anything else may be true of every device.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_EQUALITY = re.compile(
    r"""device\.attributes\[(["'])(?P<driver>[^"']+)\1\]\.(?P<name>\w+)\s*==\s*(["'])(?P<value>[^"']*)\4"""
)
_READ = ("productName", "profile", "type")


def device_class(device: Mapping[str, str]) -> str:
    """NVIDIA's driver ships a device class per type of device, others one per driver."""
    kind = device.get("type", "gpu")
    return f"{kind}.nvidia.com" if device["driver"] == "gpu.nvidia.com" else device["driver"]


def may_take(device: Mapping[str, str], *, of_class: str, selector: str, known: Collection[str]) -> bool:
    """`device`: its driver and its attributes. `known`: device classes that devices of the cluster are of; a name that
    is none of them is the site's own, and which devices it means its CEL alone says.
    """
    if of_class in known and device_class(device) != of_class:
        return False
    return all(device["driver"] == driver and device.get(name) == value for driver, name, value in equalities(selector))


def equalities(selector: str) -> list[tuple[str, str, str]]:
    """(driver, attribute, value) of what has to hold; [] where the selector has alternatives."""
    if "||" in selector or "?" in selector:
        return []
    found = (_EQUALITY.fullmatch(part.strip()) for part in selector.split("&&"))
    return [(one["driver"], one["name"], one["value"]) for one in found if one and one["name"] in _READ]
