"""Which class suits a need: takes answers, returns one class with its reasons, or why none fits. Pure.

A class that does not fit is ruled out with a sentence (catalog/guide/requirements.py). The others are in the order of
catalog/guide/ranking.py. Every class that is not recommended is listed, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil

from catalog.contract.types import gib_apart
from catalog.guide.ranking import Ranking
from catalog.guide.reasons import may_use, reasons_for, start_estimate, trade_off_of
from catalog.guide.requirements import (
    INTERACTIVE,
    ClassOption,
    Requirements,
    RequirementStage,
    objection,
    peak_text,
    split_over,
)
from catalog.guide.types import OtherClass, Recommendation, RecommendedClass
from portal.ui.text import plural

KEEP_EXCLUSIVE, CHANGE = "use an exclusive class", "no class fits"
Stopped = tuple[ClassOption, RequirementStage, str]


def recommend(needs: Requirements, options: Iterable[ClassOption]) -> Recommendation:
    """Deterministic: if all else is equal, the slug decides."""
    found = sorted(options, key=lambda option: option.slug)
    left = [option for option in found if objection(option, needs) is None]
    stopped = [(option, *why) for option in found if (why := objection(option, needs)) is not None]
    # Those that come nearest first.
    against = [OtherClass(one.slug, one.name, False, why) for one, _, why in sorted(stopped, key=lambda one: -one[1])]
    if not left:
        return Recommendation(None, None, None, (), "", CHANGE, _way_out(stopped, needs), tuple(against))
    ranking = Ranking.of(needs, left)
    best, *others = sorted(left, key=ranking.order)
    choices = [_choice(option, needs) for option in (best, *others)]
    kept = _kept_exclusive(best, stopped, needs)
    fitting = [OtherClass(one.slug, one.name, True, _less_suitable(ranking, best, one)) for one in others]
    return Recommendation(
        best=choices[0],
        runner_up=_runner_up(ranking, best, others, found),
        starts_now=next((choice for choice in choices if choice.at_once), None),
        reasons=reasons_for(best, needs, others),
        trade_off=trade_off_of(best, needs),
        end=KEEP_EXCLUSIVE if kept else "",
        end_text=kept,
        others=(*fitting, *against),
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
        RequirementStage.TIME: "Let it resume from checkpoints, or ask an operator for a class without a time limit.",
        RequirementStage.SEVERAL: _fewer([one for one, _ in nearest], needs),
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
    if parts > largest.most_units:
        return (
            f"{text} Even if the model is split, it needs {parts} GPUs, more than a workload may have: reduce memory "
            "use."
        )
    return (
        f"{text} Split the model over {parts} GPUs, or reduce memory use: smaller batch, lower precision, offloading."
    )


def _fewer(nearest: Sequence[ClassOption], needs: Requirements) -> str:
    whole = [option for option in nearest if option.axes.sharing == "none" and option.axes.partition == "none"]
    if not whole:
        return "Split the work into independent workloads of 1 unit each, or ask an operator for whole GPUs."
    several = replace(needs, several_nodes=True, sensitive="")
    over_nodes = [option for option in whole if objection(option, several) is None]
    if over_nodes and not needs.several_nodes:
        largest = max(over_nodes, key=lambda option: (option.most_units, option.slug))
        split = split_over(largest, several)
        return (
            f"Request at most {plural(largest.most_units, 'GPU')} on one node, or let the job use several nodes: "
            f"{split.workers} workers of {plural(split.units, 'GPU')}."
        )
    most = max(
        option.allocatable or option.most_units if needs.several_nodes else option.most_units for option in whole
    )
    where = "" if needs.several_nodes else " on one node"
    return f"Request at most {plural(most, 'GPU')}{where}, or split the work into independent jobs."


def _kept_exclusive(best: ClassOption, stopped: Sequence[Stopped], needs: Requirements) -> str:
    """Returns why an exclusive class is recommended although sharing was accepted."""
    if needs.own_part or best.axes.sharing != "none":
        return ""
    shared = [one for one in stopped if one[0].axes.sharing != "none" and one[1] > RequirementStage.ISOLATION]
    if not shared:
        return ""
    option, _, why = max(shared, key=lambda one: (one[1], one[0].slug))
    return f"Shared classes do not fit. {option.name}: {why}"


# ---- alternatives ----------------------------------------------------------------------------------------------------


def _runner_up(
    ranking: Ranking, best: ClassOption, others: Sequence[ClassOption], found: Sequence[ClassOption]
) -> RecommendedClass | None:
    """Returns a better class that the team may not use yet; else the next; else one that fits with sharing."""
    if not others and ranking.needs.own_part:
        relaxed = replace(ranking.needs, own_part=False, alone=False)
        others = [option for option in found if option is not best and objection(option, relaxed) is None]
        ranking = Ranking.of(relaxed, [best, *others])
    if not others:
        return None
    better = [option for option in others if not option.held and ranking.fit(option) < ranking.fit(best)]
    second = min(better or others, key=ranking.order)
    return replace(_choice(second, ranking.needs), why=_instead(ranking, best, second))


def _instead(ranking: Ranking, best: ClassOption, second: ClassOption) -> str:
    if second.axes.sharing != "none" and best.axes.sharing == "none":
        return f"Choose it if you accept up to {plural(second.axes.replicas - 1, 'other pod')} and pauses."
    if best.axes.sharing != "none" and second.axes.sharing == "none":
        return "Choose it if other pods turn out to be a problem."
    if not may_use(second, ranking.needs.cards) and may_use(best, ranking.needs.cards):
        return _beyond_quota(best, second)
    mine, theirs = best.axes.memory_mib, second.axes.memory_mib
    if mine and theirs and theirs > mine:
        has, instead = gib_apart(mine, theirs)
        return f"Choose it if you need more than {has}: it has {instead}."
    if mine and theirs and theirs < mine and second.price < best.price:
        return f"It is cheaper: choose it if {gib_apart(theirs, mine)[0]} is sufficient."
    return _less_suitable(ranking, best, second)


def _beyond_quota(best: ClassOption, second: ClassOption) -> str:
    has_prices = bool(best.price and second.price)
    is_smaller = (second.axes.memory_mib or 0) < (best.axes.memory_mib or 0)
    better = "cheaper" if has_prices and second.price < best.price else ""
    better = "smaller" if is_smaller and (not has_prices or second.price == best.price) else better
    what = f"is {better} and sufficient" if better else "fits"
    return f"It {what}, but your team's quota does not cover it yet."


def _less_suitable(ranking: Ranking, best: ClassOption, other: ClassOption) -> str:
    why = ranking.against(best, other)
    return f"It fits, but {why}" if why else "It is equally suitable; the first by name is recommended."


def _choice(option: ClassOption, needs: Requirements) -> RecommendedClass:
    split = split_over(option, needs)
    at_once, start = start_estimate(option, split.units, split.workers)
    return RecommendedClass(
        option.slug, option.name, split.units, option.unit, at_once, start, option.price, workers=split.workers
    )
