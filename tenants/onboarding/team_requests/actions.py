"""The actions about requests for a team: a person files or withdraws one, an approver decides it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import Event, NoticeKind
from portal.core.due import touch
from portal.core.errors import Refused, get_or_refuse, refuse_if
from portal.core.transitions import move_state
from tenants.approvers import queries
from tenants.core import queries as core_queries
from tenants.core.notifications import page_url
from tenants.grants import queries as grant_queries
from tenants.models import Bundle, Plan, QuotaRequest, TeamRequest, Tenant
from tenants.onboarding.bundles import policy as bundle_policy
from tenants.onboarding.bundles import queries as bundle_queries
from tenants.onboarding.team_requests import policy as team_request_policy
from tenants.onboarding.team_requests import queries as team_request_queries
from tenants.onboarding.teams import policy as team_policy
from tenants.onboarding.teams import queries as team_queries
from tenants.onboarding.teams.actions import create_tenant_rows
from tenants.requests import actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions import policy
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.rules import queries as rule_queries
from tenants.requests.rules.policy import BUNDLE
from tenants.requests.types import RequestedLine

TeamRequestState = TeamRequest.State


@transaction.atomic
def request_team(*, name: str, purpose: str, bundle: str, slug: str = "", by: Actor) -> TeamRequest:
    """`bundle` is a name; without a slug one is made from the name. Notifies all who decide every class of the bundle.

    Raises Refused: bad_name, bad_purpose, reserved, unknown_bundle (422), slug_taken, already_asked (409).
    """
    refuse_if(team_request_policy.may_ask_for_team(by))
    name, purpose = " ".join(name.split()), " ".join(purpose.split())
    slug = slug.strip() or slugify(name)[:40].strip("-_")
    refuse_if(team_request_policy.team_refusal(name=name, slug=slug, purpose=purpose))
    refuse_if(team_queries.slug_taken_refusal(slug))
    chosen = bundle_queries.open_bundles().filter(name=bundle).first()
    if chosen is None:
        raise Refused(bundle_policy.UNKNOWN_BUNDLE)
    row = TeamRequest.objects.create(user=by.person, name=name, slug=slug, purpose=purpose, bundle=chosen)
    event = record(by, "team.asked", row, after={"slug": slug, "purpose": purpose, "bundle": chosen.name})
    body = f"{purpose}\n\nBundle: {chosen.name}\n\n" + page_url(f"/team-requests/{row.pk}")
    people = [person for person in team_request_queries.deciders(chosen) if person.pk != by.user_id]
    deliver(event, people, subject=f"{by.name} requests a team: {name}", body=body)
    return row


@transaction.atomic
def withdraw_team_request(request_id: int, *, by: Actor) -> TeamRequest:
    """Raises Refused: not_found (404), also for another person's request; already_decided (409)."""
    row = get_or_refuse(TeamRequest.objects.filter(user=by.user), pk=request_id)
    refuse_if(team_request_policy.may_ask_for_team(by))
    move_state(TeamRequest, row.pk, to=TeamRequestState.WITHDRAWN, decided_at=timezone.now())
    record(by, "team.withdrawn", row)
    row.refresh_from_db()
    return row


@transaction.atomic
def decide_team(
    request_id: int,
    *,
    approve: bool,
    slug: str = "",
    units: Mapping[str, int] | None = None,
    reason: str = "",
    over_promise: OverPromise | None = None,
    by: Actor,
) -> TeamRequest:
    """An approval creates the team, its owner, its namespace and the bundle's grants together, or nothing. While the
    rule "bundle" is off, it files a request for the bundle instead, whose lines the approvers decide.

    `slug` "": as requested; `units` by slug of a class: replaces the bundle's. Raises Refused: not_found (404),
    not_allowed, own_request, not_your_class (403), already_decided, suspended, slug_taken, rule_off (409),
    reason_missing, unknown_class (422), and what `decide_request` raises.
    """
    # Locked: a decision or withdrawal at the same moment waits, and then finds it decided.
    rows = TeamRequest.objects.visible_to(by).select_for_update(of=("self",)).select_related("user", "bundle")
    row = get_or_refuse(rows, pk=request_id)
    mine = queries.rights_of(by)
    facts = team_request_queries.decidable_team(row, mine)
    refuse_if(team_request_policy.may_decide_team(by, facts))
    reason, slug = " ".join(reason.split()), slug.strip() or row.slug
    lenders = mine.lenders(facts.classes, None, row.user_id)
    signed = {"deputy_for": lenders} if lenders else {}
    decided: dict[str, Any] = {"decided_by": by.user, "decided_at": timezone.now(), "reason": reason}
    if not approve:
        refuse_if(policy.may_deny(reason=reason))
        move_state(TeamRequest, row.pk, to=TeamRequestState.DENIED, **decided)
        event = record(by, "team.decided", row, after={"approved": False, "reason": reason, **signed})
        subject = f"Your request for the team {row.name} was denied"
        deliver(event, [row.user], subject=subject, body=f"{reason}\n\n" + page_url("/start"))
    else:
        by_rule = rule_queries.is_rule_on(BUNDLE)
        refuse_if(team_request_policy.may_approve_team(facts, units or ()))
        refuse_if(team_request_policy.units_refusal(units or (), by_rule=by_rule))
        refuse_if(team_policy.slug_refusal(slug) or team_queries.slug_taken_refusal(slug))
        tenant = create_tenant_rows(slug=slug, name=row.name, owner=row.user, purpose=row.purpose, by=by)
        move_state(TeamRequest, row.pk, to=TeamRequestState.APPROVED, tenant=tenant, **decided)
        request = _ask_bundle(row, tenant)
        after = {"approved": True, "slug": slug, "bundle": row.bundle.name, "request": request.pk, "reason": reason}
        event = record(by, "team.decided", row, tenant=slug, after={**after, **signed})
        if by_rule:
            _grant_bundle(request, units or {}, bundle=row.bundle, reason=reason, over_promise=over_promise, by=by)
        else:
            _leave_to_approvers(event, request, by=by)
    row.refresh_from_db()
    return row


def _ask_bundle(row: TeamRequest, tenant: Tenant) -> QuotaRequest:
    """Follows the rules of every request: one line per class, requested by the person who requests the team."""
    now = core_queries.database_now()
    ends = now + timedelta(days=row.bundle.days)
    [bundle] = bundle_queries.bundle_rows([row.bundle])
    lines = [RequestedLine(line.slug, line.units, now, ends) for line in bundle.lines]
    facts = grant_queries.class_facts(tenant, [line.gpu_class for line in lines], at=now)
    return actions.create_request_rows(tenant, lines, facts, justification=row.purpose, filed_by=row.user, now=now)


def _grant_bundle(
    request: QuotaRequest,
    units: Mapping[str, int],
    *,
    bundle: Bundle,
    reason: str,
    over_promise: OverPromise | None,
    by: Actor,
) -> None:
    """Decided by `by`, whose approval of the team includes its bundle; each line records that the rule granted it."""
    rule = {"name": BUNDLE, "bundle": bundle.name}
    decisions = [
        Decision(
            line_id=line.pk,
            approve=True,
            units=units.get(line.gpu_class.slug),
            reason=reason,
            measured={"rule": {**rule, "units": line.asked_units}},
        )
        for line in request.lines.select_related("gpu_class").order_by("pk")
    ]
    subject = f"Your team {request.tenant.name} was created"
    decision_actions.decide_request(request.pk, decisions, by=by, over_promise=over_promise, subject=subject)


def _leave_to_approvers(event: Event, request: QuotaRequest, *, by: Actor) -> None:
    """Handles it like any filed request: a worker plans it, people decide it."""
    touch(Plan, Plan.objects.create(request=request).pk)
    tenant, path = request.tenant, f"/requests/{request.pk}"
    class_ids = list(request.lines.values_list("gpu_class_id", flat=True))
    approvers = [one for one in queries.approvers_of(class_ids, tenant=tenant) if one.pk != by.user_id]
    subject, body = f"{tenant.name} requests quota", f"{request.justification}\n\n" + page_url(path)
    deliver(event, approvers, subject=subject, body=body, kind=NoticeKind.WAITING)
    body = "Its initial quota is pending: approvers decide it as a request.\n\n" + page_url(path)
    deliver(event, [request.filed_by], subject=f"Your team {tenant.name} was created", body=body)
