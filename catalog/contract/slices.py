"""Contracts of a part of a GPU that hardware isolates: MIG slices and AMD partitions."""

from __future__ import annotations

import re

from catalog.contract.types import INTERRUPTION, PART, YES, Axes, Contract, Guarantee, gib


def mig_slice(axes: Axes) -> Contract:
    """One MIG slice, sold under its own name (strategy mixed), as nvidia.com/gpu (single), or by a claim (DRA)."""
    return Contract(
        promises=_mig_promises(axes),
        neighbours="Shared with nobody; other slices of the same card have users of their own.",
        suits=(
            "Notebooks, tests and small models: memory and compute are your own, and the card serves others too.",
            "Serving a model that fits: a neighbour cannot take its memory or its turn.",
        ),
        avoid=(
            "Training on several cards: slices cannot exchange data directly, so NCCL between them fails.",
            "Programs that need more memory now and then: a slice does not grow.",
            "Two slices for one program: CUDA shows a process one slice only.",
        ),
        expected=(
            "No figure for utilisation in nvidia-smi: the driver does not measure it for a slice.",
            "The name of the whole card in nvidia-smi with one MIG device below it: that device is yours.",
            "An out-of-memory error at the size of the slice: the rest of the card belongs to others.",
            _name_of(axes),
        ),
        incident=(
            "No CUDA device in the pod although a slice was given: the slice is gone or its driver is broken.",
            "Another size of memory than the class says: the card was cut in another way than planned.",
            "A layout that stays pending or failed: nodes of the class have fewer slices than they should.",
        ),
    )


def _name_of(axes: Axes) -> str:
    if axes.interface == "dra":
        return "A claim that stays pending: no slice of this profile is free, and it waits until one is."
    if axes.resource == "nvidia.com/gpu":
        return (
            "A slice that is requested as nvidia.com/gpu: every card of these nodes is cut alike, and a slice goes by "
            "the name of a card (MIG strategy single)."
        )
    return (
        "A pod that asks for nvidia.com/gpu and waits: a slice here has a name of its own"
        f"{f', {axes.resource}' if axes.resource else ''} (MIG strategy mixed)."
    )


def _mig_promises(axes: Axes) -> tuple[Guarantee, ...]:
    size = gib(axes.memory_mib) if axes.memory_mib else f"the memory of {axes.partition}"
    # `1g.10gb.me` on a node, `1g.10gb+me` in a claim; `-me` says that there are none.
    media = ", with the media engines of the card" if re.search(r"[.+]me(\.|$)", axes.partition) else ""
    return (
        Guarantee(
            "Memory",
            YES,
            "Yours",
            f"{size}, fenced in hardware.",
            "Each slice has its own memory and cache, and no other slice can address them.",
        ),
        Guarantee(
            "Compute",
            YES,
            "Yours",
            f"the compute units of {axes.partition}{media}; no traffic between cards.",
            "The multiprocessors of a slice serve nobody else; the driver opens no direct path from slice to slice.",
        ),
        Guarantee(
            "Faults",
            PART,
            "Mostly yours",
            "a reset of the card still ends all its slices.",
            "An error of a neighbour's program stays in its slice; an error of the card itself does not.",
        ),
        Guarantee(
            "Jitter",
            PART,
            "Little",
            "power and clocks are shared with the other slices.",
            "Multiprocessors, cache and memory bandwidth are apart; heat, power and the way to the host are not.",
        ),
        Guarantee(
            "Telemetry",
            PART,
            "Of the slice",
            "memory and activity, but no utilisation in percent.",
            "The driver counts memory and activity for each slice, and utilisation for whole cards only.",
        ),
        INTERRUPTION,
    )


def amd_partition(axes: Axes) -> Contract:
    """One partition of an AMD card: compute mode and memory mode, `cpx_nps4` for example."""
    compute, _, memory = axes.partition.partition("_")
    size = gib(axes.memory_mib) if axes.memory_mib else f"what the mode {axes.partition} gives one partition"
    if memory in ("", "nps1"):
        apart = "In this memory mode all partitions of a card use all its memory stacks, so bandwidth is shared."
    else:
        apart = (
            f"The mode {memory} keeps groups of partitions on memory stacks of their own; within a group they share."
        )
    return Contract(
        promises=(
            Guarantee("Memory", PART, "Limited", f"{size}, by the driver.", apart),
            Guarantee(
                "Compute",
                YES,
                "Yours",
                f"the compute dies that the mode {compute} gives one partition.",
                "A partition is made of whole dies of the card, and no die serves two partitions.",
            ),
            Guarantee(
                "Faults",
                PART,
                "Mostly yours",
                "a reset of the card still ends all its partitions.",
                "Programs are apart; the card's firmware and power are common to all partitions.",
            ),
            Guarantee(
                "Jitter",
                PART,
                "Some",
                "memory bandwidth, power and links are shared with other partitions.",
                "Dies and their cache are apart; the network between dies, heat and power are not.",
            ),
            Guarantee(
                "Telemetry",
                PART,
                "Of the card, in part",
                "activity by partition, but power and heat of the whole card.",
                "A partition has counters of its own dies; sensors sit on the card.",
            ),
            INTERRUPTION,
        ),
        neighbours="Shared with nobody; other partitions of the same card have users of their own.",
        suits=(
            "Many models of moderate size: each has dies of its own, and a card serves several people.",
            "Tests of ROCm programs: a partition behaves like a small card.",
        ),
        avoid=(
            "Models larger than one partition: its memory does not grow.",
            "Work that lives on memory bandwidth: neighbours share the memory stacks.",
            "Programs built for CUDA: an AMD card needs an image with ROCm.",
        ),
        expected=(
            "More devices on a node than it has cards: each partition is listed as a device.",
            "An out-of-memory error at the size of the partition: the rest of the card belongs to others.",
            "Bandwidth that changes with the neighbours: memory stacks are shared.",
        ),
        incident=(
            "A partition that rocm-smi in the pod does not list: its mode was changed, or its driver is broken.",
            "Another size of memory than usual: the card has another mode than planned.",
        ),
    )
