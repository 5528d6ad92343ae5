"""The metrics of a node with AMD GPUs as AMD's Device Metrics Exporter serves them. Pure.

Of a partitioned GPU, the first partition has what the sensors of the card show: activity, temperature, clock and
energy. The others report no power and have no other rows but for memory and health.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from devcluster.monitoring.assignment import Occupants
from devcluster.monitoring.devices import Card, GpuNode
from devcluster.monitoring.exposition import Family, Labels
from devcluster.monitoring.profiles import unit
from devcluster.monitoring.readings import CardReading

# All are gauges.
FIELDS = {
    "gpu_package_power": "Current socket power in Watts",
    "gpu_junction_temperature": "Current junction/hotspot temperature in Celsius",
    "gpu_memory_temperature": "Current memory temperature in Celsius",
    "gpu_gfx_activity": "Graphics engine usage in Percentage (0-100)",
    "gpu_umc_activity": "Memory engine usage in Percentage (0-100)",
    "gpu_energy_consumed": "Accumulated energy consumed by the GPU in uJ",
    "gpu_clock": "Clock measure of the GPU in Mhz",
    "gpu_total_vram": "Total VRAM memory of the GPU (in MB)",
    "gpu_used_vram": "Used VRAM memory of the GPU (in MB)",
    "gpu_free_vram": "Free VRAM memory of the GPU (in MB)",
    "gpu_ecc_uncorrect_total": "Total Uncorrectable error count",
    "gpu_health": "Health of the GPU (0 = Unhealthy | 1 = Healthy)",
}


def families(
    node: GpuNode, occupants: Occupants, readings: Iterable[CardReading], energy_j: Mapping[str, float]
) -> list[Family]:
    """`energy_j`: consumed until now, by UUID of the card."""
    samples: dict[str, list[tuple[Labels, float]]] = {name: [] for name in FIELDS}
    for card, reading in zip(node.cards, readings, strict=True):
        for position in range(len(card.devices)):
            labels = _labels(node, card, position, occupants)
            for name, value in _of_device(card, position, reading, energy_j.get(card.uuid, 0.0)):
                clock = {"clock_index": "0", "clock_type": "system"} if name == "gpu_clock" else {}
                samples[name].append((labels | clock, value))
    count = ({"hostname": node.name}, float(sum(len(card.devices) for card in node.cards)))
    total = Family("gpu_nodes_total", "gauge", "Number of GPUs in the node", (count,))
    return [total, *(Family(name, "gauge", FIELDS[name], tuple(those)) for name, those in samples.items())]


def _labels(node: GpuNode, card: Card, position: int, occupants: Occupants) -> dict[str, str]:
    """The exporter's mandatory labels. A device without a pod has them too, empty."""
    those = occupants.get((card.index, position), ())
    first = those[0] if those else None
    mode = card.devices[position].profile or "spx"
    return {
        "gpu_id": str(sum(len(other.devices) for other in node.cards[: card.index]) + position),
        "card_model": card.model.name,
        "gpu_partition_id": str(position),
        "gpu_compute_partition_type": mode,
        "gpu_memory_partition_type": "nps1" if mode == "spx" else "nps4",
        "deployment_mode": "baremetal",
        "serial_number": card.uuid.removeprefix("GPU-")[:12],
        "pod": first.pod if first else "",
        "namespace": first.namespace if first else "",
        "container": first.container if first else "",
        "job_id": "",
        "job_user": "",
        "job_partition": "",
        "hostname": node.name,
    }


def _of_device(card: Card, position: int, reading: CardReading, energy_j: float) -> Iterable[tuple[str, float]]:
    device, seen, faults = card.devices[position], reading.devices[position], reading.faults
    yield "gpu_total_vram", device.memory_mib
    yield "gpu_used_vram", seen.used_mib
    yield "gpu_free_vram", device.memory_mib - seen.used_mib
    yield "gpu_ecc_uncorrect_total", faults.double_bit_errors
    yield "gpu_health", int(not faults.double_bit_errors and not faults.has_remap_failure)
    yield "gpu_package_power", 0 if position else reading.power_w
    if position:
        return
    yield "gpu_junction_temperature", reading.temperature_c
    yield "gpu_memory_temperature", reading.temperature_c - 3
    yield "gpu_gfx_activity", round(100 * reading.active)
    yield "gpu_umc_activity", round(100 * reading.active * (0.2 + 0.3 * unit(card.uuid, "dram")))
    yield "gpu_energy_consumed", round(energy_j * 1_000_000)
    yield "gpu_clock", reading.clock_mhz
