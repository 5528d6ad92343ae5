"""Sentences: why a class is recommended, its trade-off, and when a workload would start on it. Pure."""

from __future__ import annotations

from catalog.contract.types import gib, gib_apart
from catalog.guide.requirements import ClassOption, Requirements, peak_text
from portal.ui.text import plural, plural_form

# With less free memory than this share, a slightly larger batch ends the process.
THIN_MARGIN = 0.05

INTERCONNECT_NAMES = {"nvswitch": "NVSwitch", "nvlink": "NVLink", "pcie": "PCIe"}


def may_use(option: ClassOption, asked: int) -> bool:
    return option.granted is not None and option.granted + option.borrowable >= asked


def start_estimate(option: ClassOption, asked: int) -> tuple[bool, str]:
    """Returns (starts at once, a sentence about the start) for that many units in one workload."""
    if option.held:
        return False, option.held
    if option.granted is None:
        return False, "You are not in a team; launching needs a team."
    if not may_use(option, asked):
        quota = f"your team's quota is {option.granted}" if option.granted else "your team has no quota"
        borrowing = f"it may borrow {option.borrowable}" if option.borrowable else "borrowing is off"
        return False, f"Request quota first: {quota}, and {borrowing}."
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
    if option.most_on_one_node >= asked:
        return True, f"Starts now: {option.free} free, {option.left} left in your team's quota."
    if option.free >= asked:
        most = f"at most {option.most_on_one_node} on one node"
        return False, f"Queued until {kind} are free: {option.free} free, but {most}; {asked} requested."
    return False, f"Queued until {kind} are free: {option.free} free, {asked} requested."


def reasons_for(best: ClassOption, needs: Requirements) -> tuple[str, ...]:
    found = [_memory_reason(best, needs), _isolation_reason(best)]
    if needs.cards > 1:
        joined = INTERCONNECT_NAMES.get(best.interconnect)
        links = f"connected by {joined}" if joined else "interconnect unknown"
        crossing = ", so that no traffic crosses the network" if needs.several_nodes else ""
        known = (
            f"of up to {best.largest_node}" if best.largest_node is not None else "(its number of GPUs is not known)"
        )
        found.append(f"{plural(needs.cards, 'GPU')} on one node {known}, {links}{crossing}.")
    if needs.fp8:
        found.append("It supports FP8.")
    if needs.dra:
        found.append("Its devices are selected by attributes (DRA).")
    return tuple(found)


def _memory_reason(best: ClassOption, needs: Requirements) -> str:
    usable, peak = best.axes.memory_mib, needs.memory_mib
    if usable is None:
        return "Its nodes do not report its memory, and your peak is unknown: measure your peak on it."
    if peak is None:
        if best.axes.sharing == "none":
            return f"{gib(usable)} of GPU memory; exceeding it kills only your process."
        return f"{gib(usable)} of GPU memory, a limit of the driver: measure your peak on it."
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
    if needs.cards > 1 and best.interconnect == "unknown":
        found.append("The interconnect of its GPUs is not known.")
    if needs.long and (best.granted or 0) < needs.cards <= (best.granted or 0) + best.borrowable:
        found.append("The run would use borrowed units, which can be reclaimed at any time: write checkpoints.")
    return " ".join(found)
