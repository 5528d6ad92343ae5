"""Contracts of whole GPUs of every vendor, and of nodes without a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.contract.types import INTERRUPTION, PART, YES, Axes, Contract, Guarantee, gib


@dataclass(frozen=True)
class _Vendor:
    """`foreign`: sentence about programs that do not run here; `broken`: about the signs of broken hardware."""

    foreign: str
    broken: str


_NVIDIA = _Vendor(
    foreign="",
    broken="An Xid error in the log of the node, or a GPU missing in the pod: a fault of the hardware or its driver.",
)
_VENDORS = {
    "nvidia": _NVIDIA,
    "amd": _Vendor(
        foreign="Programs built for CUDA: an AMD GPU needs an image with ROCm.",
        broken="A GPU missing in rocm-smi in the pod, or a reset in its log: a fault of the hardware or its driver.",
    ),
    "intel": _Vendor(
        foreign="Programs built for CUDA: an Intel GPU needs an image with oneAPI.",
        broken="A GPU missing in the pod, or a hang in the log of the node: a fault of the hardware or its driver.",
    ),
    "habana": _Vendor(
        foreign="Programs built for CUDA: Gaudi needs an image with Intel's Gaudi software and its build of PyTorch.",
        broken="An accelerator missing in hl-smi in the pod: a fault of the hardware or its driver.",
    ),
}
_OTHER = _Vendor(foreign="", broken="A GPU missing in the pod: a fault of the hardware or its driver.")


def whole_gpu(axes: Axes) -> Contract:
    """One GPU, one pod: by the device plugin or by a ResourceClaim."""
    vendor = _VENDORS.get(axes.vendor, _OTHER)
    avoid = (
        "Notebooks that are mostly idle: the GPU is idle too, and no other pod can use it.",
        "Programs that need a few GiB: the rest of the GPU is charged but unused; use a slice or a share instead.",
    )
    return Contract(
        promises=_promises_of_whole(axes),
        neighbours="Not shared.",
        suits=(
            "Training and large models: the pod has all memory and compute of the GPU.",
            "Several GPUs on one node: whole GPUs can exchange data directly.",
            "Serving with a latency target: no other pod computes on your GPU.",
        ),
        avoid=(*avoid, vendor.foreign) if vendor.foreign else avoid,
        expected=(
            "An out-of-memory error of a program larger than the GPU: its memory cannot be extended.",
            "Waiting although GPUs are free on several nodes: a pod runs on one node and needs all its GPUs there.",
            *_claimed(axes),
        ),
        incident=(
            vendor.broken,
            "GPU memory in use before your program starts: an earlier process was not cleaned up.",
            "The same program much slower than before, on one node only: heat, power or a broken link slows the GPU.",
        ),
    )


def _promises_of_whole(axes: Axes) -> tuple[Guarantee, ...]:
    if axes.interface == "dra":
        given = "A ResourceClaim reserves the GPU for your pod, and the driver gives it to no other pod."
    else:
        given = "The device plugin gives the GPU to one container only."
    return (
        Guarantee(
            "Memory",
            YES,
            "Isolated",
            f"all {gib(axes.memory_mib)}." if axes.memory_mib else "all memory of the GPU.",
            given,
        ),
        Guarantee(
            "Compute",
            YES,
            "Isolated",
            "the whole GPU.",
            "No other process runs on it; its own thermal and power limits remain.",
        ),
        Guarantee(
            "Fault isolation",
            YES,
            "Full",
            "a crash of another pod does not affect your run.",
            "No other pod has a process on the GPU; a fault of the whole node still ends your run.",
        ),
        Guarantee(
            "Jitter",
            YES,
            "None from other pods",
            "no other pod computes on the GPU.",
            "The remaining jitter comes from the node, whose network and disks are shared.",
        ),
        Guarantee(
            "Telemetry",
            YES,
            "Exact",
            "the metrics of the GPU are those of your pod.",
            "Only one pod uses the GPU, so all its metrics belong to that pod.",
        ),
        INTERRUPTION,
    )


def _claimed(axes: Axes) -> tuple[str, ...]:
    if axes.interface != "dra":
        return ()
    return (
        "A claim that stays pending: no free device matches its selector, and the claim waits until a device does.",
    )


def without_gpu() -> Contract:
    """Cores and memory of a node; no GPU."""
    return Contract(
        promises=(
            Guarantee(
                "Memory",
                YES,
                "Reserved",
                "the memory stated by the class is reserved on the node.",
                "The scheduler reserves it, and a program that uses more is killed.",
            ),
            Guarantee(
                "Compute",
                YES,
                "Reserved",
                "its CPU cores are reserved on the node.",
                "The scheduler reserves them; idle cores of other pods may be used in addition.",
            ),
            Guarantee(
                "Fault isolation",
                PART,
                "Partial",
                "the node itself is shared with other pods.",
                "A crash of another pod stays in its container; a fault of the node ends all pods.",
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
                "CPU and memory are measured per container.",
                "The kernel accounts for each container separately.",
            ),
            INTERRUPTION,
        ),
        neighbours="Other pods run on the same node; your cores and memory are reserved.",
        suits=(
            "Preparing data, editing and tests: none of them needs a GPU.",
            "Work that waits for a GPU: it can start here and leave the GPUs to others.",
        ),
        avoid=("Training and large models: without a GPU they take many times longer.",),
        expected=(
            "A program that reports that no GPU was found: this class has none.",
            "A program killed for its memory use (OOMKilled): it used more than the class reserves.",
        ),
        incident=("A node that disappears during a run: the run did not cause it.",),
    )
