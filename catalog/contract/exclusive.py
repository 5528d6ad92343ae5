"""Contracts of whole GPUs of every vendor, and of nodes without a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.contract.types import INTERRUPTION, PART, YES, Axes, Contract, Guarantee, gib


@dataclass(frozen=True)
class _Vendor:
    """`foreign`: sentence about programs that do not run here; `broken`: about the marks of broken hardware."""

    foreign: str
    broken: str


_NVIDIA = _Vendor(
    foreign="",
    broken="An Xid error in the log of the node, or a card that is missing in the pod: the hardware or its driver.",
)
_VENDORS = {
    "nvidia": _NVIDIA,
    "amd": _Vendor(
        foreign="Programs built for CUDA: an AMD card needs an image with ROCm.",
        broken="A card that rocm-smi in the pod does not list, or a reset in its log: the hardware or its driver.",
    ),
    "intel": _Vendor(
        foreign="Programs built for CUDA: an Intel card needs an image with oneAPI.",
        broken="A card that is missing in the pod, or a hang in the log of the node: the hardware or its driver.",
    ),
    "habana": _Vendor(
        foreign="Programs built for CUDA: Gaudi needs an image with Intel's Gaudi software and its build of PyTorch.",
        broken="A card that hl-smi in the pod does not list: the hardware or its driver.",
    ),
}
_OTHER = _Vendor(foreign="", broken="A card that is missing in the pod: the hardware or its driver.")


def whole_gpu(axes: Axes) -> Contract:
    """One card, one pod: by the device plugin or by a resource claim."""
    vendor = _VENDORS.get(axes.vendor, _OTHER)
    avoid = (
        "Notebooks that mostly wait for their person: the card stands idle and nobody else can have it.",
        "Programs that need a few GiB: the rest of the card is paid for and lost; a slice or a share fits better.",
    )
    return Contract(
        promises=_promises_of_whole(axes),
        neighbours="Shared with nobody.",
        suits=(
            "Training and large models: memory and compute are all yours.",
            "Work on several cards of one node: whole cards can exchange data directly.",
            "Serving with a promised answer time: nobody takes a turn on your card.",
        ),
        avoid=(*avoid, vendor.foreign) if vendor.foreign else avoid,
        expected=(
            "An out-of-memory error of a program larger than the card: nothing enlarges its memory.",
            "Waiting while cards are free on several nodes: a pod runs on one node and needs all its cards there.",
            *_claimed(axes),
        ),
        incident=(
            vendor.broken,
            "Memory of the card in use before your program starts: an earlier process was not cleaned up.",
            "The same program much slower than before, on one node only: heat, power or a broken link slows the card.",
        ),
    )


def _promises_of_whole(axes: Axes) -> tuple[Guarantee, ...]:
    if axes.interface == "dra":
        given = "A resource claim holds the card for your pod, and the driver gives it to no other."
    else:
        given = "The device plugin gives the card to one container and to no other."
    return (
        Guarantee(
            "Memory", YES, "Yours", f"all {gib(axes.memory_mib)}." if axes.memory_mib else "all of the card.", given
        ),
        Guarantee(
            "Compute",
            YES,
            "Yours",
            "the whole card.",
            "No other process runs on it; its own heat and power limits remain.",
        ),
        Guarantee(
            "Faults",
            YES,
            "Yours alone",
            "a neighbour's crash does not reach you.",
            "Nobody else has a process on the card; a fault of the whole node still ends your run.",
        ),
        Guarantee(
            "Jitter",
            YES,
            "None from neighbours",
            "nobody else computes on the card.",
            "What remains comes from the node, whose network and disks are shared.",
        ),
        Guarantee(
            "Telemetry",
            YES,
            "Exact",
            "what the card reports is what you do.",
            "One card has one pod, so each of its figures belongs to that pod.",
        ),
        INTERRUPTION,
    )


def _claimed(axes: Axes) -> tuple[str, ...]:
    if axes.interface != "dra":
        return ()
    return ("A claim that stays pending: no free device matches its selector, and it waits until one does.",)


def without_gpu() -> Contract:
    """Cores and memory of a node; no card."""
    return Contract(
        promises=(
            Guarantee(
                "Memory",
                YES,
                "Yours",
                "what the class says is reserved on the node.",
                "The scheduler sets it aside, and a program that takes more is ended.",
            ),
            Guarantee(
                "Compute",
                YES,
                "Yours",
                "its cpu cores are reserved on the node.",
                "The scheduler sets them aside; idle cores of others may add to them.",
            ),
            Guarantee(
                "Faults",
                PART,
                "Mostly yours",
                "the node itself is shared with others.",
                "A crash of another pod stays in its container; a fault of the node ends all of them.",
            ),
            Guarantee(
                "Jitter",
                PART,
                "Some",
                "caches, network and disks are shared.",
                "Only cores and memory are reserved for a pod.",
            ),
            Guarantee(
                "Telemetry",
                YES,
                "Exact",
                "cores and memory are measured per container.",
                "The kernel accounts for each container by itself.",
            ),
            INTERRUPTION,
        ),
        neighbours="Other pods run on the same node; your cores and memory are reserved.",
        suits=(
            "Preparing data, editing and tests: none of it needs a card.",
            "Work that waits for a card: it can begin here and leave the cards to others.",
        ),
        avoid=("Training and large models: without a card they take many times longer.",),
        expected=(
            "A program that says no GPU was found: this class has none.",
            "A program ended for its memory (OOMKilled): it took more than the class reserves.",
        ),
        incident=("A node that goes away under a run: the run did nothing to cause it.",),
    )
