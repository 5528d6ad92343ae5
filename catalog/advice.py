"""Which class suits what somebody needs: answers in, one class with its reasons out, or the honest end. Pure.

A class that does not do is ruled out by a sentence (catalog/needs.py). Of those left, the smallest that is enough comes
first, so that larger ones stay for who needs them; what the team may not use comes after what it may.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil
from typing import Any

from catalog.needs import INTERACTIVE, SERVING, Needs, Option, Stage, objection, peak_text
from portal.quota_bar import plural

KEEP_EXCLUSIVE, CHANGE = "keep exclusive", "change the workload"
# Below this share of the memory, one batch more ends the process.
THIN = 0.05
Stopped = tuple[Option, Stage, str]
LINKS = {"nvswitch": "NVSwitch", "nvlink": "NVLink", "pcie": "PCIe"}
BY_INTERCONNECT = {"nvswitch": 0, "nvlink": 1, "unknown": 2, "pcie": 3}


@dataclass(frozen=True)
class Choice:
    """`start`: a sentence about when it would start, `at_once` its gist. `why`: when to prefer it (runner-up)."""

    slug: str
    name: str
    units: int
    unit: str
    at_once: bool
    start: str
    price: Decimal
    why: str = ""


@dataclass(frozen=True)
class RuledOut:
    slug: str
    name: str
    why: str


@dataclass(frozen=True)
class Advice:
    """`best` None: nothing here does it, `end` and `end_text` say what to change. `end` is also set where sharing was
    accepted and does not suit. `starts_now`: the first that suits and would start this second, the best one if it can.
    `trade_off` follows the words "The price of it".
    """

    best: Choice | None
    runner_up: Choice | None
    starts_now: Choice | None
    reasons: tuple[str, ...]
    trade_off: str
    end: str
    end_text: str
    ruled_out: tuple[RuledOut, ...]


def advise(needs: Needs, options: Iterable[Option]) -> Advice:
    """Deterministic: where all else is equal, the slug decides."""
    found = sorted(options, key=lambda option: option.slug)
    left = [option for option in found if objection(option, needs) is None]
    stopped = [(option, *why) for option in found if (why := objection(option, needs)) is not None]
    ruled_out = tuple(RuledOut(option.slug, option.name, why) for option, _stage, why in stopped)
    if not left:
        return Advice(None, None, None, (), "", CHANGE, _way_out(stopped, needs), ruled_out)
    best = min(left, key=lambda option: _order(option, needs))
    at_once = [option for option in left if start_of(option, needs.cards)[0]]
    sooner = min(at_once, key=lambda option: _order(option, needs), default=None)
    kept = _kept_exclusive(best, stopped, needs)
    return Advice(
        best=_choice(best, needs),
        runner_up=_runner_up(best, left, found, needs),
        starts_now=_choice(sooner, needs) if sooner else None,
        reasons=_reasons(best, needs),
        trade_off=_trade_off(best, needs),
        end=KEEP_EXCLUSIVE if kept else "",
        end_text=kept,
        ruled_out=ruled_out,
    )


# ---- the honest end --------------------------------------------------------------------------------------------------


def _way_out(stopped: Sequence[Stopped], needs: Needs) -> str:
    """What came nearest, why it does not do, and what to change."""
    reached = max((stage for _, stage, _ in stopped), default=Stage.GPU)
    if reached is Stage.GPU:
        return "No class with a GPU is open yet. Ask the operators."
    nearest = [(option, why) for option, stage, why in stopped if stage is reached]
    if reached is Stage.MEMORY:
        return _too_large(nearest, needs)
    option, why = max(nearest, key=lambda one: (one[0].units_per_workload, one[0].largest_node or 0, one[0].slug))
    change = {
        Stage.ATTRIBUTES: "Do without, or ask the operators for cards that have it.",
        Stage.LIFE: "Ask the operators what comes instead, or when it is back.",
        Stage.KIND: "Run it as a job." if needs.work == INTERACTIVE else "Run it in a notebook, or ask the operators.",
        Stage.ISOLATION: "Accept neighbours, or ask the operators for a class that is not shared.",
        Stage.SHARING: "Keep exclusive: ask the operators for a class that is not shared.",
        Stage.SEVERAL: _fewer([one for one, _ in nearest]),
    }[reached]
    return f"{option.name}: {why} {change}"


def _too_large(nearest: Sequence[tuple[Option, str]], needs: Needs) -> str:
    known = [(option, why) for option, why in nearest if option.axes.memory_mib]
    if not known:
        return "No class that would do says how much memory it has. Ask the operators, or measure on one of them."
    largest, why = max(known, key=lambda one: (one[0].axes.memory_mib or 0, one[0].slug))
    usable = largest.axes.memory_mib or 1
    if largest.axes.sharing == "time-slicing" and usable >= (needs.memory_mib or 0):
        return f"{largest.name}: {why} Keep exclusive: ask the operators for a class that is not shared."
    text = f"No class has {peak_text(needs)} on one {largest.unit}; the most is {largest.name} with {usable:,} MiB."
    parts = ceil((needs.memory_mib or 0) / usable) if not needs.or_more else 2
    if largest.axes.partition != "none" or largest.axes.sharing != "none":
        return f"{text} Need less (smaller batch, lower precision), or ask the operators for whole cards."
    if parts > largest.units_per_workload or (largest.largest_node is not None and parts > largest.largest_node):
        return f"{text} Even split it would take {parts} cards, more than a workload may have: need less."
    return f"{text} Split the model over {parts} cards, or need less: smaller batch, lower precision, offloading."


def _fewer(nearest: Sequence[Option]) -> str:
    whole = [option for option in nearest if option.axes.sharing == "none" and option.axes.partition == "none"]
    if not whole:
        return "Split the work into independent workloads of 1 unit each, or ask the operators for whole cards."
    most = max(min(option.units_per_workload, option.largest_node or option.units_per_workload) for option in whole)
    return f"Ask for at most {plural(most, 'card')} on one node, or split the work into independent jobs."


def _kept_exclusive(best: Option, stopped: Sequence[Stopped], needs: Needs) -> str:
    """Sharing was accepted, and yet what is advised is not shared: why."""
    if needs.own_part or best.axes.sharing != "none":
        return ""
    shared = [one for one in stopped if one[0].axes.sharing != "none" and one[1] > Stage.ISOLATION]
    if not shared:
        return ""
    option, _, why = max(shared, key=lambda one: (one[1], one[0].slug))
    return f"Keep exclusive. {option.name}: {why}"


# ---- which comes first -----------------------------------------------------------------------------------------------


def _order(option: Option, needs: Needs) -> tuple[Any, ...]:
    return bool(option.held), not _may_use(option, needs.cards), *_fit(option, needs)


def _fit(option: Option, needs: Needs) -> tuple[bool, float, float, float, Decimal, str]:
    """Smaller suits better: made for CUDA unless asked otherwise, kind of sharing, links between cards, memory, price,
    slug.
    """
    foreign = not needs.vendor and option.axes.vendor != "nvidia"
    links = BY_INTERCONNECT.get(option.interconnect, 2) if needs.cards > 1 else 0
    memory = float(option.axes.memory_mib or "inf")
    if needs.memory_mib is None and needs.work != INTERACTIVE and option.axes.memory_mib is not None:
        memory = -memory  # who runs out of memory after hours has lost them; in a notebook one learns the peak
    return foreign, _suits(option, needs), links, memory, option.price, option.slug


def _suits(option: Option, needs: Needs) -> int:
    """How well this kind of sharing suits this kind of work, for who accepts neighbours: 0 best."""
    steady = needs.small_processes or needs.work == SERVING
    if option.axes.sharing == "mps":
        return 0
    if option.axes.sharing == "time-slicing":
        return 0 if needs.work == INTERACTIVE and not needs.long and not steady else 2
    return 1


def _may_use(option: Option, asked: int) -> bool:
    return option.granted is not None and option.granted + option.borrowable >= asked


def _runner_up(best: Option, left: Sequence[Option], found: Sequence[Option], needs: Needs) -> Choice | None:
    """What suits better and the team may not use yet; else what comes next; else what would, with neighbours."""
    others = [option for option in left if option is not best]
    if not others and needs.own_part:
        relaxed = replace(needs, own_part=False)
        others = [option for option in found if option is not best and objection(option, relaxed) is None]
        needs = relaxed if others else needs
    if not others:
        return None
    smaller = [option for option in others if not option.held and _fit(option, needs) < _fit(best, needs)]
    second = min(smaller or others, key=lambda option: _order(option, needs))
    return replace(_choice(second, needs), why=_instead(best, second, needs))


def _instead(best: Option, second: Option, needs: Needs) -> str:
    if second.axes.sharing != "none" and best.axes.sharing == "none":
        return f"if you accept up to {plural(second.axes.replicas - 1, 'neighbour')} and pauses."
    if best.axes.sharing != "none" and second.axes.sharing == "none":
        return "if neighbours turn out to be in the way."
    mine, theirs = best.axes.memory_mib, second.axes.memory_mib
    if mine and theirs and theirs > mine:
        return f"if you need more than {mine:,} MiB: it has {theirs:,}."
    if mine and theirs and theirs < mine and not _may_use(second, needs.cards):
        return "smaller and enough; your team may use none of it yet."
    if mine and theirs and theirs < mine:
        return f"if {theirs:,} MiB turn out to be enough."
    return "just as suitable."


# ---- sentences -------------------------------------------------------------------------------------------------------


def _choice(option: Option, needs: Needs) -> Choice:
    at_once, start = start_of(option, needs.cards)
    return Choice(option.slug, option.name, needs.cards, option.unit, at_once, start, option.price)


def start_of(option: Option, asked: int) -> tuple[bool, str]:
    """(at once, when in a sentence) for that many units in one workload."""
    if option.held:
        return False, option.held
    if option.granted is None:
        return False, "You are in no team; workloads start in a team."
    if not _may_use(option, asked):
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


def _reasons(best: Option, needs: Needs) -> tuple[str, ...]:
    found = [_memory_reason(best, needs), _isolation_reason(best)]
    if needs.cards > 1:
        joined = LINKS.get(best.interconnect)
        links = f"joined by {joined}" if joined else "how they are joined is not known"
        crossing = ", so that nothing crosses the network" if needs.several_nodes else ""
        known = f"of up to {best.largest_node}" if best.largest_node is not None else "(how many it has is not known)"
        found.append(f"{plural(needs.cards, 'card')} on one node {known}, {links}{crossing}.")
    if needs.fp8:
        found.append("It computes in FP8.")
    if needs.dra:
        found.append("Its devices are chosen by attributes (dynamic resource allocation).")
    return tuple(found)


def _memory_reason(best: Option, needs: Needs) -> str:
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


def _isolation_reason(best: Option) -> str:
    if best.axes.sharing == "time-slicing":
        return "Neighbours are fine with you, and short bursts fit between theirs."
    if best.axes.sharing == "mps":
        return f"Up to {best.axes.replicas} small, steady processes compute on one card at the same time."
    if best.axes.partition != "none":
        return "A neighbour can neither slow it down nor use its memory."
    return "Nobody else is on the card."


def _trade_off(best: Option, needs: Needs) -> str:
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
    if spare is not None and usable and best.axes.sharing != "time-slicing" and spare < THIN * usable:
        found.append(f"Only {spare:,} MiB to spare: one larger batch ends it out of memory.")
    if best.axes.vendor != "nvidia":
        found.append("Not NVIDIA: programs and images for CUDA do not run on it.")
    if needs.cards > 1 and best.interconnect == "unknown":
        found.append("Nobody entered how its cards are joined.")
    if needs.long and (best.granted or 0) < needs.cards <= (best.granted or 0) + best.borrowable:
        found.append("Borrowed units can be taken back within days: write checkpoints.")
    return " ".join(found)
