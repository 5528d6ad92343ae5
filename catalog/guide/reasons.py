"""Sentences: why a class is recommended, its trade-off, and when a workload would start on it. Pure."""

from __future__ import annotations

from catalog.guide.requirements import ClassOption, Requirements, peak_text
from portal.ui.text import plural

# Below this share of the memory, one batch more ends the process.
THIN_MARGIN = 0.05

INTERCONNECT_NAMES = {"nvswitch": "NVSwitch", "nvlink": "NVLink", "pcie": "PCIe"}


def may_use(option: ClassOption, asked: int) -> bool:
    return option.granted is not None and option.granted + option.borrowable >= asked


def start_estimate(option: ClassOption, asked: int) -> tuple[bool, str]:
    """(at once, when in a sentence) for that many units in one workload."""
    if option.held:
        return False, option.held
    if option.granted is None:
        return False, "You are in no team; workloads start in a team."
    if not may_use(option, asked):
        held = f"only {option.granted}" if option.granted else "none"
        borrow = f"{option.borrowable}" if option.borrowable else "none"
        return False, f"Request it first: your team holds {held} and may borrow {borrow}."
    if option.free is None or option.most_on_one_node is None:
        return False, "When it starts is not known: the cluster was not read."
    if option.left < asked and option.borrowable:
        return False, (
            f"{option.left} left in your grant; up to {option.borrowable} may be borrowed while others leave them "
            "idle, and are taken back when they need them."
        )
    if option.left < asked:
        return False, f"Waits: {option.left} left in your team's grant of {option.granted}, {asked} asked."
    if option.most_on_one_node >= asked:
        return True, f"Starts at once: {option.free} free, {option.left} left in your grant."
    if option.free >= asked:
        return False, f"Waits: {option.free} free, but at most {option.most_on_one_node} on one node; {asked} asked."
    return False, f"Waits: {option.free} free, {asked} asked."


def reasons_for(best: ClassOption, needs: Requirements) -> tuple[str, ...]:
    found = [_memory_reason(best, needs), _isolation_reason(best)]
    if needs.cards > 1:
        joined = INTERCONNECT_NAMES.get(best.interconnect)
        links = f"joined by {joined}" if joined else "how they are joined is not known"
        crossing = ", so that nothing crosses the network" if needs.several_nodes else ""
        known = f"of up to {best.largest_node}" if best.largest_node is not None else "(how many it has is not known)"
        found.append(f"{plural(needs.cards, 'GPU')} on one node {known}, {links}{crossing}.")
    if needs.fp8:
        found.append("It computes in FP8.")
    if needs.dra:
        found.append("Its devices are chosen by attributes (dynamic resource allocation).")
    return tuple(found)


def _memory_reason(best: ClassOption, needs: Requirements) -> str:
    usable, peak = best.axes.memory_mib, needs.memory_mib
    if usable is None:
        return "How much memory it has, its nodes do not say; your peak is not known either: measure it there."
    if peak is None:
        end = "too little ends only your own process" if best.axes.sharing == "none" else "the driver limits it"
        return f"{usable:,} MiB to measure your peak on: {end}."
    if best.axes.sharing == "time-slicing":
        return (
            f"{usable:,} MiB that up to {best.axes.replicas} processes use together: {best.axes.replicas} of your "
            f"peak, {peak_text(needs)}, would fit, as long as all keep to it."
        )
    own = "by the driver's limit" if best.axes.sharing == "mps" else "of its own"
    if needs.or_more:
        return f"{usable:,} MiB {own}, and you need {peak_text(needs)}. Enter your peak as a number to see if it fits."
    return f"{usable:,} MiB {own}: your peak of {peak_text(needs)} fits, with {usable - peak:,} MiB to spare."


def _isolation_reason(best: ClassOption) -> str:
    if best.axes.sharing == "time-slicing":
        return "Neighbours are fine with you, and short bursts fit between theirs."
    if best.axes.sharing == "mps":
        return f"Up to {best.axes.replicas} small, steady processes compute on one card at the same time."
    if best.axes.partition != "none":
        return "A neighbour can neither slow it down nor use its memory."
    return "Nobody else is on the card."


def trade_off_of(best: ClassOption, needs: Requirements) -> str:
    usable, peak = best.axes.memory_mib, needs.memory_mib
    spare = usable - peak if usable and peak is not None and not needs.or_more else None
    if best.axes.sharing == "time-slicing":
        found = [
            f"not a part of a card. Up to {plural(best.axes.replicas - 1, 'neighbour')} take turns with you; "
            "one of them can fill the memory or end your process."
        ]
    elif best.axes.sharing == "mps":
        found = [f"a fatal fault of one process can end all {best.axes.replicas} on the card. A pilot."]
    elif best.axes.partition != "none":
        found = [f"only the compute of {best.axes.partition}, and no traffic between cards (NCCL)."]
    elif spare is not None and usable and spare > usable / 2:
        found = [f"{spare:,} MiB of each card stay idle by your answer, and nobody else can use them."]
    else:
        found = ["the whole card is yours also while you pause: stop it when you do not compute."]
    if spare is not None and usable and best.axes.sharing != "time-slicing" and spare < THIN_MARGIN * usable:
        found.append(f"Only {spare:,} MiB to spare: one larger batch ends it out of memory.")
    if best.axes.vendor != "nvidia":
        found.append("Not NVIDIA: programs and images for CUDA do not run on it.")
    if needs.cards > 1 and best.interconnect == "unknown":
        found.append("Nobody entered how its cards are joined.")
    if needs.long and (best.granted or 0) < needs.cards <= (best.granted or 0) + best.borrowable:
        found.append("Borrowed units can be taken back within days: write checkpoints.")
    return " ".join(found)
