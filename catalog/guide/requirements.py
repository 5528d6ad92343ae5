"""A user's requirements, whether a class fits, and what rules it out: one sentence each. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum

from catalog.contract.types import Axes, gib, gib_apart
from portal.ui.text import plural

INTERACTIVE, BATCH, SERVING = "interactive", "batch", "serving"
LATENCY, INTERCONNECT = "latency", "interconnect"
DECODE, ENCODE = "decode", "encode"
# A run that takes a day or longer.
LONG_HOURS = 24
WORKERS_MOST = 256
VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}


class RequirementStage(IntEnum):
    """The checks, in this order. If no class is left, the result names the last stage that was reached."""

    GPU = 0
    ATTRIBUTES = 1
    LIFE = 2
    KIND = 3
    ISOLATION = 4
    SHARING = 5
    TIME = 6
    SEVERAL = 7
    MEMORY = 8


@dataclass(frozen=True)
class Requirements:
    """`memory_mib`: the peak on one GPU, None: unknown; `or_more`: the peak is higher, by an unknown amount.

    `own_part`: another pod may neither slow it down nor end it; `alone`: no other pod may be on the GPU at all.
    `cards`: GPUs at one time, in one workload. `sensitive`: to "latency", to the "interconnect" or to neither ("").
    `long`: days rather than hours. `resumes`: from a checkpoint, None: unknown. `video`: it decodes ("decode") or
    encodes ("encode") video on the GPU. `soon`: a start now matters more than the price.
    """

    memory_mib: int | None = None
    or_more: bool = False
    own_part: bool = True
    alone: bool = False
    work: str = INTERACTIVE
    long: bool = False
    cards: int = 1
    several_nodes: bool = False
    sensitive: str = ""
    small_processes: bool = False
    fp8: bool = False
    vendor: str = ""
    dra: bool = False
    resumes: bool | None = None
    video: str = ""
    soon: bool = False


@dataclass(frozen=True)
class Split:
    """GPUs of one workload: `units` on one node, for each of `workers` that start together."""

    units: int
    workers: int

    @property
    def total(self) -> int:
        return self.units * self.workers


@dataclass(frozen=True)
class ClassOption:
    """One class as one user sees it. `granted`: to the user's team, None without a team; `left`: granted units that are
    neither used nor requested by queued workloads. Free figures None: unknown. `free_by_node`: of the nodes with the
    most free; `has_more_nodes`: there are others. `held`: a sentence, "" while it admits. `closed`: a sentence about
    the team's namespace or queue, "" while it accepts workloads. `fp8`, `decodes` and
    `encodes` (video) None: unknown. `hours_limit`: runs are stopped then.
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
    allocatable: int | None = None
    free_by_node: tuple[int, ...] = ()
    has_more_nodes: bool = False
    granted: int | None = None
    left: int = 0
    borrowable: int = 0
    life_cycle: str = "active"
    held: str = ""
    closed: str = ""
    fp8: bool | None = None
    decodes: bool | None = None
    encodes: bool | None = None
    hours_limit: int | None = None
    # Sentences about what was measured between its GPUs; none: nothing was, or it is unknown.
    measured: tuple[str, ...] = ()

    @property
    def most_units(self) -> int:
        """On one node."""
        return min(self.units_per_workload, self.largest_node or self.units_per_workload)


def split_over(option: ClassOption, needs: Requirements) -> Split:
    """On one node if it has room for all; else equal workers, as few as possible. For a class that fits."""
    if needs.cards <= option.most_units:
        return Split(needs.cards, 1)
    units = max(number for number in range(1, option.most_units + 1) if needs.cards % number == 0)
    return Split(units, needs.cards // units)


def objection(option: ClassOption, needs: Requirements) -> tuple[RequirementStage, str] | None:
    """Returns the first objection as a sentence; None: the class fits."""
    return next(((stage, why) for stage, rule in RULES.items() if (why := rule(option, needs))), None)


def peak_text(needs: Requirements, size: str = "") -> str:
    """Formats 9.3 GiB (10 GB), 200 GiB: comparable with the requested value. `size`: where more decimals are needed."""
    mib = needs.memory_mib or 0
    gb = mib * 1024**2 / 1000**3
    text = size or gib(mib)
    if mib % 1024 and abs(gb - round(gb)) < 0.001:
        text = f"{text} ({round(gb)} GB)"
    return f"more than {text}" if needs.or_more else text


# ---- requirements that exclude a class -------------------------------------------------------------------------------


def _gpu(option: ClassOption, needs: Requirements) -> str:
    return "It has no GPU." if option.axes.interface == "none" else ""


def _attributes(option: ClassOption, needs: Requirements) -> str:
    if needs.vendor and option.axes.vendor != needs.vendor:
        return f"It is not made by {VENDORS.get(needs.vendor, needs.vendor)}."
    if needs.small_processes and option.axes.vendor != "nvidia":
        return "CUDA processes do not run on it."
    if needs.dra and option.axes.interface != "dra":
        return "It is requested by count, not by device attributes (DRA)."
    if needs.fp8 and option.fp8 is None:
        return "It is not known whether it supports FP8."
    return "It does not support FP8." if needs.fp8 and not option.fp8 else _video(option, needs)


def _video(option: ClassOption, needs: Requirements) -> str:
    """Who encodes video decodes it first."""
    engines = {DECODE: [], ENCODE: [(option.encodes, "encoder (NVENC)")]}.get(needs.video, [])
    engines += [(option.decodes, "decoder (NVDEC)")] if needs.video else []
    for has, engine in engines:
        if has is None:
            return f"It is not known whether it has a video {engine}."
        if not has:
            return f"This {option.unit} has no video {engine}."
    return ""


def _life(option: ClassOption, needs: Requirements) -> str:
    if option.life_cycle != "active":
        return f"It is {option.life_cycle}: new workloads do not start on it."
    return "No node provides it at the moment." if option.largest_node == 0 else ""


def _kind(option: ClassOption, needs: Requirements) -> str:
    kind = "notebook" if needs.work == INTERACTIVE else "job"
    return "" if option.kinds in ("any", kind) else f"It accepts {option.kinds}s only."


def _isolation(option: ClassOption, needs: Requirements) -> str:
    if needs.alone and option.axes.sharing == "none" and option.axes.partition != "none":
        return "Other pods use the rest of the same GPU, isolated from this part."
    if option.axes.sharing == "none" or not (needs.own_part or needs.alone):
        return ""
    others = plural(option.axes.replicas - 1, "other pod")
    return f"It is shared with up to {others}, which can slow your workload down or terminate it."


def _sharing(option: ClassOption, needs: Requirements) -> str:
    """Returns why sharing does not suit the workload, although its owner accepts it."""
    if option.axes.sharing == "none":
        return ""
    if needs.sensitive == LATENCY:
        return "Other pods delay responses, and your workload needs low latency."
    if option.axes.sharing == "mps":
        steady = needs.small_processes or needs.work == SERVING
        return "" if steady else "MPS is for many small, steady CUDA processes of one kind."
    if needs.memory_mib is None:
        return (
            f"Its memory is not isolated and your peak is unknown: up to {option.axes.replicas} processes use the same "
            "memory, and a process that takes too much terminates the others."
        )
    return ""


def _time(option: ClassOption, needs: Requirements) -> str:
    limit = option.hours_limit
    if limit is None or limit >= LONG_HOURS or not needs.long or needs.resumes is not False:
        return ""
    return f"Runs on it are stopped after {limit} h; yours takes a day or longer and cannot resume."


def _several(option: ClassOption, needs: Requirements) -> str:
    if needs.cards == 1:
        return ""
    if option.axes.sharing != "none":
        return "A second share of a GPU adds nothing; a workload can have only 1."
    if option.axes.partition != "none" and option.axes.vendor == "nvidia":
        return "There is no traffic between slices (NCCL, peer to peer), so they cannot be combined."
    if option.allocatable is not None and needs.cards > option.allocatable:
        return f"Its nodes have {plural(option.allocatable, option.unit)} in total; {needs.cards} requested."
    if needs.cards > option.most_units and not needs.several_nodes:
        return f"At most {plural(option.most_units, option.unit)} on one node; {needs.cards} requested."
    if split_over(option, needs).workers > WORKERS_MOST:
        return (
            f"At most {option.most_units * WORKERS_MOST} {option.unit}s in {WORKERS_MOST} workers; "
            f"{needs.cards} requested."
        )
    if needs.sensitive == INTERCONNECT and option.interconnect == "pcie":
        return "Its GPUs are connected by PCIe only, too slow for work that is sensitive to the interconnect."
    return ""


def _memory(option: ClassOption, needs: Requirements) -> str:
    usable, peak = option.axes.memory_mib, needs.memory_mib
    if peak is None:
        return ""
    if usable is None:
        return "Its nodes do not report its memory, so it is not known whether your peak fits."
    if usable < peak or (needs.or_more and usable <= peak):
        has, wanted = gib_apart(usable, peak)
        return f"It has {has} of GPU memory; {peak_text(needs, wanted)} is needed."
    together = peak * option.axes.replicas
    if option.axes.sharing == "time-slicing" and together > usable:
        return (
            f"{option.axes.replicas} processes use the same {gib(usable)} without isolation: if each used {gib(peak)} "
            f"like yours, the total would be {gib(together)}."
        )
    return ""


RULES: dict[RequirementStage, Callable[[ClassOption, Requirements], str]] = {
    RequirementStage.GPU: _gpu,
    RequirementStage.ATTRIBUTES: _attributes,
    RequirementStage.LIFE: _life,
    RequirementStage.KIND: _kind,
    RequirementStage.ISOLATION: _isolation,
    RequirementStage.SHARING: _sharing,
    RequirementStage.TIME: _time,
    RequirementStage.SEVERAL: _several,
    RequirementStage.MEMORY: _memory,
}
