"""Reads requests: what was requested and decided, and what this actor may do about it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    BooleanField,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    prefetch_related_objects,
)
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from catalog.models import GpuClass
from portal.core.errors import Refusal, get_or_refuse
from tenants.approvers.policy import ApproverRights
from tenants.approvers.queries import lines_decided_by, rights_of
from tenants.core.queries import database_now
from tenants.members import policy
from tenants.models import Grant, Membership, Namespace, QuotaLine, QuotaRequest, RequestComment, Tenant
from tenants.requests.decisions import policy as decision_policy
from tenants.requests.decisions import types as decision_types
from tenants.requests.escalation.working_days import after_working_days
from tenants.requests.rules.queries import granted_and_base_units

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class LineRow:
    """One line. `held`: units in force now. `replaced`: the total that a new total replaces, now or at the decision;
    None if no decision recorded it. `unit`: name of one unit. `refusal`: why this person may not decide it.

    `notice_days`: for a reduction, how many whole days before its start the team was notified.
    """

    pk: int
    gpu_class_id: int
    slug: str
    name: str
    unit: str
    kind: str
    held: int
    asked_units: int
    asked_from: datetime
    asked_until: datetime
    decided_units: int | None
    decided_from: datetime | None
    decided_until: datetime | None
    decided_grace_hours: int | None
    state: str
    reason: str
    decided_by: str
    decided_at: datetime | None
    refusal: Refusal | None
    notice_days: int | None
    replaced: int | None

    @property
    def is_reclaim(self) -> bool:
        return self.kind == QuotaLine.Kind.RECLAIM


@dataclass(frozen=True)
class RequestRow:
    pk: int
    tenant: Tenant
    filed_by: str
    filed_by_id: int
    filed_at: datetime
    justification: str
    lines: tuple[LineRow, ...]
    # An approver waits for the team's answer.
    is_asked_back: bool
    # Since when the decision is overdue; None: it is not.
    overdue_since: datetime | None = None

    @property
    def pending(self) -> tuple[LineRow, ...]:
        return tuple(line for line in self.lines if line.state == QuotaLine.State.PENDING)

    @property
    def to_decide(self) -> tuple[LineRow, ...]:
        """Returns the pending lines that this person may decide."""
        return tuple(line for line in self.pending if line.refusal is None)

    @property
    def is_reclaim(self) -> bool:
        """True if its lines reduce quota; either all lines of a request do or none."""
        return any(line.is_reclaim for line in self.lines)

    @property
    def state(self) -> str:
        """Derived: pending while any line is pending, then approved if any line was."""
        states = {line.state for line in self.lines}
        order = [QuotaLine.State.PENDING, QuotaLine.State.APPROVED, QuotaLine.State.DENIED]
        return str(next((state for state in order if state in states), QuotaLine.State.WITHDRAWN))

    @property
    def refusal(self) -> Refusal | None:
        """Returns why this person may not decide any of the pending lines."""
        refusals = [line.refusal for line in self.pending]
        return refusals[0] if refusals and all(refusals) else None


def requests_for(by: Actor, *, tenant: str = "", state: str = "") -> QuerySet[QuotaRequest]:
    """Returns the requests that this actor may see, newest first; `state` as in RequestRow.state."""
    found = QuotaRequest.objects.visible_to(by).order_by("-id")
    if tenant:
        found = found.filter(tenant__slug=tenant)
    return found.filter(_in_state(state)) if state else found


def team_of_requests(by: Actor, slug: str) -> Tenant:
    """Returns the team that a filter of a list names; a delegate sees a team through the requests to decide. One query.
    Raises Refused (404).
    """
    theirs = QuotaRequest.objects.visible_to(by).filter(tenant=OuterRef("pk"))
    own = Tenant.objects.visible_to(by).filter(pk=OuterRef("pk"))
    return get_or_refuse(Tenant.objects.filter(Exists(own) | Exists(theirs)), slug=slug)


def requests_to_decide(mine: ApproverRights) -> QuerySet[QuotaRequest]:
    """Returns requests with a pending line that these rights allow to decide, oldest first (by id)."""
    lines = QuotaLine.objects.filter(lines_decided_by(mine), state=QuotaLine.State.PENDING).values("request")
    return QuotaRequest.objects.filter(_OneOf(F("pk"), ArraySubquery(lines))).order_by("id")


class _OneOf(Func):
    """Compares with an array: for a join the planner scans all lines ever filed, since it assumes that pending ones are
    spread evenly among them.
    """

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()


def _in_state(state: str) -> Exists | Q:
    def some(*states: str) -> Exists:
        return Exists(QuotaLine.objects.filter(request=OuterRef("pk"), state__in=states))

    order = ["pending", "approved", "denied", "withdrawn"]
    if state not in order:
        return Q(pk=None)
    earlier = order[: order.index(state)]
    return some(state) & ~some(*earlier) if earlier else some(state)


def request_rows(
    requests: Collection[QuotaRequest], *, by: Actor, mine: ApproverRights | None = None
) -> list[RequestRow]:
    """In the given order. Eight queries, whatever their number; seven where the actor's rights are known."""
    rows = {request.pk: request for request in requests}
    prefetch_related_objects(list(rows.values()), "tenant", "filed_by", "lines__gpu_class", "lines__decided_by")
    held = granted_and_base_units({request.tenant_id for request in requests}, at=database_now())
    standings = _standings(by, {request.tenant_id for request in requests})
    mine = rights_of(by) if mine is None else mine
    asked = requests_asked_back(rows)
    return [
        _request_row(request, held, standings[request.tenant_id], mine, by, request.pk in asked) for request in requests
    ]


def is_decided(pk: int) -> bool:
    """Returns whether no line of the request is pending. The doors process asks at each change of the team. One
    query.
    """
    return not QuotaLine.objects.filter(request=pk, state=QuotaLine.State.PENDING).exists()


def request_versions(tenant_id: int, pks: Collection[int]) -> dict[int, str]:
    """Returns by request of this team a text that changes with each decision and comment. One query."""
    lines = QuotaLine.objects.filter(request=OuterRef("pk")).order_by("pk").values("state")
    comments = RequestComment.objects.filter(request=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    found = QuotaRequest.objects.filter(tenant=tenant_id, pk__in=pks).values_list(
        "pk", ArraySubquery(lines), Subquery(comments)
    )
    return {pk: f"{' '.join(states)} {comment or 0}" for pk, states, comment in found}


def namespace_of_request(pk: int) -> str:
    """Returns the name of the namespace whose pages are told of a decision; "" if the team has none. One query."""
    return Namespace.objects.filter(tenant__requests=pk).order_by("pk").values_list("name", flat=True).first() or ""


def overdue_at(filed_at: datetime) -> datetime:
    """Returns from when on a pending request is overdue."""
    return after_working_days(filed_at, settings.ESCALATE_AFTER_WORKING_DAYS, timezone.get_default_timezone())


def _overdue_since(request: QuotaRequest, *, waits: bool) -> datetime | None:
    due_at = overdue_at(request.filed_at)
    return due_at if waits and due_at <= timezone.now() else None


@dataclass(frozen=True)
class PendingRequest:
    pk: int
    team: str
    team_name: str
    filed_at: datetime
    is_overdue: bool


def pending_requests() -> list[PendingRequest]:
    """Requests of all teams with a pending line, oldest first; none is overdue while its team has to answer. Two
    queries.
    """
    found = QuotaRequest.objects.filter(_in_state(QuotaLine.State.PENDING)).order_by("id")
    rows = list(found.values_list("pk", "tenant__slug", "tenant__name", "filed_at"))
    asked_back = requests_asked_back([pk for pk, *_ in rows])
    now = timezone.now()
    return [
        PendingRequest(pk, team, name, at, is_overdue=pk not in asked_back and overdue_at(at) <= now)
        for pk, team, name, at in rows
    ]


def requests_asked_back(pks: Collection[int]) -> set[int]:
    """Returns the requests whose last comment is an approver's question."""
    last = RequestComment.objects.filter(request__in=pks).order_by("request_id", "-id").distinct("request_id")
    return {row.request_id for row in last if row.asks_back}


def _standings(by: Actor, tenant_ids: Collection[int]) -> dict[int, policy.Standing]:
    roles = dict(Membership.objects.of(by).values_list("tenant_id", "role"))
    wanted = dict(Namespace.objects.filter(tenant_id__in=tenant_ids).values_list("tenant_id", "wanted"))
    return {pk: policy.Standing(roles.get(pk, ""), wanted.get(pk, "active")) for pk in tenant_ids}


def _request_row(
    request: QuotaRequest,
    held: dict[tuple[int, int], tuple[int, int]],
    standing: policy.Standing,
    mine: ApproverRights,
    by: Actor,
    is_asked_back: bool,
) -> RequestRow:
    is_pending = any(line.state == QuotaLine.State.PENDING for line in request.lines.all())
    return RequestRow(
        pk=request.pk,
        tenant=request.tenant,
        filed_by=request.filed_by.name,
        filed_by_id=request.filed_by_id,
        filed_at=request.filed_at,
        justification=request.justification,
        is_asked_back=is_asked_back and is_pending,
        overdue_since=_overdue_since(request, waits=is_pending and not is_asked_back),
        lines=tuple(
            LineRow(
                pk=line.pk,
                gpu_class_id=line.gpu_class_id,
                slug=line.gpu_class.slug,
                name=line.gpu_class.name,
                unit=catalog.unit_of(line.gpu_class),
                kind=line.kind,
                held=(units := held.get((line.tenant_id, line.gpu_class_id), (0, 0)))[0],
                replaced=units[1] if line.state == QuotaLine.State.PENDING else line.facts.get("base"),
                asked_units=line.asked_units,
                asked_from=line.asked_from,
                asked_until=line.asked_until,
                decided_units=line.decided_units,
                decided_from=line.decided_from,
                decided_until=line.decided_until,
                decided_grace_hours=None if line.decided_grace is None else line.decided_grace // HOUR,
                state=line.state,
                reason=line.reason,
                decided_by=decider_name(line),
                decided_at=line.decided_at,
                refusal=decision_policy.may_decide(
                    by, decidable_line(line, line.gpu_class, request.filed_by_id, standing, mine)
                ),
                notice_days=(line.asked_from - request.filed_at).days if line.kind == QuotaLine.Kind.RECLAIM else None,
            )
            for line in request.lines.all()
        ),
    )


def decider_name(line: QuotaLine) -> str:
    """Returns who decided and for whom, or the rule that decided; "" if undecided."""
    if line.decided_by is None:
        return line.rule and f"rule {line.rule}"
    lender = line.facts.get("deputy_for")
    return f"{line.decided_by.name}, delegate for {lender}" if lender else line.decided_by.name


def decidable_line(
    line: QuotaLine, gpu_class: GpuClass, filed_by: int, standing: policy.Standing, mine: ApproverRights
) -> decision_types.DecidableLine:
    decides = mine.classes_for(line.tenant_id, filed_by)
    return decision_types.DecidableLine(
        gpu_class.slug, gpu_class.name, line.state, filed_by, standing.role, decides, is_deputy=bool(mine.lent)
    )


def classes_of_request(request: QuotaRequest) -> list[GpuClass]:
    """Returns the classes of its lines, whatever the state of the lines. One query."""
    return list(GpuClass.objects.filter(lines__request=request).distinct().order_by("pk"))


def requested_units(class_ids: Collection[int], *, at: datetime) -> dict[int, int]:
    """By class id, what pending lines of all teams would add at `at`: a new total what it is more than the running one,
    a temporary increase all of it, a reduction nothing. One query.
    """
    base = Grant.objects.filter(
        tenant=OuterRef("tenant"), gpu_class=OuterRef("gpu_class"), kind=Grant.Kind.BASE, period__contains=at
    )
    lines = QuotaLine.objects.filter(gpu_class__in=class_ids, state=QuotaLine.State.PENDING)
    lines = lines.exclude(kind=QuotaLine.Kind.RECLAIM).annotate(base=Subquery(base.values("units")[:1]))
    found: dict[int, int] = {}
    for pk, kind, units, running in lines.values_list("gpu_class_id", "kind", "asked_units", "base"):
        replaced = (running or 0) if kind == QuotaLine.Kind.BASE else 0
        found[pk] = found.get(pk, 0) + max(0, units - replaced)
    return found
