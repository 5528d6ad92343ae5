"""What a class promises, computed from its axes and never typed in: partition × sharing × interface → plain sentences.

Pure. The sentences describe what the hardware and its drivers do, not what one hopes for: a share is never sold as a
part of a card. Where each comes from: NVIDIA's documentation of MIG, MPS and time-slicing in its device plugin.
"""

from __future__ import annotations

from dataclasses import dataclass

YES, PART, NO = "yes", "part", "no"


@dataclass(frozen=True)
class Axes:
    """Of one class, values as in GpuClass. `memory_mib`: of one unit, None when the nodes do not say.

    `resource` tells a slice that is sold under a name of its own from one sold as `nvidia.com/gpu`.
    """

    vendor: str
    partition: str
    sharing: str
    replicas: int
    memory_mib: int | None
    interface: str
    resource: str = ""


@dataclass(frozen=True)
class Promise:
    """`level`: yes (yours), part (yours within limits) or no. `lead` and `text` make a sentence; `reason` another."""

    topic: str
    level: str
    lead: str
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Contract:
    """`neighbours`: a sentence. The tuples are sentences too: who it suits, who should not take it, what support
    answers with "that is how it works", and what it takes as an incident. `tier`: "" or "pilot".
    """

    promises: tuple[Promise, ...]
    neighbours: str
    suits: tuple[str, ...]
    avoid: tuple[str, ...]
    expected: tuple[str, ...]
    incident: tuple[str, ...]
    tier: str = ""


def contract(axes: Axes) -> Contract:
    """What a class of these axes promises, whom it suits and what support makes of it."""
    tier = "pilot" if axes.sharing == "mps" else ""
    return Contract(promises(axes), _neighbours(axes), (), (), (), (), tier)


def promises(axes: Axes) -> tuple[Promise, ...]:
    """Memory, compute and faults first: they decide what may run here. Then jitter, telemetry, interruption."""
    if axes.interface == "none":
        return _WITHOUT_GPU
    if axes.sharing == "time-slicing":
        return (*_time_sliced(axes), _UNFENCED_TELEMETRY, _INTERRUPTION)
    if axes.sharing == "mps":
        return (*_mps(axes), _UNFENCED_TELEMETRY, _INTERRUPTION)
    if axes.partition != "none":
        return (*_slice(axes), _INTERRUPTION)
    return (*_whole(axes), _INTERRUPTION)


def gib(mib: int) -> str:
    return f"{mib / 1024:.1f}".removesuffix(".0") + " GiB"


def _neighbours(axes: Axes) -> str:
    if axes.sharing == "none":
        return "Shared with nobody."
    return f"Shared with up to {axes.replicas - 1} other{'' if axes.replicas == 2 else 's'}."


def _whole(axes: Axes) -> tuple[Promise, ...]:
    return (
        Promise("Memory", YES, "Yours", f"all {gib(axes.memory_mib)}." if axes.memory_mib else "all of the card."),
        Promise("Compute", YES, "Yours", "the whole card."),
        Promise("Faults", YES, "Yours alone", "a neighbour's crash does not reach you."),
        Promise("Jitter", YES, "None from neighbours", "nobody else computes on the card."),
        Promise("Telemetry", YES, "Exact", "what the card reports is what you do."),
    )


def _slice(axes: Axes) -> tuple[Promise, ...]:
    size = gib(axes.memory_mib) if axes.memory_mib else f"the {axes.partition} part"
    return (
        Promise("Memory", YES, "Yours", f"{size}, fenced in hardware."),
        Promise("Compute", YES, "Yours", f"the compute units of {axes.partition}; no traffic between cards."),
        Promise("Faults", PART, "Mostly yours", "a reset of the card still ends all its slices."),
        Promise("Jitter", PART, "Little", "power and clocks are shared with the other slices."),
        Promise("Telemetry", PART, "Of the slice", "memory and activity, but no utilisation in percent."),
    )


def _time_sliced(axes: Axes) -> tuple[Promise, ...]:
    what = "slice" if axes.partition != "none" else "card"
    others = axes.replicas - 1
    neighbours = "1 other uses" if others == 1 else f"up to {others} others use"
    return (
        Promise("Memory", NO, "Not fenced", f"{neighbours} the same memory; one of them can fill it."),
        Promise("Compute", NO, "Taking turns", f"not a part of a {what}; how much you get depends on the others."),
        Promise("Faults", NO, "Not fenced", "a neighbour's fault may end your process."),
        Promise("Jitter", NO, "Strong", "each turn of a neighbour is a pause of yours."),
    )


def _mps(axes: Axes) -> tuple[Promise, ...]:
    each = f"at most 1/{axes.replicas} of the card each"
    return (
        Promise("Memory", PART, "Limited", f"{each}, by the driver and not by hardware."),
        Promise("Compute", PART, "Capped", f"at most {100 / axes.replicas:g} % of the threads; caches are shared."),
        Promise("Faults", NO, "Not fenced", f"a fatal fault can end all {axes.replicas} clients of the card."),
        Promise("Jitter", PART, "Some", "neighbours compute at the same time and share memory bandwidth."),
    )


_UNFENCED_TELEMETRY = Promise("Telemetry", NO, "Of the whole card", "it cannot be told who did what.")
_INTERRUPTION = Promise(
    "Interruption", PART, "Not on your own grant", "borrowed units are taken back when their owner needs them."
)
_WITHOUT_GPU = (
    Promise("Memory", YES, "Yours", "what the class says is reserved on the node."),
    Promise("Compute", YES, "Yours", "its cpu cores are reserved on the node."),
    Promise("Faults", PART, "Mostly yours", "the node itself is shared with others."),
    _INTERRUPTION,
)
