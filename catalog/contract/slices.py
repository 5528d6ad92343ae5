"""Contracts of a part of a GPU that hardware isolates: MIG slices and AMD partitions."""

from __future__ import annotations

import re

from catalog.contract.types import INTERRUPTION, PART, YES, Axes, Contract, Guarantee, gib


def mig_slice(axes: Axes) -> Contract:
    """One MIG slice: with its own resource name (strategy mixed), as nvidia.com/gpu (single), or by a claim (DRA)."""
    return Contract(
        promises=_mig_promises(axes),
        neighbours="Not shared; other slices of the same GPU have other users.",
        suits=(
            "Notebooks, tests and small models: memory and compute are isolated, and the GPU also serves others.",
            "Serving a model that fits: other pods cannot use its memory or its compute.",
        ),
        avoid=(
            "Training on several GPUs: slices cannot exchange data directly, so NCCL between them fails.",
            "Programs that sometimes need more memory: the size of a slice is fixed.",
            "Two slices for one program: CUDA shows a process only one slice.",
        ),
        expected=(
            "No utilisation in nvidia-smi: the driver does not measure it for a slice.",
            "The name of the whole GPU in nvidia-smi with one MIG device below it: that device is yours.",
            "An out-of-memory error at the size of the slice: the rest of the GPU is for other users.",
            _name_of(axes),
        ),
        incident=(
            "No CUDA device in the pod although a slice was allocated: the slice is gone or its driver is broken.",
            "A memory size that differs from the class: the GPU has a different MIG layout than planned.",
            "A layout that stays pending or failed: nodes of the class have fewer slices than they should.",
        ),
    )


def _name_of(axes: Axes) -> str:
    if axes.interface == "dra":
        return "A claim that stays pending: no slice of this profile is free, and the claim waits until a slice is."
    if axes.resource == "nvidia.com/gpu":
        return (
            "A slice that is requested as nvidia.com/gpu: all GPUs of these nodes have the same MIG layout, and "
            "slices use the resource name of a GPU (MIG strategy single)."
        )
    return (
        "A pod that requests nvidia.com/gpu and waits: a slice has its own resource name here"
        f"{f', {axes.resource}' if axes.resource else ''} (MIG strategy mixed)."
    )


def _mig_promises(axes: Axes) -> tuple[Guarantee, ...]:
    size = gib(axes.memory_mib) if axes.memory_mib else f"the memory of {axes.partition}"
    # `1g.10gb.me` on a node, `1g.10gb+me` in a claim; `-me` says that there are none.
    media = ", with media engines of the GPU" if re.search(r"[.+]me(\.|$)", axes.partition) else ""
    media = ", with graphics APIs" if re.search(r"[.+]gfx$", axes.partition) else media
    return (
        Guarantee(
            "Memory",
            YES,
            "Isolated",
            f"{size}, in hardware.",
            "Each slice has its own memory and cache, which no other slice can address.",
        ),
        Guarantee(
            "Compute",
            YES,
            "Isolated",
            f"the compute units of {axes.partition}{media}; no traffic between GPUs.",
            "The multiprocessors of a slice serve only that slice; the driver opens no direct path between slices.",
        ),
        Guarantee(
            "Fault isolation",
            PART,
            "Partial",
            "a reset of the GPU still ends all its slices.",
            "An error of another program stays in its slice; an error of the GPU itself does not.",
        ),
        Guarantee(
            "Jitter",
            PART,
            "Little",
            "power and clocks are shared with the other slices.",
            "Multiprocessors, cache and memory bandwidth are separate; heat, power and the link to the host are not.",
        ),
        Guarantee(
            "Telemetry",
            PART,
            "Per slice",
            "memory and activity, but no utilisation in percent.",
            "The driver measures memory and activity per slice, and utilisation only for whole GPUs.",
        ),
        INTERRUPTION,
    )


def amd_partition(axes: Axes) -> Contract:
    """One partition of an AMD GPU: compute mode and memory mode, `cpx_nps4` for example."""
    compute, _, memory = axes.partition.partition("_")
    size = gib(axes.memory_mib) if axes.memory_mib else f"what the mode {axes.partition} gives one partition"
    if memory in ("", "nps1"):
        apart = "In this memory mode all partitions of a GPU use all its memory stacks, so bandwidth is shared."
    else:
        apart = (
            f"The mode {memory} gives groups of partitions their own memory stacks; partitions of a group share them."
        )
    return Contract(
        promises=(
            Guarantee("Memory", PART, "Limited", f"{size}, enforced by the driver.", apart),
            Guarantee(
                "Compute",
                YES,
                "Isolated",
                f"the compute dies that the mode {compute} gives one partition.",
                "A partition consists of whole dies of the GPU, and no die serves two partitions.",
            ),
            Guarantee(
                "Fault isolation",
                PART,
                "Partial",
                "a reset of the GPU still ends all its partitions.",
                "Programs are separate; the GPU's firmware and power are common to all partitions.",
            ),
            Guarantee(
                "Jitter",
                PART,
                "Some",
                "memory bandwidth, power and links are shared with other partitions.",
                "Dies and their cache are separate; the network between dies, heat and power are not.",
            ),
            Guarantee(
                "Telemetry",
                PART,
                "Partly per partition",
                "activity by partition, but power and heat only for the whole GPU.",
                "A partition has counters for its own dies; sensors are on the GPU.",
            ),
            INTERRUPTION,
        ),
        neighbours="Not shared; other partitions of the same GPU have other users.",
        suits=(
            "Many models of moderate size: each has its own dies, and a GPU serves several users.",
            "Tests of ROCm programs: a partition behaves like a small GPU.",
        ),
        avoid=(
            "Models larger than one partition: its memory is fixed.",
            "Work limited by memory bandwidth: partitions share the memory stacks.",
            "Programs built for CUDA: an AMD GPU needs an image with ROCm.",
        ),
        expected=(
            "More devices on a node than GPUs: each partition is listed as a device.",
            "An out-of-memory error at the size of the partition: the rest of the GPU is for other users.",
            "Bandwidth that changes with the load of other partitions: memory stacks are shared.",
        ),
        incident=(
            "A partition missing in rocm-smi in the pod: its mode was changed, or its driver is broken.",
            "A memory size that differs from the usual: the GPU has a different mode than planned.",
        ),
    )
