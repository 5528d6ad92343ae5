"""Suggested changes of a workload: one field of its form, mostly its size. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from portal.ui.text import plural, plural_form
from workloads.advice.facts import AdviceFacts
from workloads.advice.steps import NextStep, PageLink, changed
from workloads.status.explain.endings.disruption import SHARED_MEMORY
from workloads.status.explain.quantities import is_device
from workloads.status.types import Status


def change(place: str, label: str) -> Callable[[Status, AdviceFacts], list[NextStep]]:
    def step(told: Status, facts: AdviceFacts) -> list[NextStep]:
        why = told.explained.remedy if told.explained else ""
        if not facts.may_change:
            who = "The person who launched it, or an owner or manager of your team, can do that."
            return [NextStep("change", label, f"{why} {who}".strip())]
        return [NextStep("change", label, why, PageLink("workload-change", facts.name, place=f"id_{place}"))]

    return step


def is_of_size(told: Status) -> bool:
    """Returns whether the quota that is too small is of cores or memory: how many units would fit is then unknown."""
    return told.reason == "quota_too_small" and told.facts.get("resource") in ("cpu", "memory")


def size_change(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Suggests more cores or memory within the limits of the run's units; beyond these, only more units bring more."""
    if told.reason == "quota_too_small" and not is_of_size(told):
        return []
    if told.reason == "bus_error":
        return _shared_memory(told, facts)
    if told.reason in ("limit_range", "below_limit_range") and is_device(str(told.facts.get("resource", ""))):
        return _units_within(told, facts)
    if told.reason == "below_limit_range":
        return _more(told, facts)
    what = "memory_gib" if told.facts.get("resource") == "memory" or "memory_gib" in told.facts else "cpu"
    now, own = told.facts.get("memory_gib"), facts.own
    if now is None:
        limit = told.facts.get("limit")
        [found] = change(what, "Change cores or memory")(told, facts)
        return [found if limit is None else replace(found, why=f"The limit is {limit}. {found.why}")]
    is_all = own is not None and own.memory_gib and now >= own.memory_gib * facts.each
    if is_all and (own is None or facts.each >= own.most_units):
        return []
    place, label = ("units", "Request more units") if is_all else (what, "Request more memory")
    [found] = change(place, label)(told, facts)
    return [replace(found, why=f"It had {now:g} GiB. {found.why}")]


def _shared_memory(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Shared memory is part of the memory: beyond that of its units, only more units bring more."""
    own = facts.own
    if own is None or not own.memory_gib or facts.shared_memory_gib < own.memory_gib * facts.each:
        return change("shared_memory_gib", "Request more shared memory")(told, facts)
    return change("units", "Request more units")(told, facts) if facts.each < own.most_units else []


def files_change(told: Status, facts: AdviceFacts) -> list[NextStep]:
    if told.facts.get("resource") == SHARED_MEMORY:
        return _shared_memory(told, facts)
    return change("volume", "Choose a volume")(told, facts)


def _more(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Suggests the minimum of the namespace. If the units of the run do not bring as much, more units do."""
    least, own, is_memory = told.facts.get("limit"), facts.own, told.facts.get("resource") == "memory"
    field, label = ("memory_gib", "Request more memory") if is_memory else ("cpu", "Request more cores")
    if least is None:
        return change(field, "Change cores or memory")(told, facts)
    per_unit = (own.memory_gib if is_memory else own.cpu) if own is not None else 0
    units = ceil(least / per_unit) if per_unit else facts.each
    if own is not None and units > own.most_units:
        return []
    [found] = change(field, label)(told, facts)
    if own is not None and found.way is not None and units > facts.each:
        label = f"Request {plural(units, own.figures.unit)} instead of {facts.each}"
        found = replace(found, label=label, way=changed(facts, own.slug, units, "id_units"))
    return [replace(found, why=f"The minimum is {plural(least, 'GiB' if is_memory else 'core')}. {found.why}")]


def _units_within(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Suggests as many units as one container may or must request."""
    bound, own = told.facts.get("limit"), facts.own
    if not isinstance(bound, int) or own is None or not 0 < bound <= own.most_units:
        return []
    [found] = change("units", f"Request {plural(bound, own.figures.unit)} instead of {facts.each}")(told, facts)
    return [found if found.way is None else replace(found, way=changed(facts, own.slug, bound, "id_units"))]


def less_beside(told: Status, facts: AdviceFacts) -> list[NextStep]:
    """Suggests the cpu or memory that is free on one node with free units."""
    resource, left, asked = (told.facts.get(name) for name in ("resource", "available", "asked"))
    if facts.own is None or not isinstance(left, int) or left < 1 or not facts.may_change:
        return []
    field, unit = ("cpu", "core") if resource == "cpu" else ("memory_gib", "GiB")
    why = f"One node with free {plural_form(facts.own.figures.unit)} has {plural(left, unit)} free."
    way = PageLink("workload-change", facts.name, {field: str(left)}, f"id_{field}")
    return [NextStep("change", f"Request {plural(left, unit)} instead of {asked}", why, way)]
