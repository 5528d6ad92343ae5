"""The input of discovery and what it proposes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

# Vendors' taints: the pod fence in deploy/ admits their tolerations, and those of the site profile. Any other taint
# keeps teams away on purpose.
VENDOR_TAINT = re.compile(r"(nvidia\.com|amd\.com|gpu\.intel\.com|habana\.ai)/.+")


@dataclass(frozen=True)
class NodeFacts:
    """What discovery needs of a node. `allocatable` in plain numbers: devices as units, cpu in cores, memory in GiB."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    allocatable: Mapping[str, float]
    # Keys of taints that mark GPU nodes of this site.
    gpu_taints: frozenset[str] = frozenset()

    def is_gpu_taint(self, key: str) -> bool:
        return VENDOR_TAINT.fullmatch(key) is not None or key in self.gpu_taints


@dataclass(frozen=True)
class Device:
    """One device of a ResourceSlice; attribute names without the driver's domain."""

    driver: str
    node: str
    attributes: Mapping[str, str]
    memory_mib: int | None


@dataclass(frozen=True)
class ClassProposal:
    """Fields as in catalog.GpuClass; `units` and `nodes` say where it was seen. `weight_note`: why the weight is not
    computed from the MIG layout, or "".
    """

    slug: str
    name: str
    vendor: str
    product: str
    resource: str
    node_labels: Mapping[str, str]
    partition: str = "none"
    sharing: str = "none"
    replicas: int = 1
    interface: str = "device-plugin"
    device_class: str = ""
    device_selector: str = ""
    tolerations: tuple[Mapping[str, str], ...] = ()
    memory_mib: int | None = None
    weight: Fraction = Fraction(1)
    weight_note: str = ""
    units_per_workload: int = 1
    cpu_per_unit: int = 1
    memory_gib_per_unit: int = 1
    units: int = 0
    nodes: tuple[str, ...] = ()

    @property
    def is_exclusive(self) -> bool:
        """Whole GPUs."""
        return self.sharing == "none" and self.partition == "none"


@dataclass(frozen=True)
class Discovery:
    """`problems`: capacity that was seen and cannot be proposed, each as a sentence for staff."""

    proposals: tuple[ClassProposal, ...]
    problems: tuple[str, ...]


class UnlabelledCapacity(Exception):
    """Capacity whose labels do not show what a unit is; the sentence names what is missing."""


def is_device(resource: str) -> bool:
    vendor, _, kind = resource.partition("/")
    return vendor in ("nvidia.com", "amd.com", "gpu.intel.com", "habana.ai") and not kind.endswith("monitoring")


def tolerations(node: NodeFacts) -> tuple[Mapping[str, str], ...]:
    """Exists instead of a value: the same taint is written with `present` and without."""
    taints = {(taint["key"], taint.get("effect", "")) for taint in node.taints if node.is_gpu_taint(taint["key"])}
    return tuple({"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(taints))


def is_gpu_node(node: NodeFacts) -> bool:
    # An explicit 0 of a stopped plugin still shows that there are GPUs.
    return any(is_device(name) for name in node.allocatable) or bool(tolerations(node))
