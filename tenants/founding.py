"""How a team begins with a bundle: somebody asks, an approver decides. And the bundles themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from accounts.actions import deliver, record
from accounts.actor import Actor
from accounts.models import Event, User
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster.names import short_hash
from portal.due import touch
from portal.errors import NOT_FOUND, Refused, get_or_refuse, refuse_if
from portal.transitions import move
from tenants import actions, founding_policy, policy, queries
from tenants.decisions import Decision, OverPromise
from tenants.founding_policy import BundleUnits
from tenants.models import Bundle, BundleLine, Grant, Namespace, Plan, QuotaRequest, TeamRequest, Tenant
from tenants.policy import Asked
from tenants.queries import founding, rules
from tenants.rule_policy import BUNDLE, STARTER
from tenants.teams import found_tenant
from tenants.telling import address

State = TeamRequest.State
TRIAL_PURPOSE = "To try the portal."


@transaction.atomic
def ask_for_team(*, name: str, purpose: str, bundle: str, slug: str = "", by: Actor) -> TeamRequest:
    """`bundle` is a name; without a slug one is made of the name. Who decides every class of the bundle is told.

    Raises Refused: bad_name, bad_purpose, reserved, unknown_bundle (422), slug_taken, already_asked (409).
    """
    refuse_if(founding_policy.may_ask_for_team(by))
    name, purpose = " ".join(name.split()), " ".join(purpose.split())
    slug = slug.strip() or slugify(name)[:40].strip("-_")
    refuse_if(founding_policy.team_refusal(name=name, slug=slug, purpose=purpose))
    refuse_if(founding.taken(slug))
    chosen = founding.bundles().filter(name=bundle).first()
    if chosen is None:
        raise Refused(founding_policy.NO_BUNDLE)
    row = TeamRequest.objects.create(user=by.person, name=name, slug=slug, purpose=purpose, bundle=chosen)
    event = record(by, "team.asked", row, after={"slug": slug, "purpose": purpose, "bundle": chosen.name})
    body = f"{purpose}\n\nBundle: {chosen.name}\n\n" + address(f"/team-requests/{row.pk}")
    people = [person for person in founding.deciders(chosen) if person.pk != by.user_id]
    deliver(event, people, subject=f"{by.name} asks for a team: {name}", body=body)
    return row


@transaction.atomic
def withdraw_team_request(request_id: int, *, by: Actor) -> TeamRequest:
    """Raises Refused: not_found (404), also for somebody else's; already_decided (409)."""
    row = get_or_refuse(TeamRequest.objects.filter(user=by.user), pk=request_id)
    refuse_if(founding_policy.may_ask_for_team(by))
    move(TeamRequest, row.pk, to=State.WITHDRAWN, decided_at=timezone.now())
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
    """A yes makes the team, its owner, its namespace and the bundle's grants at once, or nothing. While the rule
    "bundle" is off the bundle is asked for instead, and its lines wait for the approvers.

    `slug` "": as asked; `units` by slug of a class: instead of the bundle's. Raises Refused: not_found (404),
    not_allowed, own_request, not_your_class (403), already_decided, suspended, slug_taken, rule_off (409),
    reason_missing, unknown_class (422), and what `actions.decide` raises.
    """
    # Locked: who decides or withdraws at the same moment waits, and finds it decided.
    rows = TeamRequest.objects.visible_to(by).select_for_update(of=("self",)).select_related("user", "bundle")
    row = get_or_refuse(rows, pk=request_id)
    mine = queries.rights(by)
    facts = founding.team_facts(row, mine)
    refuse_if(founding_policy.may_decide_team(by, facts))
    reason, slug = " ".join(reason.split()), slug.strip() or row.slug
    lenders = mine.lenders(facts.classes, None, row.user_id)
    signed = {"deputy_for": lenders} if lenders else {}
    decided: dict[str, Any] = {"decided_by": by.user, "decided_at": timezone.now(), "reason": reason}
    if not approve:
        refuse_if(policy.may_deny(reason=reason))
        move(TeamRequest, row.pk, to=State.DENIED, **decided)
        event = record(by, "team.decided", row, after={"approved": False, "reason": reason, **signed})
        subject = f"Your team {row.name} was not approved"
        deliver(event, [row.user], subject=subject, body=f"{reason}\n\n" + address("/start"))
    else:
        by_rule = rules.is_on(BUNDLE)
        refuse_if(founding_policy.may_found(facts, units or ()))
        refuse_if(founding_policy.units_refusal(units or (), by_rule=by_rule))
        refuse_if(policy.slug_refusal(slug) or founding.taken(slug))
        tenant = found_tenant(slug=slug, name=row.name, owner=row.user, purpose=row.purpose, by=by)
        move(TeamRequest, row.pk, to=State.APPROVED, tenant=tenant, **decided)
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
    """By the very rules of every request: a line each, asked for by who wants the team."""
    now = queries.now()
    ends = now + timedelta(days=row.bundle.days)
    [bundle] = founding.bundle_rows([row.bundle])
    lines = [Asked(line.slug, line.units, now, ends) for line in bundle.lines]
    facts = queries.class_facts(tenant, [line.gpu_class for line in lines], at=now)
    return actions.put_request(tenant, lines, facts, justification=row.purpose, filed_by=row.user, now=now)


def _grant_bundle(
    request: QuotaRequest,
    units: Mapping[str, int],
    *,
    bundle: Bundle,
    reason: str,
    over_promise: OverPromise | None,
    by: Actor,
) -> None:
    """Decided by `by`, whose yes to the team is one to its bundle; each line keeps that it was the rule."""
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
    subject = f"Your team {request.tenant.name} is founded"
    actions.decide(request.pk, decisions, by=by, over_promise=over_promise, subject=subject)


def _leave_to_approvers(event: Event, request: QuotaRequest, *, by: Actor) -> None:
    """As any request that was filed: planned by a worker, decided by people."""
    touch(Plan, Plan.objects.create(request=request).pk)
    tenant, path = request.tenant, f"/requests/{request.pk}"
    class_ids = list(request.lines.values_list("gpu_class_id", flat=True))
    approvers = [one for one in queries.approvers_of(class_ids, tenant=tenant) if one.pk != by.user_id]
    subject, body = f"{tenant.name} asks for quota", f"{request.justification}\n\n" + address(path)
    deliver(event, approvers, subject=subject, body=body)
    body = "What it shall begin with waits for the approvers.\n\n" + address(path)
    deliver(event, [request.filed_by], subject=f"Your team {tenant.name} is founded", body=body)


# ---- trying ------------------------------------------------------------------------------------------------------


@transaction.atomic
def try_portal(*, by: Actor) -> Tenant:
    """A team of the person's own with one unit of a starter class for eight hours, once; granted by the rule "starter".

    Raises Refused: not_found (404) where no class is marked starter, tried_before, has_team, no_trial_now (409).
    """
    person = User.objects.select_for_update(of=("self",)).get(pk=by.person.pk)  # one at a time: once is the rule
    now = queries.now()
    trial = founding.trial(by, at=now)
    if trial is None:
        raise Refused(NOT_FOUND)
    refuse_if(trial.refusal)
    slug = f"try-{slugify(person.name)[:20].strip('-_') or 'me'}-{short_hash(person.email)}".replace("_", "-")
    tenant = found_tenant(slug=slug, name=f"Trial of {person.name}"[:80], owner=person, purpose=TRIAL_PURPOSE, by=by)
    asked = Asked(trial.gpu_class.slug, 1, now, now + founding.TRIAL)
    facts = queries.class_facts(tenant, [asked.gpu_class], at=now)
    request = actions.put_request(tenant, [asked], facts, justification=TRIAL_PURPOSE, filed_by=person, now=now)
    try:
        actions.decide_by_rule(request, rule=STARTER, subject="Your trial has begun")
    except Refused as refused:
        # Somebody was promised the last unit while we waited for the class; there is nothing to tick here.
        if refused.code != "over_promised":
            raise
        raise Refused(founding_policy.gone_meanwhile(trial.gpu_class.name)) from refused
    # Eight hours are the whole of it.
    Grant.objects.filter(line__request=request).update(grace=timedelta(0))
    Namespace.objects.filter(tenant=tenant).update(is_trial=True)
    record(by, "trial.begun", tenant, tenant=slug, after={"class": trial.gpu_class.slug, "hours": trial.hours})
    return tenant


# ---- bundles -----------------------------------------------------------------------------------------------------


@transaction.atomic
def put_bundle(
    *,
    name: str,
    lines: Sequence[tuple[str, int]],
    summary: str = "",
    days: int = 90,
    position: int = 100,
    is_open: bool = True,
    bundle_id: int | None = None,
    by: Actor,
) -> Bundle:
    """Make a bundle, or change the one of that id: its lines, units by slug of a class, take the place of the old ones.

    Who asked with it before gets what it holds when it is decided. Raises Refused: not_allowed (403), not_found (404),
    name_taken (409), bad_name, bad_summary, bad_period, bad_lines, bad_units, unknown_class, class_closed (422).
    """
    refuse_if(policy.may_operate(by))
    name, summary = " ".join(name.split()), " ".join(summary.split())
    slugs = [slug for slug, _units in lines]
    classes = {one.slug: one for one in GpuClass.objects.filter(cluster=catalog.cluster(), slug__in=slugs)}
    refuse_if(founding_policy.lines_refusal(slugs, classes))
    typed = [
        BundleUnits(
            (one := classes[slug]).name,
            units,
            is_active=one.life_cycle == GpuClass.LifeCycle.ACTIVE,
            is_for_everyone=one.visibility == GpuClass.Visibility.EVERYONE,
        )
        for slug, units in lines
    ]
    refuse_if(founding_policy.bundle_refusal(name=name, summary=summary, days=days, lines=typed))
    values = {"name": name, "summary": summary, "days": days, "position": position, "is_open": is_open}
    if bundle_id is None:
        row = Bundle.objects.create(**values)
    else:
        row = get_or_refuse(Bundle.objects.select_for_update(), pk=bundle_id)
        Bundle.objects.filter(pk=row.pk).update(**values)
        row.lines.all().delete()
        row.refresh_from_db()
    BundleLine.objects.bulk_create(
        BundleLine(bundle=row, gpu_class=classes[slug], units=units) for slug, units in lines
    )
    record(by, "bundle.changed", row, after={**values, "lines": dict(lines)})
    return row
