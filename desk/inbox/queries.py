"""An approver's inbox: pending requests, each with its group and the reason for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Sum

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from cluster.observe_only.queries import WAITING
from cluster.reads import queries as read_queries
from desk.inbox.context import DecisionContext, TeamClass, base_promises, decision_context
from portal.core.errors import Refusal
from tenants.approvers.policy import ApproverRights
from tenants.class_access import queries as class_access_queries
from tenants.core import queries as core_queries
from tenants.grants import combined_promises
from tenants.grants import types as grant_types
from tenants.grants.combined_promises import Change, Conflict
from tenants.grants.promises import Promise
from tenants.members import policy as member_policy
from tenants.models import Namespace, Plan, QuotaLine, QuotaRequest
from tenants.requests import policy as request_policy
from tenants.requests import queries as request_queries
from tenants.requests.decisions import policy
from tenants.requests.decisions.triage import Triage, TriageLine, TriagePlan, TriageRequest, triage
from tenants.requests.queries import LineRow, RequestRow
from tenants.requests.rules import queries as rule_queries
from tenants.requests.rules.policy import IncreaseFacts
from usage.right_size.quota.queries import activity_of_teams
from usage.right_size.quota.types import HeldActivity
from usage.samples.queries import PERIOD, Usage, usage_of_teams
from usage.waits.queries import WaitStatistics, waits_of_teams

ON_ITS_PAGE = "{name} is decided on the page of the request."
IS_OVER = "The requested period has ended."
State = QuotaLine.State


@dataclass(frozen=True)
class InboxFilter:
    """A team's slug or a part of its name, a class's slug, a group; "" means all."""

    team: str = ""
    gpu_class: str = ""
    group: str = ""


@dataclass(frozen=True)
class InboxRow:
    """`pool`: by class id, a sentence about the units that are allocated to teams and those that are free."""

    request: RequestRow
    triage: Triage
    pool: Mapping[int, str]


def check_filter(by: Actor, mine: ApproverRights, chosen: InboxFilter) -> None:
    """For the API, whose filters are slugs. Raises Refused: not_found (404) for a team, unknown_class (422)."""
    if chosen.team:
        request_queries.team_of_requests(by, chosen.team)
    if chosen.gpu_class and not (mine.classes and chosen.gpu_class in mine.classes):
        known = class_access_queries.known_classes(by, read_queries.current_cluster())
        class_access_queries.class_to_filter(known, chosen.gpu_class)


def pending_requests(mine: ApproverRights, chosen: InboxFilter) -> QuerySet[QuotaRequest]:
    """Oldest first means by id. The group is computed when rows are read; it is not stored."""
    found = request_queries.requests_to_decide(mine)
    if chosen.team:
        found = found.filter(Q(tenant__slug=chosen.team) | Q(tenant__name__icontains=chosen.team))
    if not chosen.gpu_class:
        return found
    lines = QuotaLine.objects.filter(request=OuterRef("pk"), state=State.PENDING, gpu_class__slug=chosen.gpu_class)
    return found.filter(Exists(lines))


def inbox_rows(found: Collection[QuotaRequest], *, by: Actor, mine: ApproverRights) -> list[InboxRow]:
    """Returns rows in the given order. About twenty queries, whatever the number of requests and teams."""
    rows = request_queries.request_rows(found, by=by, mine=mine)
    at = core_queries.database_now()
    class_ids = {line.gpu_class_id for row in rows for line in row.pending if line.gpu_class_id}
    teams = {row.tenant.pk for row in rows}
    ground = decision_context(class_ids, teams, at=at)
    rivals = _rivals(ground)
    bounds = rule_queries.increase_bounds()
    use = _use(teams, ground, at, with_activity=bounds.activity_percent_min > 0)
    plans = _plans(rows, teams)
    wanted = dict(Namespace.objects.filter(tenant__in=teams).values_list("tenant_id", "wanted"))
    pool = ground.pool()
    sorted_rows = []
    for row in rows:
        closed = policy.may_grant(member_policy.Standing("", wanted.get(row.tenant.pk, "active")))
        lines = tuple(_line_facts(row, line, ground, rivals, use, closed) for line in row.pending)
        facts = TriageRequest(row.pk, lines, plans.get(row.pk, TriagePlan(is_ready=False)), row.is_asked_back)
        sorted_rows.append(InboxRow(row, triage(facts, bounds), pool))
    return sorted_rows


def in_group(rows: Iterable[InboxRow], group: str) -> list[InboxRow]:
    """`group` "": all of them."""
    return [row for row in rows if group in ("", str(row.triage.group))]


# ---- facts for all requests --------------------------------------------------------------------------------------


def _pending(class_ids: Collection[int]) -> dict[TeamClass, dict[str, Any]]:
    """Returns every pending line for these classes, of all approvers. There is one per class and team at a time."""
    lines = QuotaLine.objects.filter(state=State.PENDING, gpu_class__in=class_ids)
    lines = lines.exclude(tenant__namespaces__wanted=Namespace.Wanted.CLOSED)
    fields = ("request_id", "tenant_id", "gpu_class_id", "kind", "asked_units", "asked_from", "asked_until")
    return {(one["tenant_id"], one["gpu_class_id"]): one for one in lines.order_by("request_id").values(*fields)}


def _tight(ground: DecisionContext) -> list[int]:
    """Returns classes in which the pending units do not all fit on top of the allocated ones: only there can requests
    conflict.

    One query. Pending lines of other classes, which may be thousands, are not read.
    """
    waiting = QuotaLine.objects.filter(state=State.PENDING, gpu_class__in=ground.classes).values("gpu_class_id")
    asked = dict(waiting.annotate(units=Sum("asked_units")).values_list("gpu_class_id", "units"))
    return [
        pk
        for pk in ground.classes
        if (limit := ground.limit(pk)) is not None
        and max(step.units for step in ground.steps[pk]) + asked.get(pk, 0) > limit
    ]


def _rivals(ground: DecisionContext) -> dict[tuple[int, int], Conflict]:
    """Returns conflicts by request and class. Three queries, one if no class is tight."""
    asked = _pending(_tight(ground))
    totals = base_promises({pk for _, pk in asked}, {tenant for tenant, _ in asked}, ground.at)
    ground = replace(ground, totals=totals)
    by_class: dict[int, dict[int, Change]] = defaultdict(dict)
    for holding, one in asked.items():
        promise = Promise(one["asked_units"], one["asked_from"], one["asked_until"])
        if change := ground.change(holding, one["kind"], promise):
            by_class[one["gpu_class_id"]][one["request_id"]] = change
    found = {}
    for class_id, changes in by_class.items():
        limit = ground.limit(class_id)
        if limit is not None:
            for request_id, rivals in combined_promises.find_conflicts(ground.steps[class_id], changes, limit).items():
                found[request_id, class_id] = rivals
    return found


def _use(
    teams: Collection[int], ground: DecisionContext, at: datetime, *, with_activity: bool
) -> dict[TeamClass, tuple[Usage, WaitStatistics, HeldActivity | None]]:
    """Activity reads many rows for each team, and only if a bound compares it."""
    classes = list(ground.classes.values())
    usage = usage_of_teams(teams, classes, since=at - PERIOD, at=at)
    waits = waits_of_teams(teams, classes, since=at - PERIOD, at=at)
    activity = activity_of_teams(teams, list(ground.classes), since=at - PERIOD, at=at) if with_activity else {}
    return {holding: (one, waits[holding], activity.get(holding)) for holding, one in usage.items()}


def _plans(rows: Collection[RequestRow], teams: Collection[int]) -> dict[int, TriagePlan]:
    """A plan is current if it was made after the request and after the team's last decision."""
    last = dict(
        QuotaLine.objects.filter(tenant__in=teams)
        .values("tenant_id")
        .annotate(at=Max("decided_at"))
        .values_list("tenant_id", "at")
    )
    changed = {row.pk: max(filter(None, (row.filed_at, last.get(row.tenant.pk)))) for row in rows}
    return {
        plan.request_id: _plan_facts(plan, changed[plan.request_id])
        for plan in Plan.objects.filter(request__in=changed)
    }


def _plan_facts(plan: Plan, changed_at: datetime) -> TriagePlan:
    is_made = plan.made_at is not None and plan.made_at >= changed_at
    refused = [one for one in plan.objects_planned if one["result"] == "refused"]
    foreign = sum(one["code"] == "foreign" for one in refused)
    return TriagePlan(
        is_ready=is_made and plan.observed_generation >= plan.generation,
        error=plan.error_text,
        is_observed=plan.error_code == WAITING,
        changed=sum(one["change"] != "same" for one in plan.objects_planned),
        refused=len(refused) - foreign,
        foreign=foreign,
    )


# ---- facts for one line ------------------------------------------------------------------------------------------


def _line_facts(
    row: RequestRow,
    line: LineRow,
    ground: DecisionContext,
    rivals: Mapping[tuple[int, int], Conflict],
    use: Mapping[TeamClass, tuple[Usage, WaitStatistics, HeldActivity | None]],
    closed: Refusal | None,
) -> TriageLine:
    common: dict[str, Any] = {"name": line.name, "unit": line.unit, "kind": line.kind, "asked": line.asked_units}
    if not line.gpu_class_id:
        obstacle = ON_ITS_PAGE.format(name=line.name)
        return TriageLine(**common, base=line.held, refusal=line.refusal, obstacle=obstacle)
    holding = (row.tenant.pk, line.gpu_class_id)
    promise = Promise(line.asked_units, line.asked_from, line.asked_until)
    change, base = ground.change(holding, line.kind, promise), ground.base(holding, line.kind, promise)
    return TriageLine(
        **common,
        base=base,
        excess=ground.excess(line.gpu_class_id, change) if change else None,
        rivals=rivals.get((row.pk, line.gpu_class_id)),
        refusal=line.refusal,
        obstacle=closed.message if closed else _obstacle(line, ground, holding) if change else IS_OVER,
        increase=_increase(line, base, ground.at, *use[holding]),
    )


def _obstacle(line: LineRow, ground: DecisionContext, holding: TeamClass) -> str:
    one = ground.classes[line.gpu_class_id]
    facts = grant_types.ClassFacts(
        line.slug, line.name, one.life_cycle, line.held, successor=catalog.successor_name(one)
    )
    if refusal := request_policy.growth_refusal(facts, kind=line.kind, units=line.asked_units):
        return refusal.message
    start, totals = max(line.asked_from, ground.at), ground.totals.get(holding, ())
    later = [total for total in totals if start <= total.start < line.asked_until]
    if later and line.kind != QuotaLine.Kind.BOOST:
        return f"A total of {later[0].units} of {line.name} is already granted from {later[0].start:%-d %b %Y}."
    return ""


def _increase(
    line: LineRow, base: int, at: datetime, usage: Usage, wait: WaitStatistics, activity: HeldActivity | None
) -> IncreaseFacts:
    return IncreaseFacts(
        class_name=line.name,
        held=line.held,
        base=base,
        asked=line.asked_units,
        days=(line.asked_until - max(line.asked_from, at)) / timedelta(days=1),
        peak=usage.peak,
        mean=usage.mean,
        seen_share=usage.seen_share if usage.seen_since else None,
        waited_share=wait.share,
        activity=activity.share if activity else None,
        activity_seen_share=activity.seen_share if activity else None,
    )
