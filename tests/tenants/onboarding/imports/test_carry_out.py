"""A plan is tried without a trace, carried out row by row under the rules of the pages, and a second time changes
nothing.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Role, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.core.forms import end_of_day
from tenants.models import ApproverFor, Grant, Invitation, Membership, Namespace, QuotaLine, Tenant
from tenants.onboarding.imports.actions import ImportHandling, carry_out
from tenants.onboarding.imports.types import (
    ImportedGrant,
    ImportedMember,
    ImportedTeam,
    ImportPlan,
    Outcome,
    Person,
    PlanRow,
    SetAside,
    SettledRow,
)
from tenants.requests.decisions.types import OverPromise
from tests.support.rows import make

UNTIL = timezone.localdate() + timedelta(days=90)
CREATE, EXISTS, DIFFERS, REFUSED = Outcome.CREATE, Outcome.EXISTS, Outcome.DIFFERS, Outcome.REFUSED


@pytest.fixture
def mover(db: None) -> User:
    """The person who imports: creates teams, manages members and decides all classes."""
    found = make.user("Mover", roles=[Role.ADMIN, Role.OPERATOR, Role.APPROVER])
    ApproverFor.objects.create(user=found, gpu_class=None)
    return found


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


@pytest.fixture
def ada(db: None) -> User:
    return make.user("Ada")


def team(slug: str = "vision", *owners: str, name: str = "") -> ImportedTeam:
    people = tuple(Person(email) for email in owners or ("ada@example.org",))
    return ImportedTeam(f"team {slug}", slug, name or slug.title(), people)


def member(email: str, slug: str = "vision", role: str = "member") -> ImportedMember:
    return ImportedMember(f"member {email}", slug, Person(email, "A Name"), role)


def grant(gpu_class: GpuClass, units: int, slug: str = "vision", until: date = UNTIL) -> ImportedGrant:
    return ImportedGrant(f"quota {slug}", slug, gpu_class.slug, units, end_of_day(until))


def settle(
    mover: User, *rows: PlanRow, is_applied: bool = True, handling: ImportHandling | None = None
) -> list[SettledRow]:
    plan = ImportPlan("CSV", rows)
    by = Actor(mover, "command")
    return carry_out(plan, is_applied=is_applied, handling=handling or ImportHandling(), by=by)


def outcomes(rows: list[SettledRow]) -> list[Outcome]:
    return [row.outcome for row in rows]


def everything() -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, with their values."""
    return {
        model._meta.label: list(model._base_manager.order_by("pk").values())
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy
    }


def test_a_plan_creates_teams_members_invitations_and_quota(
    mover: User, ada: User, bob: User, limited: GpuClass
) -> None:
    rows = [grant(limited, 4), member("bob@example.org"), member("new@example.org", role="viewer"), team()]
    assert outcomes(settle(mover, *rows)) == [CREATE] * 4
    created = Tenant.objects.get(slug="vision")
    roles = dict(Membership.objects.filter(tenant=created).values_list("user__email", "role"))
    assert roles == {"ada@example.org": "owner", "bob@example.org": "member"}
    assert list(Invitation.objects.values_list("email", "role", "invited_by")) == [
        ("new@example.org", "viewer", mover.pk)
    ]
    [held] = Grant.objects.filter(tenant=created)
    assert (held.units, held.period.upper) == (4, end_of_day(UNTIL))
    assert held.line is not None
    assert (held.line.decided_by, held.line.request.filed_by) == (mover, ada)
    assert held.line.request.justification == "Taken over from CSV, quota vision."
    # A worker provisions the namespace, as for any team.
    namespace = Namespace.objects.get(tenant=created)
    assert namespace.generation > namespace.observed_generation
    assert namespace.due_at is not None
    verbs = set(Event.objects.filter(tenant="vision").values_list("verb", "actor"))
    told = ("tenant.created", "member.added", "member.invited", "request.filed", "request.decided")
    assert verbs == {(verb, "Mover") for verb in told}
    mails = Delivery.objects.filter(user=ada).values_list("subject", flat=True)
    assert list(mails) == [f"Vision: quota of {limited.name} was taken over from CSV"]


def test_a_dry_run_says_the_same_and_writes_nothing(mover: User, ada: User, bob: User, limited: GpuClass) -> None:
    rows = [team(), member("bob@example.org"), member("new@example.org"), grant(limited, 4), member("x", role="owner")]
    before = everything()
    tried = settle(mover, *rows, is_applied=False, handling=ImportHandling(adds_accounts=True))
    assert outcomes(tried) == [CREATE] * 4 + [REFUSED]
    assert everything() == before
    assert settle(mover, *rows, handling=ImportHandling(adds_accounts=True)) == tried
    assert everything() != before


def test_the_second_time_changes_nothing(mover: User, ada: User, bob: User, limited: GpuClass) -> None:
    rows = [team(), member("bob@example.org"), member("new@example.org"), grant(limited, 4), member("ada@example.org")]
    settle(mover, *rows)
    before = everything()
    again = settle(mover, *rows)
    assert outcomes(again) == [EXISTS] * 4 + [DIFFERS]
    assert again[4].text == (
        "The person is in the team with the role owner, not member. Not changed: change it on the team's page Members."
    )
    assert everything() == before


def test_a_refused_row_leaves_the_others(mover: User, ada: User, bob: User, limited: GpuClass) -> None:
    rows = settle(
        mover,
        team(),
        team("kube-system"),
        member("not an address"),
        member("bob@example.org", "kube-system"),
        grant(limited, 99),
        SetAside("line 9", "quota", "vision h100", REFUSED, "There is no class.", "class"),
        member("bob@example.org"),
        grant(limited, 3),
    )
    assert outcomes(rows) == [CREATE, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, CREATE, CREATE]
    assert [(row.code, row.field) for row in rows[1:6]] == [
        ("reserved", "team"),
        ("bad_address", "email"),
        ("unknown_team", "team"),
        ("over_promised", "units"),
        ("", "class"),
    ]
    assert "does not exist, and this file does not create it" in rows[3].text
    assert [one.slug for one in Tenant.objects.all()] == ["vision"]
    assert not Invitation.objects.exists()
    # The refused quota left neither a request nor an event.
    assert [line.asked_units for line in QuotaLine.objects.all()] == [3]
    assert Event.objects.filter(verb="request.filed").count() == 1


def test_quota_above_the_limit_is_refused_in_words_and_possible_with_a_reason(
    mover: User, ada: User, limited: GpuClass
) -> None:
    rows = [team(), team("nlp"), grant(limited, 6), grant(limited, 4, "nlp")]
    tried = settle(mover, *rows, is_applied=False)
    # Each alone would fit: the sum is what the limit is about, and the dry run sees it.
    assert outcomes(tried) == [CREATE, CREATE, CREATE, REFUSED]
    assert tried[3].text.startswith(f"This exceeds the allocation limit of {limited.name} (8) by 2.")
    assert tried[3].text.endswith("In an import: write fewer units, or give a reason with --over-promise.")
    handling = ImportHandling(over_promise=OverPromise(is_ticked=True, reason="It was so in the other system."))
    assert outcomes(settle(mover, *rows, handling=handling)) == [CREATE] * 4
    assert sum(Grant.objects.values_list("units", flat=True)) == 10


def test_what_exists_with_other_values_is_told_and_not_changed(mover: User, team_a: Tenant, limited: GpuClass) -> None:
    make.grant(team_a, limited, units=2)
    before = everything()
    rows = settle(
        mover,
        team("team-a", "alice@example.org", name="The A-Team"),
        member("bob@example.org", "team-a", "manager"),
        grant(limited, 4, "team-a"),
    )
    assert outcomes(rows) == [DIFFERS] * 3
    assert rows[0].text == "The team exists with the name 'Team A', not 'The A-Team'. Not changed."
    assert "with the role member, not manager. Not changed" in rows[1].text
    assert rows[2].text.startswith("The team has 2 until ")
    assert rows[2].text.endswith(f", not 4 until {UNTIL}. Not changed: request a new total.")
    assert everything() == before


@pytest.mark.parametrize("state", [Invitation.State.DECLINED, Invitation.State.REVOKED])
def test_who_declined_is_not_invited_again(mover: User, ada: User, cluster: object, state: str) -> None:
    settle(mover, team(), member("new@example.org"))
    Invitation.objects.update(state=state, ended_at=timezone.now())
    [_, row] = settle(mover, team(), member("new@example.org"))
    assert (row.outcome, row.text) == (
        DIFFERS,
        f"An invitation of this person to the team was {state}. Not invited again.",
    )
    assert Invitation.objects.count() == 1


def test_a_team_needs_an_owner_with_an_account(mover: User, cluster: object) -> None:
    rows = settle(mover, ImportedTeam("line 2", "none", "None", ()), team("some", "new@example.org"))
    assert outcomes(rows) == [REFUSED, REFUSED]
    assert rows[0].text == "The team has no owner. Name one: --owner EMAIL."
    assert rows[1].text.startswith("'new@example.org' has no account, and a team needs an owner with one. ")
    assert not Tenant.objects.exists()
    make.user("Second")
    [row] = settle(mover, team("some", "new@example.org", "second@example.org"))
    assert row.text == "The team Some, owned by second@example.org."


def test_accounts_are_added_without_a_password_if_asked(mover: User, cluster: object) -> None:
    handling = ImportHandling(adds_accounts=True)
    rows = settle(mover, team("some", "new@example.org"), member("m@example.org", "some"), handling=handling)
    assert outcomes(rows) == [CREATE, CREATE]
    owner, person = User.objects.get(email="new@example.org"), User.objects.get(email="m@example.org")
    assert (owner.name, person.name) == ("new", "A Name")
    assert not owner.has_usable_password()
    assert not person.has_usable_password()
    assert not Invitation.objects.exists()
    assert Event.objects.filter(verb="account.added").count() == 2
    assert all("code" not in row.text or "gets a code" in row.text for row in rows)


def test_a_suspended_owner_and_member_are_refused(mover: User, ada: User, bob: User, cluster: object) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    rows = settle(mover, team("b", "bob@example.org"), team(), member("bob@example.org"))
    assert outcomes(rows) == [REFUSED, CREATE, REFUSED]
    assert {rows[0].code, rows[2].code} == {"suspended"}


def test_a_closed_team_is_not_continued(mover: User, team_a: Tenant, limited: GpuClass) -> None:
    make.close()
    rows = settle(
        mover, team("team-a"), member("new@example.org", "team-a"), grant(limited, 1, "team-a"), is_applied=False
    )
    assert [row.code for row in rows] == ["closed"] * 3


def test_a_class_that_the_team_may_not_use_is_refused(mover: User, team_a: Tenant, limited: GpuClass) -> None:
    GpuClass.objects.filter(pk=limited.pk).update(visibility=GpuClass.Visibility.NAMED)
    [row] = settle(mover, grant(limited, 1, "team-a"))
    assert (row.outcome, row.code) == (REFUSED, "class_not_yours")


def test_a_period_that_is_over_is_refused(mover: User, team_a: Tenant, limited: GpuClass) -> None:
    [row] = settle(mover, grant(limited, 1, "team-a", timezone.localdate() - timedelta(days=1)))
    assert (row.outcome, row.code, row.field) == (REFUSED, "bad_period", "until")


def test_each_row_needs_the_rights_that_it_needs_on_a_page(team_a: Tenant, limited: GpuClass) -> None:
    """An operator creates teams, but neither manages members nor decides quota; other people create no teams."""
    operator = make.user("Operator", roles=[Role.OPERATOR])
    make.user("Ada")
    rows = settle(operator, team(), member("new@example.org"), grant(limited, 1))
    assert outcomes(rows) == [CREATE, REFUSED, REFUSED]
    assert [row.code for row in rows[1:]] == ["not_allowed"] * 2
    with pytest.raises(Refused) as refused:
        settle(make.approver("Approver"), team("nlp"))
    assert refused.value.code == "not_allowed"


def test_the_person_who_imports_decides_nothing_for_their_own_team(mover: User, ada: User, limited: GpuClass) -> None:
    rows = settle(mover, team("own", "mover@example.org"), grant(limited, 1, "own"))
    assert outcomes(rows) == [CREATE, REFUSED]
    assert rows[1].code == "own_request"
    rows = settle(mover, team(), member("mover@example.org"), grant(limited, 1))
    assert (rows[2].outcome, rows[2].code) == (REFUSED, "own_team")
