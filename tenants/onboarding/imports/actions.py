"""The action that tries or carries out a plan: each row by the actions of the other rooms, in its own transaction.

A row that is refused changes nothing and leaves the others. A dry run carries out everything in one transaction and
takes it back: so it refuses what the import would refuse, also where the sum of all rows is too much. Meanwhile
decisions about the same classes have to wait.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from django.db import IntegrityError, OperationalError, transaction

from accounts.account_setup.actions import add_person
from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import User
from accounts.people.queries import user_at_verified_address
from portal.core.errors import Refused, refuse, refuse_if, to_refusal
from tenants.core.queries import database_now
from tenants.grants.queries import class_facts
from tenants.members.actions import add_member
from tenants.models import Invitation, Membership, Namespace, Tenant
from tenants.onboarding.imports import queries
from tenants.onboarding.imports.types import (
    ImportedGrant,
    ImportedMember,
    ImportedTeam,
    ImportPlan,
    Outcome,
    PlanRow,
    SetAside,
    SettledRow,
)
from tenants.onboarding.teams import policy
from tenants.onboarding.teams.actions import create_tenant
from tenants.requests.actions import create_request_rows
from tenants.requests.decisions.actions import decide_request
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.types import RequestedLine

ORDER = ("team", "member", "quota")
# Fields of the actions, as the rows call them.
FIELDS = {"slug": "team", "gpu_class": "class", "over_promise": "units", "ends_at": "until"}
WAYS_OUT = {
    "over_promised": " In an import: write fewer units, or give a reason with --over-promise.",
    "too_many_invitations": " An import can create the accounts as well: --add-accounts.",
}


@dataclass(frozen=True)
class ImportHandling:
    """`adds_accounts`: who has no account gets one, instead of an invitation. `over_promise`: as for a decision."""

    adds_accounts: bool = False
    over_promise: OverPromise = field(default_factory=OverPromise)


def carry_out(plan: ImportPlan, *, is_applied: bool, handling: ImportHandling, by: Actor) -> list[SettledRow]:
    """In the order of the plan. Raises Refused: not_allowed (403)."""
    refuse_if(policy.may_create_tenant(by))
    if is_applied:
        return _settle_all(plan, handling, by)
    with transaction.atomic():
        found = _settle_all(plan, handling, by)
        transaction.set_rollback(True)
    return found


def _settle_all(plan: ImportPlan, handling: ImportHandling, by: Actor) -> list[SettledRow]:
    """Teams first, then their members, then quota: a file may have them in any order."""
    settled: dict[int, SettledRow] = {}
    for kind in ORDER:
        for at, row in enumerate(plan.rows):
            if row.kind == kind and not isinstance(row, SetAside):
                settled[at] = _settle(row, plan.source, handling, by)
    return [settled[at] if at in settled else _set_aside(row) for at, row in enumerate(plan.rows)]


def _set_aside(row: PlanRow) -> SettledRow:
    assert isinstance(row, SetAside)
    return SettledRow(**asdict(row))


def _settle(
    row: ImportedTeam | ImportedMember | ImportedGrant, source: str, handling: ImportHandling, by: Actor
) -> SettledRow:
    try:
        with transaction.atomic():
            if isinstance(row, ImportedTeam):
                outcome, text = _settle_team(row, handling, by)
            elif isinstance(row, ImportedMember):
                outcome, text = _settle_member(row, handling, by)
            else:
                outcome, text = _settle_grant(row, source, handling, by)
    except (Refused, IntegrityError, OperationalError) as error:
        refusal = to_refusal(error)
        if refusal is None or refusal.status >= 500:
            raise
        text = refusal.message + WAYS_OUT.get(refusal.code, "")
        name = (refusal.field or "").rpartition(".")[2]
        name = FIELDS.get(name, name)
        return SettledRow(row.place, row.kind, row.title, Outcome.REFUSED, text, name, refusal.code)
    return SettledRow(row.place, row.kind, row.title, outcome, text)


def _settle_team(row: ImportedTeam, handling: ImportHandling, by: Actor) -> queries.Standing:
    if standing := queries.standing_team(row):
        _team(row.slug)
        return standing
    if not row.owners:
        raise refuse("unknown_person", "The team has no owner. Name one: --owner EMAIL.", field="owner")
    at = queries.first_account(row)
    owner = row.owners[at or 0]
    user = user_at_verified_address(owner.email)
    if user is None and handling.adds_accounts:
        user = _add_account(owner.email, owner.name, by)
    if user is None:
        text = (
            f"'{owner.email}' has no account, and a team needs an owner with one. Create it on the page People or with "
            "--add-accounts, or name another owner: --owner EMAIL."
        )
        raise refuse("unknown_person", text, field="owner")
    if not user.is_active:
        text = f"The account of '{user.email}' is suspended. Name another owner: --owner EMAIL."
        raise refuse("suspended", text, field="owner", status=409)
    create_tenant(slug=row.slug, name=row.name, owner=user, by=by)
    return Outcome.CREATE, f"The team {row.name}, owned by {user.email}.{row.note}"


def _settle_member(row: ImportedMember, handling: ImportHandling, by: Actor) -> queries.Standing:
    team = _team(row.team)
    if standing := queries.standing_member(row, team):
        return standing
    email, note = row.person.email, ""
    if handling.adds_accounts and not User.objects.filter(email=email).exists():
        _add_account(email, row.person.name, by)
        note = " The account is new and has no password: the person signs in with single sign-on, or gets a code."
    added = add_member(row.team, email=email, role=row.role, by=by)
    if isinstance(added, Invitation):
        return Outcome.CREATE, f"An invitation with the role {row.role}: this address has no account."
    return Outcome.CREATE, f"A member with the role {row.role}.{note}"


def _settle_grant(row: ImportedGrant, source: str, handling: ImportHandling, by: Actor) -> queries.Standing:
    """Filed for the team in the name of an owner and decided by the person who imports, as any request is."""
    team, now = _team(row.team), database_now()
    facts = class_facts(team, [row.gpu_class], at=now)
    if row.gpu_class not in facts:
        text = f"{row.team} may not use {row.gpu_class}. Allow it on the page of the class, or choose another class."
        raise refuse("class_not_yours", text, field="class", status=403)
    known = facts[row.gpu_class]
    if standing := queries.standing_grant(row, team, known.facts, known.pk):
        return standing
    line = RequestedLine(row.gpu_class, row.units, now, row.ends)
    request = create_request_rows(
        team,
        [line],
        facts,
        justification=f"Taken over from {source}, {row.place}.",
        filed_by=_owner(team, by),
        now=now,
    )
    record(by, "request.filed", request, tenant=team.slug, after={"lines": [asdict(line)]})
    decisions = [Decision(pk, approve=True) for pk in request.lines.values_list("pk", flat=True)]
    over_promise = handling.over_promise
    subject = f"{team.name}: quota of {known.facts.name} was taken over from {source}"
    decide_request(request.pk, decisions, by=by, over_promise=over_promise, subject=subject)
    return Outcome.CREATE, f"{row.units} of {known.facts.name} until {row.until}."


def _team(slug: str) -> Tenant:
    team = Tenant.objects.filter(slug=slug).first()
    if team is None:
        text = f"The team {slug} does not exist, and this file does not create it. Correct the row of the team first."
        raise refuse("unknown_team", text, field="team")
    if Namespace.objects.filter(tenant=team, wanted=Namespace.Wanted.CLOSED).exists():
        text = f"A team {slug} was closed here. Give this one another short name with --team."
        raise refuse("closed", text, field="team", status=409)
    return team


def _owner(team: Tenant, by: Actor) -> User:
    """The owner of longest standing, preferably not the person who decides."""
    rows = Membership.objects.filter(tenant=team, role=Membership.Role.OWNER).select_related("user")
    owners = [one.user for one in rows.order_by("since", "pk")]
    return next((one for one in owners if one.pk != by.user_id), owners[0])


def _add_account(email: str, name: str, by: Actor) -> User:
    """Without a password: its code is shown to nobody; an administrator makes a new one for those who need it."""
    user, _code = add_person(email=email, name=name or email.partition("@")[0], by=by)
    return user
