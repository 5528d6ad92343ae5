"""Quota that ended or became smaller, as the reason why a run waits for units: what changed, and what can be requested.

Pure, but for one query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from catalog.classes.queries import retirement_notice, successor_name
from catalog.models import GpuClass
from portal.ui.text import date_and_time
from tenants.grants.queries import GrantedUnits
from tenants.models import Grant
from workloads.status.explain.quantities import units_of
from workloads.status.explain.queue import more_than_maximum
from workloads.status.explain.types import CONTACT_OPERATORS
from workloads.status.types import PREEMPTED_REASONS, Phase, Status

# Reasons that more quota of the team would end.
QUOTA_REASONS = frozenset({"waiting_for_quota", "exceeds_maximum"}) | PREEMPTED_REASONS
# An older change is not what a run waits for.
RECENT = timedelta(days=90)


@dataclass(frozen=True)
class QuotaLoss:
    """The last end of a grant of the class that left fewer units in force. `slug`, `name`: of the class to request, the
    successor of a retiring one; "" if none can be requested. `starts_at`: of the next grant.
    """

    name: str
    before: int
    now: int
    at: datetime
    notice: str
    slug: str
    starts_at: datetime | None = None
    starts_with: int = 0

    @property
    def sentence(self) -> str:
        when = date_and_time(self.at)
        what = f"Your team's quota of {self.name}"
        if not self.now:
            return f"{what} ({self.before}) expired on {when}."
        return f"{what} was reduced from {self.before} to {self.now} on {when}."

    @property
    def remedy(self) -> str:
        if self.notice:
            return self.notice
        if self.starts_at is not None:
            return f"A grant of {self.starts_with} starts on {date_and_time(self.starts_at)}."
        return "Request quota again."


def quota_losses(tenant_id: int, classes: Collection[GpuClass], now: datetime) -> dict[int, QuotaLoss]:
    """Returns the losses by class id. One query, none without classes."""
    if not classes:
        return {}
    rows = Grant.objects.filter(tenant_id=tenant_id, gpu_class__in=classes, period__endswith__gt=now - RECENT)
    by_class: dict[int, list[Grant]] = {}
    for one in rows:
        by_class.setdefault(one.gpu_class_id, []).append(one)
    found = ((one.pk, _loss(one, by_class.get(one.pk, []), now)) for one in classes)
    return {pk: loss for pk, loss in found if loss is not None}


def _loss(one: GpuClass, grants: Collection[Grant], now: datetime) -> QuotaLoss | None:
    at = max((grant.period.upper for grant in grants if grant.period.upper <= now), default=None)
    if at is None:
        return None
    before, in_force = _units(grants, at - timedelta(microseconds=1)), _units(grants, now)
    if in_force >= before:
        return None
    notice = retirement_notice(one)
    next_one = min(
        (grant for grant in grants if grant.period.lower > now), key=lambda grant: grant.period.lower, default=None
    )
    successor = one.successor if successor_name(one) else None
    slug = one.slug if not notice else successor.slug if successor is not None else ""
    return QuotaLoss(
        one.name,
        before,
        in_force,
        at,
        notice,
        slug,
        next_one.period.lower if next_one else None,
        next_one.units if next_one else 0,
    )


def _units(grants: Iterable[Grant], at: datetime) -> int:
    return sum(one.units for one in grants if one.period.lower <= at < one.period.upper)


def most_at_once(grants: Collection[Grant]) -> int:
    """The most units in force at any time from now on; `grants`: those in force and those to come."""
    return max((_units(grants, one.period.lower) for one in grants), default=0)


def with_allowance(told: Status, *, name: str, units: int, own: GrantedUnits, gpu_class: GpuClass) -> Status:
    """Kueue's message that a run exceeds the maximum is about the numbers that the queue had then. It is final only if
    neither the quota in force nor a later grant allows the run.
    """
    if told.reason != "exceeds_maximum" or told.explained is None:
        return told
    theirs = [one for one in (*own.running, *own.to_come) if one.gpu_class_id == gpu_class.pk]
    now = own.in_force.get(gpu_class.pk, 0)
    if max(now, most_at_once(theirs)) + gpu_class.borrowing_limit < units:
        if told.facts["most_units"] >= now:
            return told
        # It was said of a smaller quota than the one in force.
        sentence, facts = more_than_maximum(units, now, name), {"most_units": now}
        found = replace(told.explained, sentence=sentence, facts={**told.explained.facts, **facts})
        return replace(told, sentence=sentence, facts={**told.facts, **facts}, explained=found)
    sentence, remedy = told.sentence, "It starts automatically when more units are granted, or lent by other teams."
    if now >= units:
        sentence = f"{units_of(units, name)} requested and granted; the queue has not applied your team's quota yet."
        remedy = f"It starts automatically when the queue has applied it. {CONTACT_OPERATORS}"
    found = replace(told.explained, sentence=sentence, remedy=remedy, is_final=False)
    return replace(told, phase=Phase.QUEUED, sentence=sentence, explained=found)


def with_loss(told: Status, loss: QuotaLoss) -> Status:
    """The loss comes first: it is the reason, and the queue's message its consequence."""
    sentence = f"{loss.sentence} {told.sentence}"
    facts: Mapping[str, object] = {
        "granted_before": loss.before,
        "granted_units": loss.now,
        "grant_ended_at": loss.at.isoformat(),
    }
    explained = told.explained
    if explained is not None:
        remedy = f"{loss.remedy} {explained.remedy}".strip()
        explained = replace(explained, sentence=sentence, remedy=remedy, facts={**explained.facts, **facts})
    return replace(told, sentence=sentence, facts={**told.facts, **facts}, explained=explained)
