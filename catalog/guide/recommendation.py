"""Which class suits a need: answers in, one class with its reasons out, or why there is none. Pure.

A class that does not fit is ruled out with a sentence (catalog/guide/requirements.py). Of the others the smallest that
is enough comes first, so that larger ones stay free for those who need them; classes that the team may not use come
last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from math import ceil
from typing import Any

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

KEEP_EXCLUSIVE, CHANGE = "keep exclusive", "change the workload"
Stopped = tuple[ClassOption, RequirementStage, str]
INTERCONNECT_RANK = {"nvswitch": 0, "nvlink": 1, "unknown": 2, "pcie": 3}


def recommend(needs: Requirements, options: Iterable[ClassOption]) -> Recommendation:
    """Deterministic: where all else is equal, the slug decides."""
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


# ---- the honest end --------------------------------------------------------------------------------------------------


def _way_out(stopped: Sequence[Stopped], needs: Requirements) -> str:
    """What came nearest, why it does not do, and what to change."""
    reached = max((stage for _, stage, _ in stopped), default=RequirementStage.GPU)
    if reached is RequirementStage.GPU:
        return "No class with a GPU is open yet. Ask the operators."
    nearest = [(option, why) for option, stage, why in stopped if stage is reached]
    if reached is RequirementStage.MEMORY:
        return _too_large(nearest, needs)
    option, why = max(nearest, key=lambda one: (one[0].units_per_workload, one[0].largest_node or 0, one[0].slug))
    change = {
        RequirementStage.ATTRIBUTES: "Do without, or ask the operators for cards that have it.",
        RequirementStage.LIFE: "Ask the operators what comes instead, or when it is back.",
        RequirementStage.KIND: "Run it as a job."
        if needs.work == INTERACTIVE
        else "Run it in a notebook, or ask the operators.",
        RequirementStage.ISOLATION: "Accept neighbours, or ask the operators for a class that is not shared.",
        RequirementStage.SHARING: "Keep exclusive: ask the operators for a class that is not shared.",
        RequirementStage.SEVERAL: _fewer([one for one, _ in nearest]),
    }[reached]
    return f"{option.name}: {why} {change}"


def _too_large(nearest: Sequence[tuple[ClassOption, str]], needs: Requirements) -> str:
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
        return f"{text} Even split it would take {parts} GPUs, more than a workload may have: need less."
    return f"{text} Split the model over {parts} GPUs, or need less: smaller batch, lower precision, offloading."


def _fewer(nearest: Sequence[ClassOption]) -> str:
    whole = [option for option in nearest if option.axes.sharing == "none" and option.axes.partition == "none"]
    if not whole:
        return "Split the work into independent workloads of 1 unit each, or ask the operators for whole cards."
    most = max(min(option.units_per_workload, option.largest_node or option.units_per_workload) for option in whole)
    return f"Ask for at most {plural(most, 'GPU')} on one node, or split the work into independent jobs."


def _kept_exclusive(best: ClassOption, stopped: Sequence[Stopped], needs: Requirements) -> str:
    """Sharing was accepted, and yet what is advised is not shared: why."""
    if needs.own_part or best.axes.sharing != "none":
        return ""
    shared = [one for one in stopped if one[0].axes.sharing != "none" and one[1] > RequirementStage.ISOLATION]
    if not shared:
        return ""
    option, _, why = max(shared, key=lambda one: (one[1], one[0].slug))
    return f"Keep exclusive. {option.name}: {why}"


# ---- which comes first -----------------------------------------------------------------------------------------------


def _order(option: ClassOption, needs: Requirements) -> tuple[Any, ...]:
    return bool(option.held), not may_use(option, needs.cards), *_fit(option, needs)


def _fit(option: ClassOption, needs: Requirements) -> tuple[bool, float, float, float, Decimal, str]:
    """Smaller suits better: made for CUDA unless asked otherwise, kind of sharing, links between cards, memory, price,
    slug.
    """
    foreign = not needs.vendor and option.axes.vendor != "nvidia"
    links = INTERCONNECT_RANK.get(option.interconnect, 2) if needs.cards > 1 else 0
    memory = float(option.axes.memory_mib or "inf")
    if needs.memory_mib is None and needs.work != INTERACTIVE and option.axes.memory_mib is not None:
        memory = -memory  # who runs out of memory after hours has lost them; in a notebook one learns the peak
    return foreign, _suits(option, needs), links, memory, option.price, option.slug


def _suits(option: ClassOption, needs: Requirements) -> int:
    """How well this kind of sharing suits this kind of work, for who accepts neighbours: 0 best."""
    steady = needs.small_processes or needs.work == SERVING
    if option.axes.sharing == "mps":
        return 0
    if option.axes.sharing == "time-slicing":
        return 0 if needs.work == INTERACTIVE and not needs.long and not steady else 2
    return 1


def _runner_up(
    best: ClassOption, left: Sequence[ClassOption], found: Sequence[ClassOption], needs: Requirements
) -> RecommendedClass | None:
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


def _instead(best: ClassOption, second: ClassOption, needs: Requirements) -> str:
    if second.axes.sharing != "none" and best.axes.sharing == "none":
        return f"if you accept up to {plural(second.axes.replicas - 1, 'neighbour')} and pauses."
    if best.axes.sharing != "none" and second.axes.sharing == "none":
        return "if neighbours turn out to be in the way."
    mine, theirs = best.axes.memory_mib, second.axes.memory_mib
    if mine and theirs and theirs > mine:
        return f"if you need more than {mine:,} MiB: it has {theirs:,}."
    if mine and theirs and theirs < mine and not may_use(second, needs.cards):
        return "smaller and enough; your team may use none of it yet."
    if mine and theirs and theirs < mine:
        return f"if {theirs:,} MiB turn out to be enough."
    return "just as suitable."


# ---- sentences -------------------------------------------------------------------------------------------------------


def _choice(option: ClassOption, needs: Requirements) -> RecommendedClass:
    at_once, start = start_estimate(option, needs.cards)
    return RecommendedClass(option.slug, option.name, needs.cards, option.unit, at_once, start, option.price)
