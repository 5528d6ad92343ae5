"""Which other classes a queued run is offered, and with how many units. Pure.

What the workload asked for decides: a GPU is never replaced by cores (only classes with the same kind of device are
options at all); the least missing GPU memory comes first, then isolation, then the number of units. Of the two that are
shown, one is smaller than the run's own class, if such a class is free: the run then leaves larger units to others.
"""

from __future__ import annotations

from portal.ui.text import capital, plural
from workloads.advice.facts import AdviceFacts, ClassOption
from workloads.advice.steps import NextStep, changed, free_now

SHOWN = 2


def other_classes(facts: AdviceFacts, *, with_fewer_units: bool) -> list[NextStep]:
    """Returns classes on which the run fits now; `with_fewer_units`: or a smaller one, if it fits nowhere as it is."""
    if not facts.may_change:
        return []
    fitting = [(one, units) for one in facts.options if (units := _units(facts, one))]
    as_requested = [found for found in fitting if found[1] == facts.each]
    fitting = as_requested or (fitting if with_fewer_units else [])
    fitting.sort(key=lambda found: _rank(facts, *found))
    best, rest = fitting[:1], fitting[1:]
    if best and not best[0][0].is_smaller:
        rest.sort(key=lambda found: not found[0].is_smaller)
    return [_step(facts, one, units) for one, units in (best + rest)[:SHOWN]]


def _units(facts: AdviceFacts, one: ClassOption) -> int:
    """Returns the most units of each worker that the class takes and that fit now, or 0."""
    return next((units for units in range(one.takes_units, 0, -1) if facts.starts_on(one.figures, units)), 0)


def _rank(facts: AdviceFacts, one: ClassOption, units: int) -> tuple[int, bool, bool]:
    return _missing_memory_mib(facts, one, units), one.is_less_isolated, units < facts.each


def _missing_memory_mib(facts: AdviceFacts, one: ClassOption, units: int) -> int:
    """GPU memory of each worker that it would have less. 0 if either is unknown."""
    if not facts.gpu_memory_mib or not one.gpu_memory_mib:
        return 0
    return max(0, facts.each * facts.gpu_memory_mib - units * one.gpu_memory_mib)


def _step(facts: AdviceFacts, one: ClassOption, units: int) -> NextStep:
    verb = "smaller_slice" if one.is_smaller else "other_class"
    size = "" if units == facts.each else f"{plural(units, one.figures.unit)} of "
    parts = [f"{capital(free_now(one.figures, units, facts.workers))}."]
    if _missing_memory_mib(facts, one, units):
        has, asked = (_gib(mib) for mib in (units * one.gpu_memory_mib, facts.each * facts.gpu_memory_mib))
        parts.append(f"It has {has} of GPU memory instead of {asked}.")
    if one.is_less_isolated:
        parts.append("Other workloads share the GPU.")
    if one.asks_terms:
        parts.append("Its terms must be accepted first.")
    return NextStep(verb, f"Switch to {size}{one.name}", " ".join(parts), changed(facts, one.slug, units, "choices"))


def _gib(mib: int) -> str:
    return f"{mib / 1024:.0f} GiB"
