"""The metrics of a node with NVIDIA GPUs as dcgm-exporter serves them: with the fields of its file
`dcp-metrics-included.csv`, and those of ECC, NVLink and slowdowns that a site has to add to it. Pure.

A MIG instance has rows of its own for its activity and memory, and no DCGM_FI_DEV_GPU_UTIL. What a sensor of the card
shows has one row per card. A card that pods share has rows for one of the pods, as without KUBERNETES_VIRTUAL_GPUS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from devcluster.monitoring.assignment import Occupant, Occupants
from devcluster.monitoring.devices import Card, GpuNode
from devcluster.monitoring.exposition import Family, Labels
from devcluster.monitoring.profiles import unit
from devcluster.monitoring.readings import CardReading, reserved_mib

XID_TEXTS = {
    0: "No Error",
    13: "Graphics Engine Exception",
    31: "GPU memory page fault",
    48: "Double Bit ECC Error",
    63: "ECC page retirement or row remapping recording event",
    74: "NVLINK Error",
    79: "GPU has fallen off the bus",
    94: "Contained ECC error",
}
# Bit 6 of the reasons: the hardware lowers clocks because of the temperature.
HOT_REASON = 64
# Name → (kind, help): of a device, then of a card.
OF_DEVICE = {
    "DCGM_FI_DEV_FB_FREE": ("gauge", "Framebuffer memory free (in MiB)."),
    "DCGM_FI_DEV_FB_USED": ("gauge", "Framebuffer memory used (in MiB)."),
    "DCGM_FI_DEV_FB_RESERVED": ("gauge", "Framebuffer memory reserved (in MiB)."),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gauge", "Ratio of time the graphics engine is active."),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("gauge", "Ratio of cycles the tensor (HMMA) pipe is active."),
    "DCGM_FI_PROF_DRAM_ACTIVE": (
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
    ),
}
OF_UNSPLIT_CARD = {
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "GPU utilization (in %)."),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gauge", "Memory utilization (in %)."),
    "DCGM_FI_DEV_ENC_UTIL": ("gauge", "Encoder utilization (in %)."),
    "DCGM_FI_DEV_DEC_UTIL": ("gauge", "Decoder utilization (in %)."),
}
OF_CARD = {
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "SM clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEM_CLOCK": ("gauge", "Memory clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEMORY_TEMP": ("gauge", "Memory temperature (in C)."),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", "GPU temperature (in C)."),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "Power draw (in W)."),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("counter", "Total energy consumption since boot (in mJ)."),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("counter", "Total number of PCIe retries."),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "Value of the last XID error encountered."),
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": ("gauge", "vGPU License status"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("counter", "Number of remapped rows for uncorrectable errors"),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("counter", "Number of remapped rows for correctable errors"),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("gauge", "Whether remapping of rows has failed"),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("counter", "Total number of double-bit volatile ECC errors."),
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": ("counter", "Total number of NVLink retries."),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("gauge", "Reasons why clocks are lowered, as bits."),
}
FIELDS = {**OF_DEVICE, **OF_UNSPLIT_CARD, **OF_CARD}


def families(
    node: GpuNode, occupants: Occupants, readings: Iterable[CardReading], energy_j: Mapping[str, float]
) -> list[Family]:
    """`energy_j`: consumed until now, by UUID of the card."""
    samples: dict[str, list[tuple[Labels, float]]] = {name: [] for name in FIELDS}
    for card, reading in zip(node.cards, readings, strict=True):
        of_card = _labels(node, card)
        for position, device in enumerate(card.devices):
            instance = {"GPU_I_PROFILE": device.profile.replace(".me", "+me"), "GPU_I_ID": str(device.number)}
            labels = of_card | (instance if card.is_split else {})
            labels |= _pod_labels(node, card, position, occupants)
            for name, value in _of_device(card, position, reading):
                samples[name].append((labels, value))
        if not card.is_split:
            of_card |= _pod_labels(node, card, 0, occupants)
            for name, value in _of_unsplit_card(card, reading):
                samples[name].append((of_card, value))
        for name, value in _of_card(card, reading, energy_j.get(card.uuid, 0.0)):
            xid = {"err_code": str(reading.faults.xid), "err_msg": XID_TEXTS.get(reading.faults.xid, "Unknown Error")}
            samples[name].append((of_card | (xid if name == "DCGM_FI_DEV_XID_ERRORS" else {}), value))
    return [Family(name, *FIELDS[name], tuple(those)) for name, those in samples.items() if those]


def _labels(node: GpuNode, card: Card) -> dict[str, str]:
    return {
        "gpu": str(card.index),
        "UUID": card.uuid,
        "pci_bus_id": card.pci_bus_id,
        "device": f"nvidia{card.index}",
        "modelName": card.model.name,
        "Hostname": node.name,
        "DCGM_FI_DRIVER_VERSION": node.driver_version,
    }


def _pod_labels(node: GpuNode, card: Card, position: int, occupants: Occupants) -> dict[str, str]:
    those = occupants.get((card.index, position), ())
    if not those:
        return {}
    first: Occupant = those[0]
    labels = {"container": first.container, "namespace": first.namespace, "pod": first.pod}
    if first.claim:
        labels |= {
            "dra_claim_name": first.claim,
            "dra_claim_namespace": first.namespace,
            "dra_driver_name": node.dra_driver,
            "dra_pool_name": node.name,
            "dra_device_name": card.devices[position].dra_name,
        }
    return labels


def _of_device(card: Card, position: int, reading: CardReading) -> Iterable[tuple[str, float]]:
    device, seen = card.devices[position], reading.devices[position]
    reserved = reserved_mib(card, position)
    yield "DCGM_FI_DEV_FB_FREE", device.memory_mib - reserved - seen.used_mib
    yield "DCGM_FI_DEV_FB_USED", seen.used_mib
    yield "DCGM_FI_DEV_FB_RESERVED", reserved
    yield "DCGM_FI_PROF_GR_ENGINE_ACTIVE", round(seen.active, 6)
    yield "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", round(seen.active * (0.3 + 0.3 * unit(card.uuid, "tensor")), 6)
    yield "DCGM_FI_PROF_DRAM_ACTIVE", round(seen.active * (0.2 + 0.3 * unit(card.uuid, "dram")), 6)


def _of_unsplit_card(card: Card, reading: CardReading) -> Iterable[tuple[str, float]]:
    yield "DCGM_FI_DEV_GPU_UTIL", round(100 * reading.active)
    yield "DCGM_FI_DEV_MEM_COPY_UTIL", round(100 * reading.active * (0.2 + 0.3 * unit(card.uuid, "dram")))
    yield "DCGM_FI_DEV_ENC_UTIL", 0
    yield "DCGM_FI_DEV_DEC_UTIL", 0


def _of_card(card: Card, reading: CardReading, energy_j: float) -> Iterable[tuple[str, float]]:
    faults = reading.faults
    yield "DCGM_FI_DEV_SM_CLOCK", reading.clock_mhz
    yield "DCGM_FI_DEV_MEM_CLOCK", card.model.memory_clock_mhz
    yield "DCGM_FI_DEV_MEMORY_TEMP", reading.temperature_c + 4
    yield "DCGM_FI_DEV_GPU_TEMP", reading.temperature_c
    yield "DCGM_FI_DEV_POWER_USAGE", reading.power_w
    yield "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", round(energy_j * 1000)
    yield "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 0
    yield "DCGM_FI_DEV_XID_ERRORS", faults.xid
    yield "DCGM_FI_DEV_VGPU_LICENSE_STATUS", 0
    # A double-bit error is remapped, unless there is no row left.
    yield "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", faults.double_bit_errors + (8 if faults.has_remap_failure else 0)
    yield "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 0
    yield "DCGM_FI_DEV_ROW_REMAP_FAILURE", int(faults.has_remap_failure)
    yield "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", faults.double_bit_errors
    yield "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", faults.nvlink_replays
    yield "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", HOT_REASON if faults.is_hot else 0
