"""Which devices of a ResourceSlice a DRA class may take, as far as plain values show. Pure.

Only the scheduler evaluates CEL. Of a class's selector this module reads only what discovery itself writes: equalities
joined by `&&`. Any other condition counts as true for every device.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_EQUALITY = re.compile(
    r"""device\.attributes\[(["'])(?P<driver>[^"']+)\1\]\.(?P<name>\w+)\s*==\s*(["'])(?P<value>[^"']*)\4"""
)
_READ = ("productName", "profile", "type")
# Shipped by NVIDIA's driver, on a cluster without such devices too.
NVIDIA_CLASSES = frozenset({"gpu.nvidia.com", "mig.nvidia.com"})


def device_class(device: Mapping[str, str]) -> str:
    """NVIDIA's driver ships a device class per type of device, others one per driver."""
    kind = device.get("type", "gpu")
    return f"{kind}.nvidia.com" if device["driver"] == "gpu.nvidia.com" else device["driver"]


def may_take(device: Mapping[str, str], *, of_class: str, selector: str, known: Collection[str]) -> bool:
    """`device`: its driver and its attributes. `known`: device classes of the cluster's devices. A name not among them
    is the site's own; only its CEL defines its devices.
    """
    if of_class in known and device_class(device) != of_class:
        return False
    return all(device["driver"] == driver and device.get(name) == value for driver, name, value in equalities(selector))


def equalities(selector: str) -> list[tuple[str, str, str]]:
    """Returns the required (driver, attribute, value); [] if the selector has alternatives."""
    if "||" in selector or "?" in selector:
        return []
    found = (_EQUALITY.fullmatch(part.strip()) for part in selector.split("&&"))
    return [(one["driver"], one["name"], one["value"]) for one in found if one and one["name"] in _READ]


def are_disjoint(selector: str, other: str) -> bool:
    """Whether two selectors can never take the same device, as far as they are read: they require different values of
    one attribute.
    """
    required = {(driver, name): value for driver, name, value in equalities(selector)}
    return any(required.get((driver, name), value) != value for driver, name, value in equalities(other))


def mapping_line(device_class: str, resource: str = "") -> str:
    """A line of `deviceClassMappings` in Kueue's configuration; without a resource its name is a suggestion."""
    name = resource or f"dra.portal/{device_class.partition('.')[0]}"
    return f"{{name: {name}, deviceClassNames: [{device_class}]}}"
