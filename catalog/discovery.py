"""Nodes and device slices → one proposed class per kind of capacity. Values in, values out.

A kind is what a person would tell apart: product × partition × sharing × the resource name that counts it. Names alone
do not tell: `nvidia.com/gpu` may be a whole card, a quarter of one or a MIG slice. Labels of GPU Feature Discovery and
of AMD's and Intel's labellers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cluster.names import dns_label, short_hash

# Kueue counts DRA devices under names that its manager configuration maps to device classes; no API tells them.
# Equal to deploy/kueue/manager-config.yaml (a test compares).
DEVICE_CLASS_RESOURCES: Mapping[str, str] = {"gpu.nvidia.com": "dra.portal/h100"}

# Taints of vendors, whose tolerations the pod fence in deploy/ admits; any other taint keeps tenants away on purpose.
VENDOR_TAINT = re.compile(r"(nvidia\.com|amd\.com|gpu\.intel\.com|habana\.ai)/.+")
SLUG_LIMIT = 40


@dataclass(frozen=True)
class Node:
    """What discovery needs of a node. `allocatable` in plain numbers: devices as units, cpu in cores, memory in GiB."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    allocatable: Mapping[str, float]


@dataclass(frozen=True)
class Device:
    """One device of a ResourceSlice; attribute names without the driver's domain."""

    driver: str
    node: str
    attributes: Mapping[str, str]
    memory_mib: int | None


@dataclass(frozen=True)
class Proposal:
    """Fields as in catalog.GpuClass; `units` and `nodes` say where it was seen."""

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
    units_per_workload: int = 1
    cpu_per_unit: int = 1
    memory_gib_per_unit: int = 1
    units: int = 0
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Discovery:
    """`problems`: capacity that was seen and cannot be proposed, each as a sentence for staff."""

    proposals: tuple[Proposal, ...]
    problems: tuple[str, ...]


def discover(nodes: Iterable[Node], devices: Iterable[Device] = ()) -> Discovery:
    """Deterministic: the same hardware gives the same slugs, in any order."""
    by_name = {node.name: node for node in nodes}
    seen = [
        proposal
        for node in by_name.values()
        for resource, units in node.allocatable.items()
        if units >= 1 and (proposal := _from_resource(node, resource, int(units))) is not None
    ]
    problems: set[str] = set()
    for group in _device_groups(devices).values():
        node = by_name.get(group[0].node)
        if node is None:
            continue
        resource = DEVICE_CLASS_RESOURCES.get(_device_class(group[0]))
        if resource is None:
            problems.add(
                f"Device class {_device_class(group[0])} on node {node.name} is not counted by Kueue: "
                "add it to deviceClassMappings of its manager configuration."
            )
            continue
        seen.append(_from_devices(node, group, resource))
    if any(not _is_gpu_node(node) and node.name not in {d.node for d in devices} for node in by_name.values()):
        seen += [p for p in map(_cpu_only, by_name.values()) if p is not None]
    return Discovery(tuple(_merge(seen)), tuple(sorted(problems)))


def _from_resource(node: Node, resource: str, units: int) -> Proposal | None:
    vendor, _, kind = resource.partition("/")
    if vendor == "nvidia.com":
        found = _nvidia(node, resource, kind)
    elif vendor == "amd.com":
        found = _amd(node, resource, kind)
    elif vendor == "gpu.intel.com" and not kind.endswith("monitoring"):
        found = _intel(node, resource, kind)
    elif resource == "habana.ai/gaudi":
        found = Proposal("gaudi", "Intel Gaudi", "habana", "Gaudi", resource, _present(node, "gaudi"))
    else:
        return None
    return _sized(found, node, units)


def _nvidia(node: Node, resource: str, kind: str) -> Proposal:
    def label(name: str, default: str = "") -> str:
        return node.labels.get(f"nvidia.com/{name}", default)

    raw_product = label("gpu.product", "NVIDIA GPU")
    product, partition = raw_product.removesuffix("-SHARED"), "none"
    if kind.startswith("mig-"):
        about = kind.removesuffix(".shared")
        partition = about.removeprefix("mig-")
    else:
        about = "gpu"
        product, single, profile = product.partition("-MIG-")
        partition = profile if single else "none"
    sharing = label(f"{about}.sharing-strategy", "none")
    replicas = max(1, int(label(f"{about}.replicas", "1") or 1))
    memory = _number(label(f"{about}.memory"))
    slices = _number(label("gpu.slices.gi" if about == "gpu" else f"{about}.slices.gi"))
    weight = Fraction(slices, 7) if partition != "none" and slices else Fraction(1)
    # Only MPS limits each share's memory; a time slice sees all of it and may take all of it.
    if memory and sharing == "mps":
        memory //= replicas
    separating = ("gpu.product", "gpu.sharing-strategy", "mig.strategy")
    labels = {f"nvidia.com/{name}": label(name) for name in separating if label(name)}
    words = [_short(product)]
    words += [partition.replace(".", "-").replace("+", "-")] if partition != "none" else []
    words += ["single"] if partition != "none" and about == "gpu" else []
    slicing = "shared" if kind.endswith(".shared") else "time-sliced"
    words += {"time-slicing": [slicing], "mps": ["mps"]}.get(sharing, [])
    return Proposal(
        slug=dns_label("-".join(words), limit=SLUG_LIMIT),
        name=_title(product, partition, sharing, replicas, _note(words)),
        vendor="nvidia",
        product=product,
        resource=resource,
        node_labels=labels,
        partition=partition,
        sharing=sharing,
        replicas=replicas if sharing != "none" else 1,
        memory_mib=memory,
        weight=weight / (replicas if sharing != "none" else 1),
    )


def _amd(node: Node, resource: str, kind: str) -> Proposal:
    product = node.labels.get("amd.com/gpu.product-name", "AMD GPU")
    style = kind if kind != "gpu" else node.labels.get("amd.com/compute-memory-partition", "")
    partition = "none" if style in ("", "spx_nps1") else style
    separating = ("amd.com/gpu.product-name", "amd.com/compute-memory-partition")
    vram = re.fullmatch(r"(\d+)G", node.labels.get("amd.com/gpu.vram", ""))
    slug = _short(product.replace("_", "-")) + (f"-{partition.replace('_', '-')}" if partition != "none" else "")
    return Proposal(
        slug=dns_label(slug, limit=SLUG_LIMIT),
        name=_title(product.replace("_", " "), partition, "none", 1),
        vendor="amd",
        product=product,
        resource=resource,
        node_labels={name: node.labels[name] for name in separating if name in node.labels},
        partition=partition,
        memory_mib=int(vram[1]) * 1024 if vram and partition == "none" else None,
    )


def _intel(node: Node, resource: str, kind: str) -> Proposal:
    device = re.compile(r"gpu\.intel\.com/device-id\.([0-9a-f-]+)\.present")
    ids = sorted(match[1] for name in node.labels if (match := device.fullmatch(name)))
    product = node.labels.get("gpu.intel.com/product") or (f"Intel GPU {ids[0]}" if ids else "Intel GPU")
    labels = {f"gpu.intel.com/device-id.{ids[0]}.present": "true"} if ids else _present(node, "gpu")
    return Proposal(
        slug=dns_label(f"intel-{kind}" + (f"-{ids[0].rpartition('-')[2]}" if ids else ""), limit=SLUG_LIMIT),
        name=f"{product} ({kind})",
        vendor="intel",
        product=product,
        resource=resource,
        node_labels=labels,
    )


def _from_devices(node: Node, group: list[Device], resource: str) -> Proposal:
    first = group[0]
    product = first.attributes.get("productName", first.driver)
    profile = first.attributes.get("profile", "")
    conditions = [f'device.attributes["{first.driver}"].productName == "{product}"']
    conditions += [f'device.attributes["{first.driver}"].profile == "{profile}"'] if profile else []
    slug = _short(product.replace(" ", "-")) + (f"-{profile.replace('.', '-').replace('+', '-')}" if profile else "")
    label = "nvidia.com/gpu.product"
    found = Proposal(
        slug=dns_label(slug, limit=SLUG_LIMIT),
        name=_title(product, profile or "none", "none", 1),
        vendor=first.driver.removeprefix("gpu.").partition(".")[0],
        product=product,
        resource=resource,
        node_labels={label: node.labels[label]} if label in node.labels else {},
        partition=profile or "none",
        interface="dra",
        device_class=_device_class(first),
        device_selector=" && ".join(conditions),
        memory_mib=first.memory_mib,
    )
    return _sized(found, node, len(group), of=len(group))


def _cpu_only(node: Node) -> Proposal | None:
    if _is_gpu_node(node) or node.allocatable.get("cpu", 0) < 1:
        return None
    # One unit is one core and the memory that comes with it on this node.
    cores = int(node.allocatable["cpu"])
    memory = max(1, int(node.allocatable.get("memory", 1) * 0.9 // cores))
    return Proposal(
        slug="cpu",
        name="CPU only",
        vendor="",
        product="",
        resource="",
        node_labels={},
        interface="none",
        weight=Fraction(0),
        units_per_workload=max(1, cores // 2),
        memory_gib_per_unit=memory,
        units=cores,
        nodes=(node.name,),
    )


def _sized(found: Proposal, node: Node, units: int, of: int = 0) -> Proposal:
    """Companion cpu and memory: the node shared out over its devices, a tenth kept back for what else runs there."""
    whole = of or sum(int(n) for name, n in node.allocatable.items() if is_device(name)) or units
    exclusive = found.sharing == "none" and found.partition == "none"
    return replace(
        found,
        tolerations=_tolerations(node),
        # CUDA shows a process one MIG slice, and a second share of a card adds nothing.
        units_per_workload=units if exclusive else 1,
        cpu_per_unit=max(1, int(node.allocatable.get("cpu", 1) * 0.9) // whole),
        memory_gib_per_unit=max(1, int(node.allocatable.get("memory", 1) * 0.9) // whole),
        units=units,
        nodes=(node.name,),
    )


def _merge(seen: Iterable[Proposal]) -> list[Proposal]:
    """One proposal a kind; sizes are the smallest seen, so that a unit fits on each of its nodes."""
    kinds: dict[Any, Proposal] = {}
    for one in sorted(seen, key=lambda proposal: proposal.nodes):
        key = (one.resource, tuple(sorted(one.node_labels.items())), one.device_selector)
        if (known := kinds.get(key)) is None:
            kinds[key] = one
            continue
        kinds[key] = replace(
            known,
            units=known.units + one.units,
            nodes=known.nodes + one.nodes,
            units_per_workload=max(known.units_per_workload, one.units_per_workload),
            cpu_per_unit=min(known.cpu_per_unit, one.cpu_per_unit),
            memory_gib_per_unit=min(known.memory_gib_per_unit, one.memory_gib_per_unit),
        )
    slugs = [proposal.slug for proposal in kinds.values()]
    # Two kinds whose names read alike are told apart by what they are, not by the order in which they were seen.
    return sorted(
        (
            proposal
            if slugs.count(proposal.slug) == 1
            else replace(proposal, slug=f"{proposal.slug[: SLUG_LIMIT - 9]}-{short_hash(repr(key))}")
            for key, proposal in kinds.items()
        ),
        key=lambda proposal: proposal.slug,
    )


def _device_groups(devices: Iterable[Device]) -> dict[Any, list[Device]]:
    groups: dict[Any, list[Device]] = {}
    for device in devices:
        kind = (device.attributes.get("productName", ""), device.attributes.get("profile", ""))
        groups.setdefault((device.node, _device_class(device), *kind), []).append(device)
    return groups


def _device_class(device: Device) -> str:
    """NVIDIA's driver ships `gpu.nvidia.com` for whole cards and `mig.nvidia.com` for slices; others one per driver."""
    if device.driver == "gpu.nvidia.com" and device.attributes.get("type", "gpu") != "gpu":
        return f"{device.attributes['type']}.nvidia.com"
    return device.driver


def is_device(resource: str) -> bool:
    vendor, _, kind = resource.partition("/")
    return vendor in ("nvidia.com", "amd.com", "gpu.intel.com", "habana.ai") and not kind.endswith("monitoring")


def _is_gpu_node(node: Node) -> bool:
    # The explicit 0 of a plugin that stopped still says that there are cards.
    return any(is_device(name) for name in node.allocatable) or bool(_tolerations(node))


def _tolerations(node: Node) -> tuple[Mapping[str, str], ...]:
    """Exists instead of a value: the same taint is written with `present` and without."""
    taints = {(taint["key"], taint.get("effect", "")) for taint in node.taints if VENDOR_TAINT.fullmatch(taint["key"])}
    return tuple({"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(taints))


def _present(node: Node, word: str) -> dict[str, str]:
    """A label that says this hardware is there; a flavor with a topology needs one."""
    names = sorted(name for name, value in node.labels.items() if word in name and value == "true")
    return {names[0]: "true"} if names else {"kubernetes.io/os": node.labels.get("kubernetes.io/os", "linux")}


def _short(product: str) -> str:
    short = re.sub(r"^(nvidia|amd|intel|tesla|instinct)-", "", product.lower())
    return re.sub(r"^(tesla|instinct|geforce)-", "", short)


def _title(product: str, partition: str, sharing: str, replicas: int, note: str = "") -> str:
    title = re.sub(r"^(NVIDIA|AMD) ", "", product.replace("-", " "))
    if partition != "none":
        title += f", {partition} slice"
    if sharing != "none":
        title += f", shared by {replicas}" + (" (MPS)" if sharing == "mps" else " in turns")
    return f"{title}, {note}" if note else title


def _note(words: list[str]) -> str:
    """What tells apart two classes whose hardware reads the same."""
    notes = {"single": "whole node cut", "time-sliced": "counted as whole cards"}
    return next((note for word, note in notes.items() if word in words), "")


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
