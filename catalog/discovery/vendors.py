"""What each vendor's labels report about one resource of a node. The name of the resource alone is not enough."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import lru_cache

from catalog.discovery import mig_placement, mig_profiles
from catalog.discovery.naming import SLUG_LIMIT, class_title, product_slug
from catalog.discovery.types import ClassProposal, Device, NodeFacts, UnlabelledCapacity
from cluster.manifests.names import dns_label
from cluster.manifests.node_affinity import GAUDI_NODE_LABELS

INVALID = "-MIG-INVALID"
# Number of partitions of a GPU in AMD's compute modes; CPX makes one of each compute die.
AMD_PARTS: Mapping[str, int] = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4, "cpx": 8}
MI300A_DIES = 6
_MIG_COUNT = re.compile(r"nvidia\.com/mig-(.+)\.count")


def of_resource(node: NodeFacts, resource: str, units: int) -> ClassProposal | None:
    """None: not a device. Raises UnlabelledCapacity."""
    vendor, _, kind = resource.partition("/")
    if vendor == "nvidia.com":
        return _nvidia(node, resource, kind)
    if vendor == "amd.com":
        return _amd(node, resource, kind)
    if vendor == "gpu.intel.com" and not kind.endswith("monitoring"):
        return _intel(node, resource, kind, units)
    if resource == "habana.ai/gaudi":
        return ClassProposal("gaudi", "Intel Gaudi", "habana", "Gaudi", resource, _gaudi_label(node))
    return None


def _nvidia(node: NodeFacts, resource: str, kind: str) -> ClassProposal:
    """Reads the labels of GPU Feature Discovery. They begin with `gpu.` for what is counted as a GPU and with
    `mig-<profile>.` for slices with their own resource names; the profile is read as written there (`1g.10gb.me`).
    """

    def label(name: str, default: str = "") -> str:
        return node.labels.get(f"nvidia.com/{name}", default)

    about = kind.removesuffix(".shared")
    if not label("gpu.product"):
        raise UnlabelledCapacity(
            f"Node {node.name} has {resource}, but no label states its product and sharing: "
            "GPU Feature Discovery does not run there."
        )
    product, single, profile = label("gpu.product").removesuffix("-SHARED").partition("-MIG-")
    partition = about.removeprefix("mig-") if about != "gpu" else profile if single else "none"
    sharing, replicas = _sharing(node, resource, about)
    if sharing == "mps" and partition != "none":
        raise UnlabelledCapacity(
            f"Node {node.name} reports {resource} as shared by MPS, which device plugins do not support for MIG slices."
        )
    memory = _number(label(f"{about}.memory"))
    whole = _number(label("gpu.memory")) if about != "gpu" else None
    weight = _share(product, partition, whole, _number(label(f"{about}.slices.gi")))
    separating = ["gpu.product", f"{about}.sharing-strategy"] + ([f"{about}.replicas"] if sharing != "none" else [])
    words = [product_slug(product)]
    words += [re.sub(r"[.+]", "-", partition)] if partition != "none" else []
    is_single = partition != "none" and about == "gpu"
    words += ["single"] if is_single else []
    has_shared_name = kind.endswith(".shared")
    slicing = "shared" if has_shared_name else "time-sliced"
    words += {"time-slicing": [slicing], "mps": ["mps"]}.get(sharing, [])
    counts_as_whole = sharing == "time-slicing" and not has_shared_name
    return ClassProposal(
        slug=dns_label("-".join(words), limit=SLUG_LIMIT),
        name=class_title(
            product,
            f"MIG {partition}" if partition != "none" else "",
            shared=f"{'MPS' if sharing == 'mps' else 'time-sliced'} ×{replicas}" if sharing != "none" else "",
            note=_note(resource, is_single=is_single, counts_as_whole=counts_as_whole),
        ),
        vendor="nvidia",
        product=product,
        resource=resource,
        node_labels={f"nvidia.com/{name}": label(name) for name in separating if label(name)},
        partition=partition,
        sharing=sharing,
        replicas=replicas,
        # Only MPS limits each share's memory; a time-sliced workload sees all memory and may allocate all of it.
        memory_mib=memory // replicas if memory and sharing == "mps" else memory,
        weight=weight / replicas,
    )


def _sharing(node: NodeFacts, resource: str, about: str) -> tuple[str, int]:
    """Returns strategy and replicas; ("none", 1) if not shared. Older releases of GPU Feature Discovery report only the
    number of replicas; that was always time-slicing.
    """
    replicas = _number(node.labels.get(f"nvidia.com/{about}.replicas", "")) or 1
    strategy = node.labels.get(f"nvidia.com/{about}.sharing-strategy") or ("time-slicing" if replicas > 1 else "none")
    is_named_shared = resource.endswith(".shared") or _product_of(node, about).endswith("-SHARED")
    if (strategy != "none") != (replicas > 1) or (is_named_shared and strategy == "none"):
        raise UnlabelledCapacity(
            f"Node {node.name} has contradicting labels for {resource}: sharing-strategy is {strategy}, "
            f"replicas {replicas}, and its name {'states' if is_named_shared else 'does not state'} that it is shared."
        )
    return strategy, replicas


def _product_of(node: NodeFacts, about: str) -> str:
    return node.labels.get(f"nvidia.com/{about}.product", "")


def invalid_product(node: NodeFacts) -> str:
    """The product label of a node whose MIG layout breaks strategy single, or ""."""
    product = _product_of(node, "gpu")
    return product if product.endswith(INVALID) else ""


def _amd(node: NodeFacts, resource: str, kind: str) -> ClassProposal:
    """The node labeller's labels. Under mixed naming the resource is the mode (`amd.com/cpx_nps4`); else a label is."""
    identity = next((name for name in ("product-name", "device-id") if f"amd.com/gpu.{name}" in node.labels), "")
    if not identity:
        raise UnlabelledCapacity(
            f"Node {node.name} has {resource}, but no label states its product: AMD's node labeller does not run there."
        )
    value = node.labels[f"amd.com/gpu.{identity}"]
    product = value if identity == "product-name" else f"AMD GPU {value}"
    mode = kind if kind != "gpu" else node.labels.get("amd.com/compute-memory-partition", "")
    is_whole = mode.partition("_")[0] in ("", "spx")
    parts = AMD_PARTS.get(mode.partition("_")[0], 1)
    if mode.startswith("cpx") and "MI300A" in product:
        parts = MI300A_DIES
    separating = (f"amd.com/gpu.{identity}", "amd.com/compute-memory-partition")
    vram = re.fullmatch(r"(\d+)G", node.labels.get("amd.com/gpu.vram", ""))
    slug = product_slug(product) + ("" if is_whole else f"-{mode.replace('_', '-')}")
    return ClassProposal(
        slug=dns_label(slug, limit=SLUG_LIMIT),
        name=class_title(product, "" if is_whole else f"{mode.upper()} partition"),
        vendor="amd",
        product=product,
        resource=resource,
        node_labels={name: node.labels[name] for name in separating if name in node.labels},
        partition="none" if is_whole else mode,
        # The label is for the GPU; the driver decides how much of it one partition may use, and no label shows that.
        memory_mib=int(vram[1]) * 1024 if vram and is_whole else None,
        weight=Fraction(1, parts),
    )


def _intel(node: NodeFacts, resource: str, kind: str, units: int) -> ClassProposal:
    """NFD's labels count the GPUs; the plugin's `-shared-dev-num` multiplies units, which no label states."""
    device = re.compile(r"gpu\.intel\.com/device-id\.([0-9a-f-]+)\.present")
    ids = sorted(match[1] for name in node.labels if (match := device.fullmatch(name)))
    cards = sum(_number(node.labels.get(f"gpu.intel.com/device-id.{one}.count", "")) or 0 for one in ids)
    if not cards or units % cards:
        raise UnlabelledCapacity(
            f"Node {node.name} has {units} {resource} on {cards or 'an unknown number of'} GPUs by its labels: "
            "it is not known whether they are shared."
        )
    replicas = units // cards
    product = node.labels.get("gpu.intel.com/product", "")
    words = ["intel", kind, ids[0].rpartition("-")[2], *(["shared"] if replicas > 1 else [])]
    return ClassProposal(
        slug=dns_label("-".join(words), limit=SLUG_LIMIT),
        name=class_title(
            f"Intel {product}" if product else f"Intel GPU {ids[0]}",
            shared=f"time-sliced ×{replicas}" if replicas > 1 else "",
            note=kind,
        ),
        vendor="intel",
        product=product or f"Intel GPU {ids[0]}",
        resource=resource,
        node_labels={f"gpu.intel.com/device-id.{ids[0]}.present": "true"},
        sharing="time-slicing" if replicas > 1 else "none",
        replicas=replicas,
        weight=Fraction(1, replicas),
    )


def of_devices(node: NodeFacts, group: list[Device], resource: str) -> ClassProposal:
    """Devices of one kind in the node's slices; `resource`: how Kueue counts their class."""
    first = group[0]
    product = first.attributes.get("productName", first.driver)
    profile = first.attributes.get("profile", "")
    conditions = [f'device.attributes["{first.driver}"].productName == "{product}"']
    conditions += [f'device.attributes["{first.driver}"].profile == "{profile}"'] if profile else []
    slug = product_slug(product) + (f"-{re.sub(r'[.+]', '-', profile)}" if profile else "")
    label = "nvidia.com/gpu.product"
    return ClassProposal(
        slug=dns_label(slug, limit=SLUG_LIMIT),
        name=class_title(product, f"MIG {profile}" if profile else ""),
        vendor=first.driver.removeprefix("gpu.").partition(".")[0],
        product=product,
        resource=resource,
        node_labels={label: node.labels[label]} if label in node.labels else {},
        partition=profile or "none",
        interface="dra",
        device_class=device_class_of(first),
        device_selector=" && ".join(conditions),
        memory_mib=first.memory_mib,
        weight=_share(product, profile or "none", None, _compute_slices(profile)),
    )


def _share(product: str, partition: str, whole_mib: int | None, compute_slices: int | None) -> Fraction:
    """The larger share of a GPU that a unit takes. `whole_mib`: memory of the whole GPU. Of a GPU whose profiles are
    not known it is the compute slices out of seven, the most that any GPU has: staff sees the proposal before it
    counts.
    """
    if partition == "none":
        return Fraction(1)
    card = mig_profiles.card_of(product, whole_mib)
    share = mig_profiles.share_of(partition, card) if card is not None else None
    return share or (Fraction(compute_slices, 7) if compute_slices else Fraction(1))


def weight_by_layout(node: NodeFacts, found: ClassProposal, devices: Collection[Device] = ()) -> Fraction | None:
    """The weight of a class by the MIG layout of this node; its own weight if no layout can change it.

    None: the layout is not known, or differs from GPU to GPU. `devices`: all of the node, for a class of devices.
    """
    if found.vendor != "nvidia" or found.partition == "none":
        return found.weight
    is_mixed = found.resource.startswith("nvidia.com/mig-") and found.interface != "dra"
    whole_mib = _number(node.labels.get("nvidia.com/gpu.memory", "")) if is_mixed else None
    card = mig_profiles.card_of(found.product, whole_mib)
    if card is None or mig_profiles.profile_of(found.partition, card) is None:
        return None
    # With strategy single all slices have one profile, and equal slices never add up to more than their GPU.
    if card.full_sums == (Fraction(1),) or not (is_mixed or found.interface == "dra"):
        return found.weight
    if is_mixed:
        counts, cards = Counter(mig_counts(node.labels)), mig_gpus(node.labels, node.allocatable)
    else:
        slices = [
            one
            for one in devices
            if one.attributes.get("productName") == found.product and one.attributes.get("profile")
        ]
        counts = Counter(one.attributes["profile"] for one in slices)
        parents = {one.attributes.get("parentUUID", "") for one in slices}
        cards = 0 if "" in parents else len(parents)
    fractions = _fractions(found.product, whole_mib, frozenset(counts.items()), cards)
    fraction = (fractions or {}).get(found.partition)
    return None if fraction is None else fraction / found.replicas


def mig_counts(labels: Mapping[str, str]) -> dict[str, int]:
    """Number of slices by profile on a node with MIG strategy mixed, however many workloads share each."""
    found = {match[1]: _number(value) or 0 for name, value in labels.items() if (match := _MIG_COUNT.fullmatch(name))}
    return {profile: count for profile, count in sorted(found.items()) if count}


def mig_gpus(labels: Mapping[str, str], allocatable: Mapping[str, float]) -> int:
    """Number of GPUs in MIG mode on a node with strategy mixed; 0 if it is not known. The label counts all GPUs of the
    product. Those that are not in MIG mode are units, or as many units as share them.
    """
    count = _number(labels.get("nvidia.com/gpu.count", "")) or 0
    units = sum(allocatable.get(name, 0) for name in ("nvidia.com/gpu", "nvidia.com/gpu.shared"))
    return count - int(units) // (_number(labels.get("nvidia.com/gpu.replicas", "")) or 1)


@lru_cache(maxsize=1024)
def _fractions(
    product: str, whole_mib: int | None, counts: frozenset[tuple[str, int]], cards: int
) -> Mapping[str, Fraction] | None:
    """Many nodes have the same layout, and each asks for every profile of it."""
    card = mig_profiles.card_of(product, whole_mib)
    return None if card is None else mig_placement.fractions_by_layout(card, dict(counts), cards)


def _compute_slices(profile: str) -> int | None:
    found = re.match(r"(\d+)g\.", profile)
    return int(found[1]) if found else None


def device_class_of(device: Device) -> str:
    """NVIDIA's driver ships `gpu.nvidia.com` for whole GPUs and `mig.nvidia.com` for slices; others one per driver."""
    if device.driver == "gpu.nvidia.com" and device.attributes.get("type", "gpu") != "gpu":
        return f"{device.attributes['type']}.nvidia.com"
    return device.driver


def _gaudi_label(node: NodeFacts) -> dict[str, str]:
    """A label that says this hardware is there; a flavor with a topology needs one."""
    found = next((name for name in GAUDI_NODE_LABELS if name in node.labels), "kubernetes.io/os")
    return {found: node.labels.get(found, "linux")}


def _note(resource: str, *, is_single: bool, counts_as_whole: bool) -> str:
    """Returns what distinguishes two classes of the same hardware. `counts_as_whole`: time-sliced units keep the
    resource name of unshared ones.
    """
    if is_single:
        return "strategy single"
    return f"exposed as {resource}" if counts_as_whole else ""


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
