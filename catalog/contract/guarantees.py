"""What a class guarantees, computed from its axes and never typed in: vendor × partition × sharing × interface → words.

Pure. The sentences describe what the hardware and its drivers really do: time-slicing is never described as a fraction
of a GPU. Where each comes from: NVIDIA's MIG user guide, the device plugins of NVIDIA, AMD, Intel and
Habana, NVIDIA's DRA driver, AMD's guide to partitions.
"""

from __future__ import annotations

from dataclasses import replace

from catalog.contract import exclusive, shared, slices
from catalog.contract.types import SPOT_NODES, Axes, Contract

_CLAIMED_PILOT = (
    "Services in production: NVIDIA's DRA driver allocates GPUs as a technology preview, which NVIDIA does not support "
    "in production, so this class is a pilot."
)

_SPOT_SUITS = "Jobs that write checkpoints: they continue from the last one on another node."
_SPOT_AVOID = (
    "Work that cannot be repeated: a spot node is reclaimed with minutes of notice or none, and memory is lost."
)
_SPOT_EXPECTED = (
    "An interruption at any time: the provider reclaims a spot node, and the run restarts when another node is there."
)


def contract_of(axes: Axes) -> Contract:
    """Returns what a class with these axes guarantees, whom it suits and what support treats as an incident.

    Guarantees on memory, compute and faults come first: they decide what may run here. Then jitter, telemetry,
    interruption.
    """
    found = _contract_of(axes)
    if axes.interface == "dra" and axes.vendor == "nvidia":
        found = replace(found, tier="pilot", avoid=(*found.avoid, _CLAIMED_PILOT))
    return _on_spot(found) if axes.is_spot else found


def _on_spot(found: Contract) -> Contract:
    return replace(
        found,
        promises=(*found.promises, SPOT_NODES),
        suits=(*found.suits, _SPOT_SUITS),
        avoid=(*found.avoid, _SPOT_AVOID),
        expected=(*found.expected, _SPOT_EXPECTED),
    )


def _contract_of(axes: Axes) -> Contract:
    if axes.interface == "none":
        return exclusive.without_gpu()
    if axes.sharing == "mps":
        return shared.mps(axes)
    if axes.sharing != "none":
        return shared.time_sliced(axes)
    if not axes.is_slice:
        return exclusive.whole_gpu(axes)
    return slices.amd_partition(axes) if axes.vendor == "amd" else slices.mig_slice(axes)
