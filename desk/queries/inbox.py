"""An approver's inbox: what waits, in which group and why, and what a set of it would promise together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Sum

from accounts.actor import Actor
from catalog import queries as catalog
from catalog.models import GpuClass
from catalog.queries import Capacity
from portal.errors import Refusal
from tenants import joint, policy
from tenants import queries as tenants
from tenants.deputy_policy import Rights
from tenants.joint import Change, Rivals
from tenants.models import Grant, Namespace, Plan, QuotaLine, QuotaRequest
from tenants.policy import Excess
from tenants.promises import Promise, Step
from tenants.queries import promised, requests, rules
from tenants.queries.requests import LineRow, RequestRow
from tenants.rule_policy import IncreaseFacts
from tenants.triage import LineFacts, PlanFacts, RequestFacts, Triage, triage
from workloads.queries.usage import PERIOD, Usage, Wait, usage_of_teams, waits_of_teams

ON_ITS_PAGE = "{name} is decided on the request's own page."
IS_OVER = "The period that was asked for is over."
State = QuotaLine.State
# A team's class, by their ids.
Holding = tuple[int, int]


@dataclass(frozen=True)
class Filter:
    """A team's slug or a part of its name, a class's slug, a group; "" for all of them."""

    team: str = ""
    gpu_class: str = ""
    group: str = ""


@dataclass(frozen=True)
class InboxRow:
    """`pool`: by class id what all teams were promised of it and what is free, as a sentence."""

    request: RequestRow
    triage: Triage
    pool: Mapping[int, str]


@dataclass(frozen=True)
class Ground:
    """What decisions about some classes stand on, at one instant. By class id: `steps`, what all teams are promised
    from `at` on; `capacities`: as the mirror shows them. `totals`: base grants that are not over, of teams that wait.
    """

    at: datetime
    classes: Mapping[int, GpuClass]
    capacities: Mapping[int, Capacity]
    steps: Mapping[int, list[Step]]
    totals: Mapping[Holding, list[Promise]]

    def limit(self, class_id: int) -> int | None:
        """None: unknown."""
        return self.capacities[class_id].limit(self.classes[class_id])

    def pool(self) -> dict[int, str]:
        return {
            pk: tenants.pool_sentence(one, self.capacities[pk], self.steps[pk][0].units)
            for pk, one in self.classes.items()
        }

    def change(self, holding: Holding, kind: str, asked: Promise) -> Change | None:
        """What approving does from now on, as a late decision would; None: its time is over."""
        if asked.end <= self.at:
            return None
        late = Promise(asked.units, max(asked.start, self.at), asked.end)
        return joint.change(late, replaced=() if kind == QuotaLine.Kind.BOOST else self.totals.get(holding, ()))

    def base(self, holding: Holding, kind: str, asked: Promise) -> int:
        """The running total where the line begins; a boost is on top of it, and replaces nothing."""
        if kind == QuotaLine.Kind.BOOST:
            return 0
        return joint.running(self.totals.get(holding, ()), max(asked.start, self.at))

    def excess(self, class_id: int, change: Change) -> Excess | None:
        """No limit known: any growth is a promise in the dark."""
        limit = self.limit(class_id)
        found = joint.over(self.steps[class_id], change, limit or 0)
        units = max((one.units for one in found), default=0)
        return Excess(self.classes[class_id].name, units, limit) if units else None


def waiting(mine: Rights, chosen: Filter) -> QuerySet[QuotaRequest]:
    """Oldest first is by id. The group is found when rows are read: it is computed, not stored."""
    found = requests.inbox(mine)
    if chosen.team:
        found = found.filter(Q(tenant__slug=chosen.team) | Q(tenant__name__icontains=chosen.team))
    if not chosen.gpu_class:
        return found
    lines = QuotaLine.objects.filter(request=OuterRef("pk"), state=State.PENDING, gpu_class__slug=chosen.gpu_class)
    return found.filter(Exists(lines))


def inbox_rows(found: Collection[QuotaRequest], *, by: Actor, mine: Rights) -> list[InboxRow]:
    """In the given order. About twenty queries, whatever their number and that of the teams."""
    rows = requests.request_rows(found, by=by, mine=mine)
    at = tenants.now()
    class_ids = {line.gpu_class_id for row in rows for line in row.pending if line.gpu_class_id}
    teams = {row.tenant.pk for row in rows}
    ground = ground_of(class_ids, teams, at=at)
    rivals = _rivals(ground)
    use = _use(teams, ground, at)
    plans = _plans(rows, teams)
    wanted = dict(Namespace.objects.filter(tenant__in=teams).values_list("tenant_id", "wanted"))
    bounds = rules.increase_bounds()
    pool = ground.pool()
    sorted_rows = []
    for row in rows:
        closed = policy.may_grant(policy.Standing("", wanted.get(row.tenant.pk, "active")))
        lines = tuple(_line_facts(row, line, ground, rivals, use, closed) for line in row.pending)
        facts = RequestFacts(row.pk, lines, plans.get(row.pk, PlanFacts(is_ready=False)), row.is_asked_back)
        sorted_rows.append(InboxRow(row, triage(facts, bounds), pool))
    return sorted_rows


def in_group(rows: Iterable[InboxRow], group: str) -> list[InboxRow]:
    """`group` "": all of them."""
    return [row for row in rows if group in ("", str(row.triage.group))]


# ---- what it stands on -------------------------------------------------------------------------------------------


def ground_of(class_ids: Collection[int], tenant_ids: Collection[int], *, at: datetime) -> Ground:
    """About six queries."""
    classes = {one.pk: one for one in GpuClass.objects.filter(pk__in=class_ids).select_related("cluster", "successor")}
    capacities = catalog.capacities(next(iter(classes.values())).cluster, classes.values()) if classes else {}
    return Ground(at, classes, capacities, promised.steps(class_ids, at=at), _totals(class_ids, tenant_ids, at))


def _totals(class_ids: Collection[int], tenant_ids: Collection[int], at: datetime) -> dict[Holding, list[Promise]]:
    """One query."""
    totals: dict[Holding, list[Promise]] = defaultdict(list)
    running = Grant.objects.filter(
        gpu_class__in=class_ids, tenant__in=tenant_ids, kind=Grant.Kind.BASE, period__endswith__gte=at
    )
    # As values: whoever waits has some, and a row of the model costs several times as much.
    for tenant_id, class_id, units, period, grace in running.values_list(
        "tenant_id", "gpu_class_id", "units", "period", "grace"
    ):
        totals[tenant_id, class_id].append(Promise(units, period.lower, period.upper, grace))
    return totals


def _pending(class_ids: Collection[int]) -> dict[Holding, dict[str, Any]]:
    """Every line that waits for these classes, whoever decides it. One of a class and team at a time."""
    lines = QuotaLine.objects.filter(state=State.PENDING, gpu_class__in=class_ids)
    lines = lines.exclude(tenant__namespaces__wanted=Namespace.Wanted.CLOSED)
    fields = ("request_id", "tenant_id", "gpu_class_id", "kind", "asked_units", "asked_from", "asked_until")
    return {(one["tenant_id"], one["gpu_class_id"]): one for one in lines.order_by("request_id").values(*fields)}


def _tight(ground: Ground) -> list[int]:
    """Classes in which not all that waits fits on top of what was promised: there alone somebody can rival. One query.

    Elsewhere nobody reads line by line what waits, which may be thousands.
    """
    waiting = QuotaLine.objects.filter(state=State.PENDING, gpu_class__in=ground.classes).values("gpu_class_id")
    asked = dict(waiting.annotate(units=Sum("asked_units")).values_list("gpu_class_id", "units"))
    return [
        pk
        for pk in ground.classes
        if (limit := ground.limit(pk)) is not None
        and max(step.units for step in ground.steps[pk]) + asked.get(pk, 0) > limit
    ]


def _rivals(ground: Ground) -> dict[tuple[int, int], Rivals]:
    """By request and class. Three queries, one while nothing is tight."""
    asked = _pending(_tight(ground))
    totals = _totals({pk for _, pk in asked}, {tenant for tenant, _ in asked}, ground.at)
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
            for request_id, rivals in joint.rivals(ground.steps[class_id], changes, limit).items():
                found[request_id, class_id] = rivals
    return found


def _use(teams: Collection[int], ground: Ground, at: datetime) -> dict[Holding, tuple[Usage, Wait]]:
    classes = list(ground.classes.values())
    usage = usage_of_teams(teams, classes, since=at - PERIOD, at=at)
    waits = waits_of_teams(teams, classes, since=at - PERIOD, at=at)
    return {holding: (one, waits[holding]) for holding, one in usage.items()}


def _plans(rows: Collection[RequestRow], teams: Collection[int]) -> dict[int, PlanFacts]:
    """A plan is of now when it was made after what it stands on: the request, and the team's last decision."""
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


def _plan_facts(plan: Plan, changed_at: datetime) -> PlanFacts:
    is_made = plan.made_at is not None and plan.made_at >= changed_at
    refused = [one for one in plan.objects_planned if one["result"] == "refused"]
    foreign = sum(one["code"] == "foreign" for one in refused)
    return PlanFacts(
        is_ready=is_made and plan.observed_generation >= plan.generation,
        error=plan.error_text,
        changed=sum(one["change"] != "same" for one in plan.objects_planned),
        refused=len(refused) - foreign,
        foreign=foreign,
    )


# ---- one line ----------------------------------------------------------------------------------------------------


def _line_facts(
    row: RequestRow,
    line: LineRow,
    ground: Ground,
    rivals: Mapping[tuple[int, int], Rivals],
    use: Mapping[Holding, tuple[Usage, Wait]],
    closed: Refusal | None,
) -> LineFacts:
    common: dict[str, Any] = {"name": line.name, "unit": line.unit, "kind": line.kind, "asked": line.asked_units}
    if not line.gpu_class_id:
        obstacle = ON_ITS_PAGE.format(name=line.name)
        return LineFacts(**common, base=line.held, refusal=line.refusal, obstacle=obstacle)
    holding = (row.tenant.pk, line.gpu_class_id)
    promise = Promise(line.asked_units, line.asked_from, line.asked_until)
    change, base = ground.change(holding, line.kind, promise), ground.base(holding, line.kind, promise)
    return LineFacts(
        **common,
        base=base,
        excess=ground.excess(line.gpu_class_id, change) if change else None,
        rivals=rivals.get((row.pk, line.gpu_class_id)),
        refusal=line.refusal,
        obstacle=closed.message if closed else _obstacle(line, ground, holding) if change else IS_OVER,
        increase=_increase(line, base, ground.at, *use[holding]),
    )


def _obstacle(line: LineRow, ground: Ground, holding: Holding) -> str:
    one = ground.classes[line.gpu_class_id]
    facts = policy.ClassFacts(line.slug, line.name, one.life_cycle, line.held, successor=catalog.successor_of(one))
    if refusal := policy.growth_refusal(facts, kind=line.kind, units=line.asked_units):
        return refusal.message
    start, totals = max(line.asked_from, ground.at), ground.totals.get(holding, ())
    later = [total for total in totals if start <= total.start < line.asked_until]
    if later and line.kind != QuotaLine.Kind.BOOST:
        return f"A total of {later[0].units} of {line.name} is granted from {later[0].start:%-d %b %Y} on already."
    return ""


def _increase(line: LineRow, base: int, at: datetime, usage: Usage, wait: Wait) -> IncreaseFacts:
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
    )
