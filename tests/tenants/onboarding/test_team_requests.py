"""How a team begins: who requests it, who decides, and what an approval creates in one step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Role, Scope, User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.errors import Refused
from tenants.approvers import queries
from tenants.core import queries as core_queries
from tenants.grants import queries as grant_queries
from tenants.models import Bundle, Namespace, QuotaRequest, TeamRequest, Tenant
from tenants.onboarding.bundles import actions as bundle_actions
from tenants.onboarding.bundles import queries as bundle_queries
from tenants.onboarding.team_requests import actions as team_request_actions
from tenants.onboarding.team_requests import queries as teams
from tenants.onboarding.teams import actions
from tenants.requests.decisions.types import OverPromise
from tests.support.http.pages import ask, page
from tests.support.rows import make


def refused(verb: Callable[[], Any]) -> tuple[str, str | None]:
    with pytest.raises(Refused) as error:
        verb()
    return error.value.code, error.value.refusal.field


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


@pytest.fixture
def mig(cluster: Cluster, unique: str) -> GpuClass:
    return make.gpu_class(
        cluster,
        slug=f"mig-{unique}",
        name="A100 1g.10gb slice",
        resource="nvidia.com/mig-1g.10gb",
        partition="1g.10gb",
        promise_limit=14,
    )


@pytest.fixture
def bundle(limited: GpuClass, mig: GpuClass, olga: User) -> Bundle:
    lines = [(limited.slug, 2), (mig.slug, 4)]
    return bundle_actions.put_bundle(name="Training", summary="Whole cards.", days=60, lines=lines, by=page(olga))


@pytest.fixture
def asked(bundle: Bundle, dana: User, charlie: User, unique: str) -> TeamRequest:
    return ask(charlie, name=" The  robots ", slug=f"robots-{unique}")


# ---- requesting a team -------------------------------------------------------------------------------------------


def test_who_decides_every_class_of_the_bundle_is_told(
    bundle: Bundle, limited: GpuClass, mig: GpuClass, dana: User, charlie: User
) -> None:
    both, one = make.approver("Both", gpu_class=limited), make.approver("One", gpu_class=limited)
    both.approver_for.create(gpu_class=mig)
    make.user("Idle", roles=[Role.APPROVER])
    row = ask(charlie)
    assert (row.slug, row.state, row.bundle) == ("robots", "pending", bundle)
    told = Delivery.objects.all()
    assert {one.user for one in told} == {dana, both}
    assert "Grasping from video." in told[0].body
    assert f"/team-requests/{row.pk}" in told[0].body
    event = Event.objects.get(verb="team.asked")
    assert event.after == {"slug": "robots", "purpose": "Grasping from video.", "bundle": "Training"}
    assert [found.pk for found in teams.team_requests_to_decide(queries.rights_of(page(both)))] == [row.pk]
    assert not teams.team_requests_to_decide(queries.rights_of(page(one))).exists()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({"name": " "}, ("bad_name", "name")),
        ({"name": "x" * 81}, ("bad_name", "name")),
        ({"purpose": " "}, ("bad_purpose", "purpose")),
        ({"purpose": "x" * 301}, ("bad_purpose", "purpose")),
        ({"slug": "kueue"}, ("reserved", "slug")),
        ({"slug": "Not so"}, ("bad_name", "slug")),
        ({"name": "机器人"}, ("bad_name", "slug")),
        ({"slug": "team-a"}, ("slug_taken", "slug")),
        ({"bundle": "Moonshot"}, ("unknown_bundle", "bundle")),
    ],
)
def test_what_cannot_be_asked_for(
    team_a: Tenant, bundle: Bundle, charlie: User, typed: dict[str, str], expected: tuple[str, str]
) -> None:
    assert refused(lambda: ask(charlie, **typed)) == expected
    assert not TeamRequest.objects.exists()


def test_the_namespace_of_another_team_is_no_name_for_a_new_one(team_a: Tenant, bundle: Bundle, charlie: User) -> None:
    name = team_a.namespaces.get().name
    assert name != team_a.slug
    assert refused(lambda: ask(charlie, slug=name)) == ("slug_taken", "slug")


@pytest.mark.parametrize(
    "change",
    [{"life_cycle": "retiring", "retiring_message": "Old."}, {"visibility": "named"}, {"life_cycle": "retired"}],
)
def test_a_bundle_with_a_class_that_nobody_new_gets_is_not_offered(
    bundle: Bundle, mig: GpuClass, charlie: User, change: dict[str, str]
) -> None:
    assert [one.name for one in bundle_queries.open_bundles()] == ["Training"]
    GpuClass.objects.filter(pk=mig.pk).update(**change)
    assert not bundle_queries.open_bundles().exists()
    assert refused(lambda: ask(charlie)) == ("unknown_bundle", "bundle")


def test_one_request_at_a_time(asked: TeamRequest, charlie: User) -> None:
    with pytest.raises(IntegrityError, match="one_pending_team_request"):
        ask(charlie, slug="others")


def test_only_the_person_withdraws_and_asks_anew(asked: TeamRequest, alice: User, dana: User, charlie: User) -> None:
    withdraw = lambda user: team_request_actions.withdraw_team_request(asked.pk, by=page(user))  # noqa: E731
    assert refused(lambda: withdraw(alice))[0] == "not_found"
    assert withdraw(charlie).state == "withdrawn"
    assert refused(lambda: withdraw(charlie))[0] == "already_decided"
    assert (
        refused(lambda: team_request_actions.decide_team(asked.pk, approve=True, by=page(dana)))[0] == "already_decided"
    )
    assert not Tenant.objects.exists()
    ask(charlie, slug=asked.slug)


# ---- deciding about a team ---------------------------------------------------------------------------------------


def test_a_yes_makes_team_owner_namespace_and_grants_in_one_step(
    asked: TeamRequest, bundle: Bundle, limited: GpuClass, mig: GpuClass, dana: User, charlie: User
) -> None:
    Delivery.objects.all().delete()
    row = team_request_actions.decide_team(asked.pk, approve=True, by=page(dana))
    team = Tenant.objects.get()
    assert (row.state, row.tenant, row.decided_by) == ("approved", team, dana)
    assert (team.slug, team.name, team.purpose) == (asked.slug, "The robots", "Grasping from video.")
    assert [(one.user, one.role) for one in team.memberships.all()] == [(charlie, "owner")]
    namespace = team.namespaces.get()
    assert namespace.name == asked.slug
    assert namespace.due_at is not None
    now = core_queries.database_now()
    assert grant_queries.units_in_force(team.pk, now) == {limited.pk: 2, mig.pk: 4}
    assert grant_queries.units_in_force(team.pk, now + timedelta(days=59, hours=23)) == {limited.pk: 2, mig.pk: 4}
    assert grant_queries.units_in_force(team.pk, now + timedelta(days=60)) == {}
    request = QuotaRequest.objects.get()
    assert (request.filed_by, request.justification) == (charlie, "Grasping from video.")
    for line in request.lines.all():
        assert (line.state, line.decided_by, line.facts["held"]) == ("approved", dana, 0)
    assert line.facts["limit"] == 14
    event = Event.objects.get(verb="team.decided")
    assert (event.tenant, event.actor_id) == (asked.slug, dana.pk)
    assert event.after["request"] == request.pk
    assert Event.objects.filter(verb="request.decided", tenant=asked.slug).exists()
    [told] = Delivery.objects.all()
    assert (told.user, told.subject) == (charlie, "Your team The robots was created")
    assert "2 units from" in told.body


def test_the_approver_changes_name_and_units_and_both_are_kept(
    asked: TeamRequest, limited: GpuClass, mig: GpuClass, dana: User, unique: str
) -> None:
    less = {limited.slug: 1, mig.slug: 4}
    decide = lambda **said: team_request_actions.decide_team(asked.pk, approve=True, units=less, by=page(dana), **said)  # noqa: E731
    assert refused(decide) == ("reason_missing", "lines[0].reason")
    assert not Tenant.objects.exists()
    decide(slug=f"grasping-{unique}", reason="One to begin with.")
    team = Tenant.objects.get()
    assert team.slug == f"grasping-{unique}"
    line = QuotaRequest.objects.get().lines.get(gpu_class=limited)
    assert (line.asked_units, line.decided_units, line.reason) == (2, 1, "One to begin with.")


def test_more_than_a_class_can_give_needs_the_tick_and_a_reason(
    asked: TeamRequest, limited: GpuClass, dana: User
) -> None:
    more = {limited.slug: 9}
    decide = lambda promise=None: team_request_actions.decide_team(  # noqa: E731
        asked.pk, approve=True, units=more, over_promise=promise, by=page(dana)
    )
    assert refused(decide) == ("over_promised", "over_promise")
    assert refused(lambda: decide(OverPromise(True, " "))) == ("reason_missing", "over_promise_reason")
    assert (Tenant.objects.count(), TeamRequest.objects.get().state) == (0, "pending")
    decide(OverPromise(True, "Two nodes come on Monday."))
    line = QuotaRequest.objects.get().lines.get(gpu_class=limited)
    assert line.facts["over_promise"] == "Two nodes come on Monday."


def test_a_no_needs_a_reason_that_the_person_reads(asked: TeamRequest, dana: User, charlie: User) -> None:
    no = lambda reason: team_request_actions.decide_team(asked.pk, approve=False, reason=reason, by=page(dana))  # noqa: E731
    assert refused(lambda: no(" ")) == ("reason_missing", "reason")
    Delivery.objects.all().delete()
    assert no("Join Vision instead.").state == "denied"
    [told] = Delivery.objects.all()
    assert told.user == charlie
    assert "Join Vision instead." in told.body
    assert not Tenant.objects.exists()
    assert refused(lambda: no("Again."))[0] == "already_decided"
    ask(charlie, slug=asked.slug)


def test_who_may_not_decide(asked: TeamRequest, limited: GpuClass, alice: User, olga: User, charlie: User) -> None:
    decide = lambda by: team_request_actions.decide_team(asked.pk, approve=False, reason="No.", by=by)  # noqa: E731
    assert refused(lambda: decide(page(alice)))[0] == "not_found"
    assert refused(lambda: decide(page(olga)))[0] == "not_allowed"
    one = make.approver("One", gpu_class=limited)
    assert refused(lambda: decide(page(one)))[0] == "not_your_class"
    assert refused(lambda: decide(page(charlie)))[0] == "not_allowed"
    User.objects.filter(pk=charlie.pk).update(roles=["approver"])
    charlie.refresh_from_db()
    charlie.approver_for.create(gpu_class=None)
    assert refused(lambda: decide(page(charlie)))[0] == "own_request"
    reader = Actor(user=make.approver("Rita"), via="token x", scopes=frozenset({Scope.READ}))
    assert refused(lambda: decide(reader))[0] == "missing_scope"
    assert TeamRequest.objects.get().state == "pending"


def test_a_name_that_was_taken_meanwhile_is_refused_and_another_one_given(
    asked: TeamRequest, olga: User, dana: User, unique: str
) -> None:
    actions.create_tenant(slug=asked.slug, name="Quicker", owner=olga, by=page(olga))
    decide = lambda slug="": team_request_actions.decide_team(asked.pk, approve=True, slug=slug, by=page(dana))  # noqa: E731
    assert refused(decide) == ("slug_taken", "slug")
    assert refused(lambda: decide("kube-x")) == ("reserved", "slug")
    decide(f"others-{unique}")
    assert TeamRequest.objects.get().tenant == Tenant.objects.get(slug=f"others-{unique}")


def test_a_team_without_a_living_owner_is_not_founded(asked: TeamRequest, dana: User, charlie: User) -> None:
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    assert refused(lambda: team_request_actions.decide_team(asked.pk, approve=True, by=page(dana)))[0] == "suspended"


def test_units_are_of_the_bundles_classes_only(asked: TeamRequest, dana: User) -> None:
    decide = lambda: team_request_actions.decide_team(asked.pk, approve=True, units={"h200": 1}, by=page(dana))  # noqa: E731
    assert refused(decide) == ("unknown_class", "units")


def test_a_class_that_is_retired_meanwhile_is_not_given(asked: TeamRequest, mig: GpuClass, dana: User) -> None:
    GpuClass.objects.filter(pk=mig.pk).update(life_cycle="retiring")
    assert (
        refused(lambda: team_request_actions.decide_team(asked.pk, approve=True, by=page(dana)))[0] == "class_retiring"
    )
    assert (Tenant.objects.count(), Namespace.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_decide_at_once_one_founds_the_team(asked: TeamRequest, dana: User) -> None:
    people, answers = [dana, make.approver("Dora")], []
    ready = threading.Barrier(2)

    def decide(user: User) -> None:
        ready.wait()
        try:
            team_request_actions.decide_team(asked.pk, approve=True, by=page(user))
            answers.append("done")
        except Refused as error:
            answers.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=decide, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["already_decided", "done"]
    assert Tenant.objects.count() == 1


# ---- bundles -----------------------------------------------------------------------------------------------------


def test_a_changed_bundle_is_what_a_waiting_request_gets(
    asked: TeamRequest, bundle: Bundle, mig: GpuClass, olga: User, dana: User
) -> None:
    bundle_actions.put_bundle(bundle_id=bundle.pk, name="Training", lines=[(mig.slug, 7)], by=page(olga))
    team_request_actions.decide_team(asked.pk, approve=True, by=page(dana))
    assert grant_queries.units_in_force(Tenant.objects.get().pk, core_queries.database_now()) == {mig.pk: 7}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": ""}, "bad_name"),
        ({"days": 0}, "bad_period"),
        ({"days": 1097}, "bad_period"),
        ({"lines": []}, "bad_lines"),
        ({"lines": [("x", 1)]}, "unknown_class"),
        ({"summary": "x" * 201}, "bad_summary"),
    ],
)
def test_what_is_no_bundle(bundle: Bundle, mig: GpuClass, olga: User, change: dict[str, Any], code: str) -> None:
    values = {"name": "Inference", "lines": [(mig.slug, 1)], **change}
    assert refused(lambda: bundle_actions.put_bundle(by=page(olga), **values))[0] == code


def test_a_bundle_has_open_classes_once_each(bundle: Bundle, mig: GpuClass, olga: User) -> None:
    put = lambda *lines: bundle_actions.put_bundle(name="Inference", lines=lines, by=page(olga))  # noqa: E731
    assert refused(lambda: put((mig.slug, 1), (mig.slug, 2)))[0] == "bad_lines"
    assert refused(lambda: put((mig.slug, 0)))[0] == "bad_units"
    GpuClass.objects.filter(pk=mig.pk).update(visibility="named")
    assert refused(lambda: put((mig.slug, 1)))[0] == "class_closed"
    GpuClass.objects.filter(pk=mig.pk).update(visibility="everyone", life_cycle="draft")
    assert refused(lambda: put((mig.slug, 1)))[0] == "class_closed"


def test_bundles_are_edited_by_operators(bundle: Bundle, mig: GpuClass, dana: User) -> None:
    put = lambda: bundle_actions.put_bundle(name="Mine", lines=[(mig.slug, 1)], by=page(dana))  # noqa: E731
    assert refused(put)[0] == "not_allowed"


def test_rows_and_facts_cost_the_same_for_one_and_for_many(
    asked: TeamRequest, limited: GpuClass, dana: User, django_assert_num_queries: Any
) -> None:
    for number in range(5):
        ask(make.user(f"New{number}"), slug=f"new-{number}")
    with django_assert_num_queries(7):
        rows = teams.team_request_rows(teams.team_requests_to_decide(queries.rights_of(page(dana))), by=page(dana))
    assert len(rows) == 6
    assert rows[0].refusal is None
    [first, second] = teams.bundle_line_impacts(rows[0].bundle, at=core_queries.database_now())
    assert (first.excess, second.excess) == (None, None)
    assert first.pool.startswith("0 of 8 allocated to teams")
    GpuClass.objects.filter(pk=limited.pk).update(promise_limit=1)
    assert teams.bundle_line_impacts(rows[0].bundle, at=core_queries.database_now())[0].excess is not None
