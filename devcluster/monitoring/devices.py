"""The physical GPUs of a simulated node, their parts, and the units that its device plugin makes of them. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from devcluster.client.annotations import SIMULATED
from devcluster.client.types import Json
from devcluster.controlplane.hardware import gpu_uuid

NVIDIA, AMD = "nvidia", "amd"
# Compute slices of a card in MIG mode, and memory slices.
COMPUTE_SLICES, MEMORY_SLICES = 7, 8
# How many instances of this many compute slices fit on a card without others.
MOST_INSTANCES = {1: 7, 2: 3, 3: 2, 4: 1, 7: 1}
# The first id that NVIDIA's driver gives an instance of this many compute slices.
FIRST_INSTANCE_ID = {1: 7, 2: 3, 3: 1, 4: 1, 7: 0}
PARTITIONS = {"spx": 1, "dpx": 2, "qpx": 4, "cpx": 8}
_MIG = re.compile(r"nvidia\.com/mig-(?P<profile>\d+g\.\d+gb(?:\.me)?)(?:\.shared)?")
_PARTITIONED = re.compile(r"amd\.com/(?P<mode>[a-z]px)_nps\d")


@dataclass(frozen=True)
class GpuModel:
    """`name` as the driver reports it. `clocks_mhz`: idle and at most."""

    name: str
    memory_mib: int
    reserved_mib: int
    idle_w: float
    most_w: float
    clocks_mhz: tuple[int, int]
    memory_clock_mhz: int


MODELS = {
    "NVIDIA-A100-SXM4-80GB": GpuModel("NVIDIA A100-SXM4-80GB", 81_920, 634, 62, 400, (210, 1410), 1593),
    "NVIDIA-H100-80GB-HBM3": GpuModel("NVIDIA H100 80GB HBM3", 81_559, 551, 71, 700, (345, 1980), 2619),
    "AMD_Instinct_MI300X_OAM": GpuModel("AMD_Instinct_MI300X_OAM", 196_592, 0, 142, 750, (132, 2100), 1300),
}


@dataclass(frozen=True)
class Device:
    """What a pod gets: a whole card, or a part of one. `profile`: of MIG (`1g.10gb`) or a partition mode (`cpx`), ""
    for a whole card. `number`: of the MIG instance or partition. `dra_name`: in its ResourceSlice.
    """

    memory_mib: int
    profile: str = ""
    number: int = 0
    dra_name: str = ""


@dataclass(frozen=True)
class Card:
    index: int
    uuid: str
    pci_bus_id: str
    model: GpuModel
    devices: tuple[Device, ...]

    @property
    def is_split(self) -> bool:
        return bool(self.devices[0].profile)


# (index of the card, position of the device on it)
Place = tuple[int, int]


@dataclass(frozen=True)
class GpuNode:
    """`units`: for each resource the place of each unit, in the order in which they are given to pods: with replicas,
    every device gets its first pod before one gets a second.
    """

    name: str
    vendor: str
    driver_version: str
    cards: tuple[Card, ...]
    units: Mapping[str, tuple[Place, ...]]
    dra_driver: str = ""


def gpu_node(node: Json, slices: Iterable[Json] = ()) -> GpuNode | None:
    """Returns None for a node that has no exporter: not simulated, or without GPUs of NVIDIA or AMD. `slices`: the
    ResourceSlices of the node.
    """
    meta = node["metadata"]
    if meta.get("annotations", {}).get(SIMULATED) != "fake":
        return None
    for resource_slice in slices:
        if (found := _of_slice(meta, resource_slice["spec"])) is not None:
            return found
    capacity = {name: int(amount) for name, amount in node["status"].get("capacity", {}).items() if "/" in name}
    counts = {name: count for name, count in capacity.items() if count > 0}
    if any(name.startswith("nvidia.com/") for name in counts):
        return _nvidia(meta["name"], meta.get("labels", {}), counts)
    if any(name.startswith("amd.com/") for name in counts):
        return _amd(meta["name"], meta.get("labels", {}), counts)
    return None


def _nvidia(name: str, labels: Mapping[str, str], counts: Mapping[str, int]) -> GpuNode:
    product = labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
    product, _, single = product.partition("-MIG-")
    model = model_of(product, int(labels.get("nvidia.com/gpu.memory", 0)) if not single else 0)
    replicas: dict[str, int] = {}
    memory = {single: int(labels.get("nvidia.com/gpu.memory", 0))} if single else {}
    parts: list[tuple[str, str]] = []  # (resource, profile) of each instance
    for resource, units in counts.items():
        if found := _MIG.fullmatch(resource):
            plain = resource.removesuffix(".shared")
            replicas[resource] = max(1, int(labels.get(f"{plain}.replicas", 1)))
            memory[found["profile"]] = int(labels.get(f"{plain}.memory", 0))
            parts += [(resource, found["profile"])] * (units // replicas[resource])
        elif resource.startswith("nvidia.com/gpu"):
            replicas[resource] = max(1, int(labels.get("nvidia.com/gpu.replicas", 1)))
            parts += [(resource, single)] * (units // replicas[resource])
    split = [(resource, profile) for resource, profile in parts if profile]
    whole = [resource for resource, profile in parts if not profile]
    dealt = _dealt(split, model, memory, 1 if single else int(labels.get("nvidia.com/gpu.count", 1)) - len(whole))
    devices = [(Device(model.memory_mib),) for _ in whole] + [tuple(device for _, device in card) for card in dealt]
    places: dict[str, list[Place]] = defaultdict(list)
    for index, resource in enumerate(whole):
        places[resource].append((index, 0))
    for index, card in enumerate(dealt, start=len(whole)):
        for position, (resource, _) in enumerate(card):
            places[resource].append((index, position))
    return GpuNode(
        name,
        NVIDIA,
        labels.get("nvidia.com/cuda.driver-version.full", "580.95.05"),
        tuple(_card(name, index, model, of_card) for index, of_card in enumerate(devices)),
        {resource: tuple(found) * replicas[resource] for resource, found in places.items()},
    )


def _dealt(
    split: list[tuple[str, str]], model: GpuModel, memory: Mapping[str, int], cards: int
) -> list[list[tuple[str, Device]]]:
    """Puts the instances on at least so many cards, the large ones first and each on the emptiest card, as layouts of
    several equal cards are. `memory`: in MiB by profile, 0 for unknown.
    """
    if not split:
        return []
    sizes = [compute_slices(profile) for _, profile in split]
    if len(set(sizes)) == 1:
        cards = max(cards, math.ceil(len(split) / MOST_INSTANCES[sizes[0]]))
    cards = max(cards, math.ceil(sum(sizes) / COMPUTE_SLICES))
    dealt: list[list[tuple[str, Device]]] = [[] for _ in range(cards)]
    used = [0] * cards
    numbers: dict[tuple[int, int], int] = defaultdict(int)
    for resource, profile in sorted(split, key=lambda one: (-compute_slices(one[1]), one[1])):
        index = used.index(min(used))
        size = compute_slices(profile)
        first = FIRST_INSTANCE_ID[size]
        number = first + numbers[index, first]
        numbers[index, first] += 1
        used[index] += size
        dealt[index].append((resource, Device(memory.get(profile) or memory_of(profile, model), profile, number)))
    return [card for card in dealt if card]


def compute_slices(profile: str) -> int:
    return int(profile.partition("g.")[0])


def memory_of(profile: str, model: GpuModel) -> int:
    """In MiB, by the memory slices of the profile."""
    gb = int(profile.partition("g.")[2].partition("gb")[0])
    eighths = max(1, round(MEMORY_SLICES * gb * 1024 / model.memory_mib))
    return model.memory_mib * eighths // MEMORY_SLICES


def _amd(name: str, labels: Mapping[str, str], counts: Mapping[str, int]) -> GpuNode:
    model = model_of(labels.get("amd.com/gpu.product-name", ""), 0)
    cards: list[tuple[Device, ...]] = []
    places: dict[str, list[Place]] = defaultdict(list)
    for resource, units in counts.items():
        found = _PARTITIONED.fullmatch(resource)
        mode = found["mode"] if found else "spx"
        each = PARTITIONS.get(mode, 1)
        for _ in range(units // each):
            places[resource] += [(len(cards), number) for number in range(each)]
            profile = mode if each > 1 else ""
            cards.append(tuple(Device(model.memory_mib // each, profile, number) for number in range(each)))
    return GpuNode(
        name,
        AMD,
        labels.get("amd.com/gpu.driver-version", "6.12.12"),
        tuple(_card(name, index, model, devices) for index, devices in enumerate(cards)),
        {resource: tuple(found) for resource, found in places.items()},
    )


def _of_slice(meta: Json, spec: Json) -> GpuNode | None:
    """Whole GPUs are cards. The simulated slices do not say which GPU a MIG device is part of: all are of one."""
    vendor = {"gpu.nvidia.com": NVIDIA, "gpu.amd.com": AMD}.get(spec["driver"])
    if vendor is None or not spec.get("devices"):
        return None
    cards: list[Card] = []
    parts: list[Device] = []
    numbers: dict[int, int] = defaultdict(int)
    first_part: Json = {}
    for one in spec["devices"]:
        attributes = {key: next(iter(value.values())) for key, value in one["attributes"].items()}
        model = model_of(str(attributes.get("productName", "")).replace(" ", "-"), 0)
        memory = _mib(one["capacity"]["memory"]["value"])
        if profile := attributes.get("profile"):
            first_part = first_part or {"uuid": attributes["uuid"], "model": model}
            first = FIRST_INSTANCE_ID[compute_slices(profile)]
            parts.append(Device(memory, profile, first + numbers[first], one["name"]))
            numbers[first] += 1
            continue
        bus = attributes.get("resource.kubernetes.io/pciBusID", "")
        bus = f"0000{bus.upper()}" if bus else _bus_id(len(cards))
        cards.append(Card(len(cards), attributes["uuid"], bus, model, (Device(memory, dra_name=one["name"]),)))
    if parts:
        index = len(cards)
        cards.append(Card(index, first_part["uuid"], _bus_id(index), first_part["model"], tuple(parts)))
    version = next(iter(spec["devices"]))["attributes"].get("driverVersion", {}).get("version", "")
    return GpuNode(meta["name"], vendor, _driver_version(version), tuple(cards), {}, spec["driver"])


def _driver_version(version: str) -> str:
    """580.95.5, a semantic version, is 580.95.05."""
    if not version:
        return "6.12.12"
    *before, last = version.split(".")
    return ".".join([*before, last.zfill(2)])


def model_of(product: str, memory_mib: int) -> GpuModel:
    """`memory_mib`: of an unknown product."""
    known = MODELS.get(product)
    return known or GpuModel(product.replace("-", " ", 1), memory_mib or 81_920, 634, 62, 400, (210, 1410), 1593)


def _card(node: str, index: int, model: GpuModel, devices: tuple[Device, ...]) -> Card:
    return Card(index, gpu_uuid(node, index), _bus_id(index), model, devices)


def _bus_id(index: int) -> str:
    return f"00000000:{0x07 + 0x20 * index:02X}:00.0"


def _mib(quantity: str) -> int:
    return int(quantity.removesuffix("Mi")) if quantity.endswith("Mi") else int(quantity.removesuffix("Gi")) * 1024
