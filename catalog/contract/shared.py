"""Contracts of a GPU or slice that several workloads use: time-sliced, or at the same time by MPS."""

from __future__ import annotations

from catalog.contract.types import INTERRUPTION, NO, PART, Axes, Contract, Guarantee, gib

_TELEMETRY = Guarantee(
    "Telemetry",
    NO,
    "Of the whole card",
    "it cannot be told who did what.",
    "The card counts its work as a whole, and every pod on it is shown the same figures.",
)


def time_sliced(axes: Axes) -> Contract:
    """Time-slicing by NVIDIA's device plugin, on a card or a MIG slice; Intel's shared devices; shared by a claim."""
    what = "slice" if axes.is_slice else "card"
    how = _how(axes)
    return Contract(
        promises=_promises_in_turns(axes, what, how),
        neighbours=f"Shared with {axes.others}{' on one slice' if axes.is_slice else ''}.",
        suits=(
            "Notebooks and tests with short bursts: the pauses of one are the turns of another.",
            "Courses and first steps: an error costs a restart and no more.",
        ),
        avoid=(
            "Long training and measurements: the time of a step depends on the others, so no two runs compare.",
            "Serving with a promised answer time: every turn of a neighbour is a delay of yours.",
            "Programs that need a known amount of memory: nothing is kept for you.",
        ),
        expected=(
            f"An out-of-memory error while your own program is small: a neighbour filled the {what}.",
            "Speed that changes from minute to minute: neighbours come and go.",
            f"A program that ends with the fault of another: all users of the {what} share its faults.",
            "The same utilisation shown for every pod: it is measured once for all of them.",
            f"2 units are refused: a second turn may be on the same {what} and adds neither memory nor speed.",
            *_counted(axes),
        ),
        incident=(
            f"All users of one {what} fail again after a restart: then it is the hardware, not a neighbour.",
            f"More than {axes.replicas} pods on one {what}: the device plugin counts wrongly.",
            f"No {what} in the pod although a unit was given: the hardware or its driver.",
        ),
        tier="pilot" if axes.interface == "dra" else "",
    )


def _how(axes: Axes) -> str:
    """Who hands out the turns."""
    if axes.interface == "dra":
        return "The DRA driver lets several claims use the same device; its settings for that are experimental."
    if axes.vendor == "intel":
        return "Intel's device plugin only counts: it gives the same card to several pods and limits none of them."
    return "The device plugin gives the same hardware to several pods, and the driver switches between them."


def _promises_in_turns(axes: Axes, what: str, how: str) -> tuple[Guarantee, ...]:
    size = f"the same {gib(axes.memory_mib)}" if axes.memory_mib else "the same memory"
    verb = "uses" if axes.replicas == 2 else "use"
    fence = " Other slices of the card stay out: the fence around the slice holds." if axes.is_slice else ""
    return (
        Guarantee(
            "Memory",
            NO,
            "Not fenced",
            f"{axes.others} {verb} {size}; one of them can fill it.",
            f"Every process sees all memory of the {what} and nothing limits how much it takes.{fence}",
        ),
        Guarantee(
            "Compute",
            NO,
            "Taking turns",
            f"not a part of a {what}; how much you get depends on the others.",
            f"{how} No turn is guaranteed, and a second unit brings no second turn.",
        ),
        Guarantee(
            "Faults",
            NO,
            "Not fenced",
            "a neighbour's fault may end your process.",
            f"All processes on the {what} share its faults, and a reset ends every one of them.",
        ),
        Guarantee(
            "Jitter",
            NO,
            "Strong",
            "each turn of a neighbour is a pause of yours.",
            "While another process computes, yours stands still.",
        ),
        _TELEMETRY,
        INTERRUPTION,
    )


def _counted(axes: Axes) -> tuple[str, ...]:
    """How units add up, which looks like more hardware than there is; seven is what most cards can be cut into."""
    if not axes.is_slice:
        return (f"More units than cards: each card is counted {axes.replicas} times, and every unit is a turn on one.",)
    return (
        f"More units than slices: each slice is counted {axes.replicas} times, so 7 slices on a card are "
        f"{7 * axes.replicas} units, and every unit is a turn on one slice.",
    )


def mps(axes: Axes) -> Contract:
    """CUDA's Multi-Process Service: clients compute side by side, each with limits that the driver keeps."""
    clients, threads = axes.replicas, f"{100 / axes.replicas:.3g} %"
    limit = f"at most {gib(axes.memory_mib)} each" if axes.memory_mib else f"at most 1/{clients} of the card each"
    return Contract(
        promises=(
            Guarantee(
                "Memory",
                PART,
                "Limited",
                f"{limit}, by the driver and not by hardware.",
                f"Each client's limit is the memory of the card divided by {clients}; programs still share one card.",
            ),
            Guarantee(
                "Compute",
                PART,
                "Capped",
                f"at most {threads} of the threads; caches are shared.",
                f"Each of {clients} clients may use {threads} of the card's threads at a time; nothing reserves them.",
            ),
            Guarantee(
                "Faults",
                NO,
                "Not fenced",
                f"a fatal fault can end all {clients} clients of the card.",
                "All clients of a card run through one server, and a fatal fault reaches each of them.",
            ),
            Guarantee(
                "Jitter",
                PART,
                "Some",
                "neighbours compute at the same time and share memory bandwidth.",
                "Threads are capped; bandwidth and caches are not.",
            ),
            _TELEMETRY,
            INTERRUPTION,
        ),
        neighbours=f"Shared with {axes.others}: {clients} clients per card.",
        suits=(
            "Many small, steady CUDA processes of one kind: they compute side by side without waiting for turns.",
            "Small model servers that trust each other: each has a known limit of memory.",
        ),
        avoid=(
            "Anything that must not end with a stranger's fault: clients share the faults of the card.",
            "Services in production: sharing by MPS is experimental in the device plugin, so this class is a pilot.",
            "Programs that need more than their limit now and then: the driver refuses the rest.",
        ),
        expected=(
            "An out-of-memory error at your limit while the card has memory left: the limit is per client.",
            "All clients of a card end together: one of them had a fatal fault.",
            "Speed that depends on the neighbours' use of memory bandwidth: it is shared.",
            "2 units are refused: the device plugin gives a pod one client of a card.",
        ),
        incident=(
            "Clients that cannot start because the MPS server does not answer: its daemon on the node is down.",
            "A client that gets more memory than its limit: the limit was not set.",
            f"More than {clients} clients on one card: the device plugin counts wrongly.",
        ),
        tier="pilot",
    )
