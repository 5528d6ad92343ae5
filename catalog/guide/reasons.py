"""Sentences: why a class is recommended, its trade-off, and when a workload would start on it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from catalog.contract import guarantees
from catalog.contract.types import gib, gib_apart
from catalog.guide.requirements import DECODE, LONG_HOURS, ClassOption, Requirements, peak_text, split_over
from portal.ui.text import plural, plural_form

# With less free memory than this share, a slightly larger batch ends the process.
THIN_MARGIN = 0.05

INTERCONNECT_NAMES = {"nvswitch": "NVSwitch", "nvlink": "NVLink", "pcie": "PCIe"}


def may_use(option: ClassOption, asked: int) -> bool:
    return option.granted is not None and option.granted + option.borrowable >= asked


def borrows(option: ClassOption, asked: int) -> bool:
    """It would use units beyond the team's quota, which their owner can reclaim."""
    return (option.granted or 0) < asked <= (option.granted or 0) + option.borrowable


def start_estimate(option: ClassOption, units: int, workers: int = 1) -> tuple[bool, str]:
    """Returns (starts at once, a sentence about the start) for that many units on one node, for each worker."""
    asked = units * workers
    if option.held:
        return False, option.held
    if option.granted is None:
        return False, "You are not in a team; launching needs a team."
    if not may_use(option, asked):
        quota = f"your team's quota is {option.granted}" if option.granted else "your team has no quota"
        borrowing = f"it may borrow {option.borrowable}" if option.borrowable else "borrowing is off"
        return False, f"Request quota first: {quota}, and {borrowing}."
    if option.closed:
        return False, f"{option.closed} New workloads wait."
    if option.free is None or option.most_on_one_node is None:
        return False, "Start time unknown: the cluster has not been read."
    kind = plural_form(option.unit)
    if option.left < asked and option.borrowable:
        return False, (
            f"{option.left} left in your team's quota; up to {option.borrowable} can be borrowed while other teams "
            "leave them idle, and are reclaimed when those teams need them."
        )
    if option.left < asked:
        quota = f"{option.left} left of your team's {option.granted}"
        return False, f"Queued until quota is free: {quota}, {asked} requested."
    if workers > 1:
        return _together(option, units, workers)
    if option.most_on_one_node >= asked:
        return True, f"Starts now: {option.free} free, {option.left} left in your team's quota."
    if option.free >= asked:
        most = f"at most {option.most_on_one_node} on one node"
        return False, f"Queued until {kind} are free: {option.free} free, but {most}; {asked} requested."
    return False, f"Queued until {kind} are free: {option.free} free, {asked} requested."


def _together(option: ClassOption, units: int, workers: int) -> tuple[bool, str]:
    """Workers start together, each on a node with room for its units; several may be on one node."""
    now = sum(free // units for free in option.free_by_node)
    if now >= workers:
        return True, (
            f"Starts now: {option.free} free, room for {workers} workers of {units}, "
            f"{option.left} left in your team's quota."
        )
    if option.has_more_nodes:
        return False, f"{option.free} free; whether {workers} nodes have {units} free each is shown at launch."
    return False, f"Queued until all {workers} workers of {units} fit on the nodes: {now} of them fit now."


def reasons_for(best: ClassOption, needs: Requirements, others: Collection[ClassOption] = ()) -> tuple[str, ...]:
    """`others`: the other classes that fit."""
    found = [_memory_reason(best, needs), _isolation_reason(best)]
    split = split_over(best, needs)
    if split.workers > 1:
        found.append(
            f"{plural(needs.cards, 'GPU')} as {split.workers} workers of {plural(split.units, 'GPU')}, each on one "
            "node: a job starts them together, or none of them. Traffic between workers crosses the network."
        )
    elif needs.cards > 1:
        joined = INTERCONNECT_NAMES.get(best.interconnect)
        unknown = "links as measured" if best.measured else "interconnect unknown"
        links = f"connected by {joined}" if joined else unknown
        crossing = ", so that no traffic crosses the network" if needs.several_nodes else ""
        known = (
            f"of up to {best.largest_node}" if best.largest_node is not None else "(its number of GPUs is not known)"
        )
        found.append(f"{plural(needs.cards, 'GPU')} on one node {known}, {links}{crossing}.")
    if split.units > 1:
        found += [f"Measured: {sentence}" for sentence in best.measured]
    if needs.fp8:
        found.append("It supports FP8.")
    if needs.dra:
        found.append("Its devices are selected by attributes (DRA).")
    if needs.video:
        engines = "decoders (NVDEC)" if needs.video == DECODE else "encoders (NVENC) and decoders (NVDEC)"
        found.append(f"It has video {engines}.")
    if others and 0 < best.price < min(one.price for one in others):
        found.append(f"It costs the least of {len(others) + 1} classes that fit.")
    return tuple(found)


def _memory_reason(best: ClassOption, needs: Requirements) -> str:
    usable, peak = best.axes.memory_mib, needs.memory_mib
    if usable is None:
        return "Its nodes do not report its memory, and your peak is unknown: measure your peak on it."
    if peak is None:
        first = "your peak is unknown, so this is the smallest class that fits otherwise. Measure your peak on it."
        if best.axes.sharing == "none":
            return f"{gib(usable)} of GPU memory, exceeding it kills only your process; {first}"
        return f"{gib(usable)} of GPU memory, a limit of the driver; {first}"
    if best.axes.sharing == "time-slicing":
        return (
            f"{gib(usable)} of GPU memory for up to {best.axes.replicas} processes together: {best.axes.replicas} "
            f"times your peak of {peak_text(needs)} fits, if all processes stay within it."
        )
    has, wanted, spare = gib_apart(usable, peak, usable - peak)
    memory = f"{has} GPU memory limit" if best.axes.sharing == "mps" else f"{has} of GPU memory"
    if needs.or_more:
        return f"{memory}; you need {peak_text(needs, wanted)}. Enter your peak as a number to check whether it fits."
    return f"{memory}: your peak of {peak_text(needs, wanted)} fits, with {spare} to spare."


def _isolation_reason(best: ClassOption) -> str:
    if best.axes.sharing == "time-slicing":
        return "You accept other pods, and short bursts fit between theirs."
    if best.axes.sharing == "mps":
        return f"Up to {best.axes.replicas} small, steady processes compute on one GPU at the same time."
    if best.axes.partition != "none":
        return "Other pods can neither slow it down nor use its memory."
    return "No other pod uses the GPU."


def trade_off_of(best: ClassOption, needs: Requirements) -> str:
    usable, peak = best.axes.memory_mib, needs.memory_mib
    spare = usable - peak if usable and peak is not None and not needs.or_more else None
    if best.axes.sharing == "time-slicing":
        found = [
            f"not a fraction of a GPU. Up to {plural(best.axes.replicas - 1, 'other pod')} share it by time-slicing; "
            "any of them can fill the memory or terminate your process."
        ]
    elif best.axes.sharing == "mps":
        found = [
            f"a fatal fault of one process can terminate all {best.axes.replicas} on the GPU. This class is a pilot."
        ]
    elif best.axes.partition != "none":
        found = [f"only the compute of {best.axes.partition}, and no traffic between GPUs (NCCL)."]
    elif spare is not None and usable and spare > usable / 2:
        found = [f"{gib(spare)} of each GPU stays unused with your peak, and no other pod can use it."]
    else:
        found = ["the whole GPU is allocated to you even while idle: stop the workload when you do not compute."]
    if spare is not None and usable and best.axes.sharing != "time-slicing" and spare < THIN_MARGIN * usable:
        found.append(
            f"Only {gib_apart(usable, usable - spare, spare)[-1]} to spare: a larger batch runs out of memory."
        )
    if best.axes.vendor != "nvidia":
        found.append("Not an NVIDIA GPU: CUDA programs and images do not run on it.")
    if needs.cards > 1 and best.interconnect == "unknown" and not best.measured:
        found.append("The interconnect of its GPUs is not known.")
    if guarantees.contract_of(best.axes).tier == "pilot" and best.axes.sharing != "mps":
        found.append("This class is a pilot.")
    found += _when_interrupted(best, needs)
    return " ".join(found)


def _when_interrupted(best: ClassOption, needs: Requirements) -> Iterator[str]:
    if borrows(best, needs.cards) and (needs.long or needs.resumes is not None):
        then = {
            True: "it then resumes from its last checkpoint.",
            False: "it then starts from the beginning.",
            None: "write checkpoints.",
        }[needs.resumes]
        yield f"The run would use borrowed units, which can be reclaimed at any time: {then}"
    if needs.long and best.hours_limit is not None and best.hours_limit < LONG_HOURS:
        yield f"Runs are stopped after {best.hours_limit} h: continue from a checkpoint in another run."
