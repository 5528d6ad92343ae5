"""What the sensors of a card and its devices show, given the pods on it and its faults. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from devcluster.monitoring import profiles
from devcluster.monitoring.assignment import Occupants
from devcluster.monitoring.devices import Card

# Annotations of a node. Faults by card: "0=xid:79,1=thermal,2=ecc:3,3=remap,4=nvlink:7".
FAULTS, EXPORTER = "devcluster/gpu-fault", "devcluster/gpu-exporter"
SILENT = "silent"
_FAULT = re.compile(r"(?P<card>\d+)=(?P<kind>xid|thermal|ecc|remap|nvlink)(?::(?P<number>\d+))?")
THERMAL_C, COOL_C, WARM_BY_C = 93, 31, 42


@dataclass(frozen=True)
class CardFaults:
    """`xid`: code of the last error, 0 for none."""

    xid: int = 0
    is_hot: bool = False
    double_bit_errors: int = 0
    has_remap_failure: bool = False
    nvlink_replays: int = 0


@dataclass(frozen=True)
class DeviceReading:
    """`active`: 0 to 1."""

    active: float
    used_mib: int


@dataclass(frozen=True)
class CardReading:
    devices: tuple[DeviceReading, ...]
    active: float
    power_w: float
    temperature_c: int
    clock_mhz: int
    faults: CardFaults = field(default_factory=CardFaults)


def faults_of(annotation: str) -> dict[int, CardFaults]:
    """What is not understood is ignored."""
    found: dict[int, dict[str, int]] = {}
    for entry in annotation.split(","):
        if match := _FAULT.fullmatch(entry.strip()):
            found.setdefault(int(match["card"]), {})[match["kind"]] = int(match["number"] or 1)
    return {
        card: CardFaults(
            kinds.get("xid", 0), "thermal" in kinds, kinds.get("ecc", 0), "remap" in kinds, kinds.get("nvlink", 0)
        )
        for card, kinds in found.items()
    }


def read_card(
    card: Card, occupants: Occupants, *, at: float, cores: Mapping[str, float], faults: CardFaults | None = None
) -> CardReading:
    """`cores`: how many processor cores the local processes of a notebook use, by pod uid."""
    devices = tuple(_read_device(card, position, occupants, at, cores) for position in range(len(card.devices)))
    faults = faults or CardFaults()
    memory = sum(device.memory_mib for device in card.devices)
    active = sum(
        reading.active * device.memory_mib / memory for reading, device in zip(devices, card.devices, strict=True)
    )
    model = card.model
    slow, fast = model.clocks_mhz
    clock = fast if any(device.active > 0.05 for device in devices) else slow
    return CardReading(
        devices,
        active,
        round(model.idle_w + (model.most_w - model.idle_w) * 0.9 * active, 3),
        THERMAL_C if faults.is_hot else COOL_C + round(WARM_BY_C * active),
        min(clock, (slow + fast) // 2) if faults.is_hot else clock,
        faults,
    )


def _read_device(
    card: Card, position: int, occupants: Occupants, at: float, cores: Mapping[str, float]
) -> DeviceReading:
    device = card.devices[position]
    key = f"{card.uuid}/{device.number}"
    running = [one for one in occupants.get((card.index, position), ()) if one.is_running]
    active, held = 0.0, 0.0
    for one in running:
        if one.profile:
            active += profiles.activity(one.profile, uid=one.uid, device=key, at=at, started_at=one.started_at)
        else:
            active += profiles.measured_activity(cores.get(one.uid, 0.0), uid=one.uid, device=key, at=at)
        held += profiles.memory_held(one.profile, uid=one.uid) / len(running)
    usable = device.memory_mib - reserved_mib(card, position)
    return DeviceReading(min(1.0, active), round(usable * held))


def reserved_mib(card: Card, position: int) -> int:
    """The driver's own memory, of a MIG instance by its size."""
    return card.model.reserved_mib * card.devices[position].memory_mib // card.model.memory_mib
