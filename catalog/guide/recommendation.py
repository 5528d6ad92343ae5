"""Which class suits a need: takes answers, returns one class with its reasons, or why none fits. Pure.

A class that does not fit is ruled out with a sentence (catalog/guide/requirements.py). Of the others the smallest
sufficient class comes first, so that larger ones stay free for users who need them; classes that the team may not use
come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from math import ceil
from typing import Any

from catalog.contract.types import gib_apart
from catalog.guide.reasons import may_use, reasons_for, start_estimate, trade_off_of
from catalog.guide.requirements import (
    INTERACTIVE,
    SERVING,
    ClassOption,
    Requirements,
    RequirementStage,
    objection,
    peak_text,
)
from catalog.guide.types import Recommendation, RecommendedClass, RuledOutClass
from portal.ui.text import plural

KEEP_EXCLUSIVE, CHANGE = "use an exclusive class", "no class fits"
Stopped = tuple[ClassOption, RequirementStage, str]
INTERCONNECT_RANK = {"nvswitch": 0, "nvlink": 1, "unknown": 2, "pcie": 3}


def recommend(needs: Requirements, options: Iterable[ClassOption]) -> Recommendation:
    """Deterministic: if all else is equal, the slug decides."""
    found = sorted(options, key=lambda option: option.slug)
    left = [option for option in found if objection(option, needs) is None]
    stopped = [(option, *why) for option in found if (why := objection(option, needs)) is not None]
    ruled_out = tuple(RuledOutClass(option.slug, option.name, why) for option, _stage, why in stopped)
    if not left:
        return Recommendation(None, None, None, (), "", CHANGE, _way_out(stopped, needs), ruled_out)
    best = min(left, key=lambda option: _order(option, needs))
    at_once = [option for option in left if start_estimate(option, needs.cards)[0]]
    sooner = min(at_once, key=lambda option: _order(option, needs), default=None)
    kept = _kept_exclusive(best, stopped, needs)
    return Recommendation(
        best=_choice(best, needs),
        runner_up=_runner_up(best, left, found, needs),
        starts_now=_choice(sooner, needs) if sooner else None,
        reasons=reasons_for(best, needs),
        trade_off=trade_off_of(best, needs),
        end=KEEP_EXCLUSIVE if kept else "",
        end_text=kept,
        ruled_out=ruled_out,
    )


# ---- no class fits --------------------------------------------------------------------------------------------------


def _way_out(stopped: Sequence[Stopped], needs: Requirements) -> str:
    """Returns the class that came nearest, why it does not fit, and what to change."""
    reached = max((stage for _, stage, _ in stopped), default=RequirementStage.GPU)
    if reached is RequirementStage.GPU:
        return "No class with a GPU is active yet. Contact an operator."
    nearest = [(option, why) for option, stage, why in stopped if stage is reached]
    if reached is RequirementStage.MEMORY:
        return _too_large(nearest, needs)
    option, why = max(nearest, key=lambda one: (one[0].units_per_workload, one[0].largest_node or 0, one[0].slug))
    change = {
        RequirementStage.ATTRIBUTES: "Drop this requirement, or ask an operator for GPUs that meet it.",
        RequirementStage.LIFE: "Ask an operator for a replacement, or when it is available again.",
        RequirementStage.KIND: "Run it as a job."
        if needs.work == INTERACTIVE
        else "Run it in a notebook, or contact an operator.",
        RequirementStage.ISOLATION: "Accept sharing, or ask an operator for a class that is not shared.",
        RequirementStage.SHARING: "Ask an operator for a class that is not shared.",
        RequirementStage.SEVERAL: _fewer([one for one, _ in nearest]),
    }[reached]
    return f"{option.name}: {why} {change}"


def _too_large(nearest: Sequence[tuple[ClassOption, str]], needs: Requirements) -> str:
    known = [(option, why) for option, why in nearest if option.axes.memory_mib]
    if not known:
        return (
            "None of the classes that would fit reports its memory. Contact an operator, or measure your peak on one "
            "of these classes."
        )
    largest, why = max(known, key=lambda one: (one[0].axes.memory_mib or 0, one[0].slug))
    usable = largest.axes.memory_mib or 1
    if largest.axes.sharing == "time-slicing" and usable >= (needs.memory_mib or 0):
        return f"{largest.name}: {why} Ask an operator for a class that is not shared."
    wanted, most = gib_apart(needs.memory_mib or 0, usable)
    text = f"No class has {peak_text(needs, wanted)} on one {largest.unit}; the largest is {largest.name} with {most}."
    parts = ceil((needs.memory_mib or 0) / usable) if not needs.or_more else 2
    if largest.axes.partition != "none" or largest.axes.sharing != "none":
        return f"{text} Reduce memory use (smaller batch, lower precision), or ask an operator for whole GPUs."
    if parts > largest.units_per_workload or (largest.largest_node is not None and parts > largest.largest_node):
        return (
            f"{text} Even if the model is split, it needs {parts} GPUs, more than a workload may have: reduce memory "
            "use."
        )
    return (
        f"{text} Split the model over {parts} GPUs, or reduce memory use: smaller batch, lower precision, offloading."
    )


def _fewer(nearest: Sequence[ClassOption]) -> str:
    whole = [option for option in nearest if option.axes.sharing == "none" and option.axes.partition == "none"]
    if not whole:
        return "Split the work into independent workloads of 1 unit each, or ask an operator for whole GPUs."
    most = max(min(option.units_per_workload, option.largest_node or option.units_per_workload) for option in whole)
    return f"Request at most {plural(most, 'GPU')} on one node, or split the work into independent jobs."


def _kept_exclusive(best: ClassOption, stopped: Sequence[Stopped], needs: Requirements) -> str:
    """Returns why an exclusive class is recommended although sharing was accepted."""
    if needs.own_part or best.axes.sharing != "none":
        return ""
    shared = [one for one in stopped if one[0].axes.sharing != "none" and one[1] > RequirementStage.ISOLATION]
    if not shared:
        return ""
    option, _, why = max(shared, key=lambda one: (one[1], one[0].slug))
    return f"Shared classes do not fit. {option.name}: {why}"


# ---- order of the classes --------------------------------------------------------------------------------------------


def _order(option: ClassOption, needs: Requirements) -> tuple[Any, ...]:
    return bool(option.held), not may_use(option, needs.cards), *_fit(option, needs)


def _fit(option: ClassOption, needs: Requirements) -> tuple[bool, float, float, float, Decimal, str]:
    """Returns a sort key, lowest first: made for CUDA unless requested otherwise, kind of sharing, links between GPUs,
    memory, price, slug.
    """
    foreign = not needs.vendor and option.axes.vendor != "nvidia"
    links = INTERCONNECT_RANK.get(option.interconnect, 2) if needs.cards > 1 else 0
    memory = float(option.axes.memory_mib or "inf")
    if needs.memory_mib is None and needs.work != INTERACTIVE and option.axes.memory_mib is not None:
        memory = -memory  # a job that runs out of memory loses hours; a notebook is where the peak is measured
    return foreign, _suits(option, needs), links, memory, option.price, option.slug


def _suits(option: ClassOption, needs: Requirements) -> int:
    """Returns how well this kind of sharing suits this kind of work, if sharing is accepted: 0 is best."""
    steady = needs.small_processes or needs.work == SERVING
    if option.axes.sharing == "mps":
        return 0
    if option.axes.sharing == "time-slicing":
        return 0 if needs.work == INTERACTIVE and not needs.long and not steady else 2
    return 1


def _runner_up(
    best: ClassOption, left: Sequence[ClassOption], found: Sequence[ClassOption], needs: Requirements
) -> RecommendedClass | None:
    """Returns a better class that the team may not use yet; else the next; else one that fits with sharing."""
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


def _instead(best: ClassOption, second: ClassOption, needs: Requirements) -> str:
    if second.axes.sharing != "none" and best.axes.sharing == "none":
        return f"Choose it if you accept up to {plural(second.axes.replicas - 1, 'other pod')} and pauses."
    if best.axes.sharing != "none" and second.axes.sharing == "none":
        return "Choose it if other pods turn out to be a problem."
    mine, theirs = best.axes.memory_mib, second.axes.memory_mib
    if not mine or not theirs or mine == theirs:
        return "It is equally suitable."
    has, instead = gib_apart(mine, theirs)
    if theirs > mine:
        return f"Choose it if you need more than {has}: it has {instead}."
    if not may_use(second, needs.cards):
        return "It is smaller and sufficient, but your team's quota does not cover it yet."
    return f"Choose it if {instead} is sufficient."


# ---- sentences -------------------------------------------------------------------------------------------------------


def _choice(option: ClassOption, needs: Requirements) -> RecommendedClass:
    at_once, start = start_estimate(option, needs.cards)
    return RecommendedClass(option.slug, option.name, needs.cards, option.unit, at_once, start, option.price)
