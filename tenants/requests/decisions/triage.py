"""Which requests are ready to approve, which are in conflict, which need a review. Pure.

Unknown is never ready to approve: a request whose usage was not measured needs a review.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from portal.core.errors import Refusal
from portal.ui.text import plural
from tenants.grants.combined_promises import Conflict
from tenants.grants.types import Overcommit
from tenants.requests.rules.policy import IncreaseBounds, IncreaseFacts, increase_justification, increase_refusal

# Maximum number of conflicting requests named; opening the request shows all of them.
CONFLICTS_NAMED_MAX = 5


class TriageGroup(StrEnum):
    ONE_CLICK = "one_click"
    CONFLICT = "conflict"
    LOOK = "look"


@dataclass(frozen=True)
class TriageLine:
    """A pending line, as if approved as requested. `base`: the team's running total where it starts.

    `excess`, `rivals`: by how much it exceeds the limit, alone and with other pending requests. `refusal`: why this
    person may not decide it. `obstacle`: why nobody can approve it as requested, or "". `increase`: the measurements
    that justify an increase; None: not measured.
    """

    name: str
    unit: str
    kind: str
    asked: int
    base: int
    excess: Overcommit | None = None
    rivals: Conflict | None = None
    refusal: Refusal | None = None
    obstacle: str = ""
    increase: IncreaseFacts | None = None

    @property
    def is_increase(self) -> bool:
        return self.kind == "boost" or (self.kind == "base" and self.asked > self.base)


@dataclass(frozen=True)
class TriagePlan:
    """`is_ready`: computed after the request was filed and last changed. Numbers of objects: `changed`; `refused` by
    the cluster; `foreign`, where an object of that name exists that the portal does not own. `is_observed`: it waits
    for the end of observe-only, which is no error.
    """

    is_ready: bool
    error: str = ""
    is_observed: bool = False
    changed: int = 0
    refused: int = 0
    foreign: int = 0


@dataclass(frozen=True)
class TriageRequest:
    pk: int
    lines: tuple[TriageLine, ...]
    plan: TriagePlan
    is_asked_back: bool = False


@dataclass(frozen=True)
class Triage:
    """`reasons`: sentences that state why it is in this group. `besides`: for a conflict, its other open questions."""

    group: TriageGroup
    reasons: tuple[str, ...]
    besides: tuple[str, ...] = ()


def triage(request: TriageRequest, bounds: IncreaseBounds) -> Triage:
    conflicts = tuple(_conflicts(request))
    questions = tuple(_questions(request, bounds))
    if conflicts:
        return Triage(TriageGroup.CONFLICT, conflicts, questions)
    if questions:
        return Triage(TriageGroup.LOOK, questions)
    return Triage(TriageGroup.ONE_CLICK, tuple(_merits(request)))


def _conflicts(request: TriageRequest) -> Iterator[str]:
    for line in request.lines:
        if line.excess is not None and line.excess.limit is not None:
            yield f"{line.name} would exceed its allocation limit of {line.excess.limit} by {line.excess.units}."
        if line.rivals is not None:
            yield _rivalry(request.pk, line, line.rivals)
    plan = request.plan
    if plan.foreign:
        yield (
            f"{plural(plan.foreign, 'planned object')} cannot be created: an object with that name exists that the "
            "portal did not create."
        )
    if plan.refused:
        yield f"The cluster rejected {plural(plan.refused, 'planned object')} in the dry run."


def _rivalry(pk: int, line: TriageLine, found: Conflict) -> str:
    others = [f"#{other}" for other in found.requests if other != pk]
    named = others[:CONFLICTS_NAMED_MAX]
    if len(others) > CONFLICTS_NAMED_MAX:
        named.append(f"{len(others) - CONFLICTS_NAMED_MAX} more")
    with_them = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return (
        f"{line.name} fits alone, but with {with_them} it exceeds the allocation limit by {found.units} "
        f"from {found.start:%-d %b %Y}."
    )


def _questions(request: TriageRequest, bounds: IncreaseBounds) -> Iterator[str]:
    if request.is_asked_back:
        yield "Information requested: the team has not answered yet."
    if not request.lines:
        yield "It has no pending lines."
    for line in request.lines:
        if line.refusal is not None:
            yield line.refusal.message
        if line.obstacle:
            yield line.obstacle
        if line.excess is not None and line.excess.limit is None:
            yield f"The capacity of {line.name} is unknown: no current cluster data and no allocation limit."
        if not line.obstacle and (question := _use(line, bounds)):
            yield question
    if request.plan.is_observed:
        yield "The plan waits: the portal only observes the cluster."
    elif request.plan.error:
        yield f"The plan failed: {request.plan.error}"
    elif not request.plan.is_ready:
        yield "The plan is not ready yet."


def _use(line: TriageLine, bounds: IncreaseBounds) -> str:
    """Returns why measured usage does not justify the line; "" if it does, or if no increase is requested."""
    if line.kind == "reclaim":
        return f"Reduces the quota of the team for {line.name}."
    if not line.is_increase:
        return ""
    if line.kind == "boost":
        return (
            f"{line.name}: temporary increase of {plural(line.asked, line.unit)}. Temporary increases are not checked "
            "against past usage; decide from the justification."
        )
    if line.increase is None:
        return f"{line.name}: {line.asked} instead of {line.base}, but its usage is not measured."
    refusal = increase_refusal(line.increase, bounds)
    return refusal.message if refusal else ""


def _merits(request: TriageRequest) -> Iterator[str]:
    for line in request.lines:
        if line.is_increase and line.increase is not None:
            yield f"{line.name}, {line.base} to {line.asked}: {_lower(increase_justification(line.increase))}"
        elif line.asked == line.base:
            yield f"{line.name}: renews {plural(line.asked, line.unit)}."
        else:
            yield f"{line.name}: reduces the total from {line.base} to {line.asked}."
    yield "Within the allocation limit at all times."
    changed = request.plan.changed
    yield f"Dry run accepted: {plural(changed, 'object')} would change." if changed else "Dry run accepted: no changes."


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
