"""What a person needs, whether a class fits, and what rules it out: one sentence each. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum

from catalog.contract.types import Axes
from portal.ui.text import plural

INTERACTIVE, BATCH, SERVING = "interactive", "batch", "serving"
LATENCY, INTERCONNECT = "latency", "interconnect"
VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}


class RequirementStage(IntEnum):
    """What is looked at, in this order. Where nothing is left, the end names the last one that was reached."""

    GPU = 0
    ATTRIBUTES = 1
    LIFE = 2
    KIND = 3
    ISOLATION = 4
    SHARING = 5
    SEVERAL = 6
    MEMORY = 7


@dataclass(frozen=True)
class Requirements:
    """`memory_mib`: the peak on one card, None: nobody knows; `or_more`: it is more than that, without a number.

    `own_part`: a neighbour may neither slow it down nor end it. `cards`: at one time, in one workload. `sensitive`: to
    "latency", to the "interconnect" or to neither (""). `long`: days rather than hours.
    """

    memory_mib: int | None = None
    or_more: bool = False
    own_part: bool = True
    work: str = INTERACTIVE
    long: bool = False
    cards: int = 1
    several_nodes: bool = False
    sensitive: str = ""
    small_processes: bool = False
    fp8: bool = False
    vendor: str = ""
    dra: bool = False


@dataclass(frozen=True)
class ClassOption:
    """One class as one person meets it. `granted`: to their team, None without a team; `left`: of it, neither used nor
    waited for. Free figures None: nobody knows. `held`: a sentence, "" while it admits. `fp8` None: nobody knows.
    """

    slug: str
    name: str
    axes: Axes
    unit: str = "GPU"
    units_per_workload: int = 8
    interconnect: str = "unknown"
    kinds: str = "any"
    price: Decimal = Decimal(0)
    free: int | None = None
    most_on_one_node: int | None = None
    largest_node: int | None = None
    granted: int | None = None
    left: int = 0
    borrowable: int = 0
    life_cycle: str = "active"
    held: str = ""
    fp8: bool | None = None


def objection(option: ClassOption, needs: Requirements) -> tuple[RequirementStage, str] | None:
    """The first one, as a sentence; None: the class does."""
    return next(((stage, why) for stage, rule in RULES.items() if (why := rule(option, needs))), None)


def peak_text(needs: Requirements) -> str:
    """9,537 MiB (10 GB), 204,800 MiB (200 GiB): as it was asked for, comparable."""
    mib = needs.memory_mib or 0
    gb = mib * 1024**2 / 1000**3
    if mib % 1024 == 0:
        text = f"{mib:,} MiB ({mib // 1024} GiB)"
    else:
        text = f"{mib:,} MiB ({round(gb)} GB)" if abs(gb - round(gb)) < 0.001 else f"{mib:,} MiB"
    return f"more than {text}" if needs.or_more else text


# ---- what rules a class out ------------------------------------------------------------------------------------------


def _gpu(option: ClassOption, needs: Requirements) -> str:
    return "It has no GPU." if option.axes.interface == "none" else ""


def _attributes(option: ClassOption, needs: Requirements) -> str:
    if needs.vendor and option.axes.vendor != needs.vendor:
        return f"Not made by {VENDORS.get(needs.vendor, needs.vendor)}."
    if needs.small_processes and option.axes.vendor != "nvidia":
        return "CUDA processes do not run on it."
    if needs.dra and option.axes.interface != "dra":
        return "Devices are not chosen by attributes here, only counted."
    if needs.fp8 and option.fp8 is None:
        return "Nobody here knows whether it computes in FP8."
    return "It does not compute in FP8." if needs.fp8 and not option.fp8 else ""


def _life(option: ClassOption, needs: Requirements) -> str:
    if option.life_cycle != "active":
        return f"It is {option.life_cycle}: nothing new starts on it."
    return "No node offers it at present." if option.largest_node == 0 else ""


def _kind(option: ClassOption, needs: Requirements) -> str:
    kind = "notebook" if needs.work == INTERACTIVE else "job"
    return "" if option.kinds in ("any", kind) else f"It takes {option.kinds}s only."


def _isolation(option: ClassOption, needs: Requirements) -> str:
    if option.axes.sharing == "none" or not needs.own_part:
        return ""
    others = plural(option.axes.replicas - 1, "neighbour")
    return f"Shared with up to {others}, who can slow it down or end it."


def _sharing(option: ClassOption, needs: Requirements) -> str:
    """Sharing that the workload does not bear, though its owner would."""
    if option.axes.sharing == "none":
        return ""
    if needs.sensitive == LATENCY:
        return "Neighbours make answers late, and you need them in time."
    if option.axes.sharing == "mps":
        steady = needs.small_processes or needs.work == SERVING
        return "" if steady else "MPS is for many small, steady CUDA processes of one kind."
    if needs.memory_mib is None:
        return (
            f"Its memory is not fenced and your peak is not known: up to {option.axes.replicas} processes use the same "
            "memory, and one that takes too much ends its neighbours."
        )
    return ""


def _several(option: ClassOption, needs: Requirements) -> str:
    if needs.cards == 1:
        return ""
    if option.axes.sharing != "none":
        return "A second share of a card adds nothing: 1 per workload."
    if option.axes.partition != "none" and option.axes.vendor == "nvidia":
        return "There is no traffic between slices (NCCL, peer to peer), so several of them do not work as one."
    if needs.cards > option.units_per_workload:
        return f"At most {plural(option.units_per_workload, option.unit)} per workload, {needs.cards} asked."
    if option.largest_node is not None and needs.cards > option.largest_node:
        return (
            f"A workload runs on one node, and none has more than {plural(option.largest_node, option.unit)}; "
            f"{needs.cards} asked."
        )
    if needs.sensitive == INTERCONNECT and option.interconnect == "pcie":
        return "Its cards are joined by PCIe only, too slow for what is sensitive to the interconnect."
    return ""


def _memory(option: ClassOption, needs: Requirements) -> str:
    usable, peak = option.axes.memory_mib, needs.memory_mib
    if peak is None:
        return ""
    if usable is None:
        return "Its nodes do not say how much memory it has, so nobody can promise that your peak fits."
    if usable < peak or (needs.or_more and usable <= peak):
        return f"{usable:,} MiB of memory, {peak_text(needs)} needed."
    together = peak * option.axes.replicas
    if option.axes.sharing == "time-slicing" and together > usable:
        return (
            f"{option.axes.replicas} processes use the same {usable:,} MiB, and nothing fences them: if each took "
            f"{peak:,} MiB like yours, that would be {together:,} MiB."
        )
    return ""


RULES: dict[RequirementStage, Callable[[ClassOption, Requirements], str]] = {
    RequirementStage.GPU: _gpu,
    RequirementStage.ATTRIBUTES: _attributes,
    RequirementStage.LIFE: _life,
    RequirementStage.KIND: _kind,
    RequirementStage.ISOLATION: _isolation,
    RequirementStage.SHARING: _sharing,
    RequirementStage.SEVERAL: _several,
    RequirementStage.MEMORY: _memory,
}
