"""Teams, members, requests and namespaces: which rows each verb writes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import Delivery, Event, Role, User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.errors import Refused
from tenants.lifecycle import actions as lifecycle_actions
from tenants.members import actions as member_actions
from tenants.models import Membership, Namespace, Plan, QuotaLine, QuotaRequest, Tenant
from tenants.onboarding.teams import actions as team_actions
from tenants.requests import actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions import types as decision_types
from tenants.requests.types import RequestedLine
from tests.support.rows import make


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def asked(gpu_class: GpuClass, units: int = 2) -> RequestedLine:
    now = timezone.now()
    return RequestedLine(gpu_class=gpu_class.slug, units=units, starts=now, ends=now + timedelta(days=30))


def file(team: Tenant, by: User, *lines: RequestedLine) -> QuotaRequest:
    return actions.file_request(team.slug, lines=lines, justification=" Two trainings. ", by=page(by))


# ---- teams -------------------------------------------------------------------------------------------------------


def test_a_team_has_an_owner_and_a_namespace_that_is_made_at_once(cluster: Cluster, alice: User) -> None:
    made = team_actions.create_tenant(
        slug="vision", name=" Vision  lab ", owner=alice, by=system_actor("demo"), cluster=cluster
    )
    assert made.name == "Vision lab"
    assert made.memberships.get().role == "owner"
    namespace = made.namespaces.get()
    assert namespace.name == "vision"
    assert namespace.due_at is not None
    assert namespace.observed_generation < namespace.generation
    assert Event.objects.get(verb="tenant.created").tenant == "vision"


def test_two_teams_of_one_name_are_refused_by_the_database(cluster: Cluster, alice: User) -> None:
    team_actions.create_tenant(slug="vision", name="Vision", owner=alice, by=system_actor("demo"), cluster=cluster)
    with pytest.raises(IntegrityError, match="tenants_tenant_slug_key"):
        team_actions.create_tenant(slug="vision", name="Vision", owner=alice, by=system_actor("demo"), cluster=cluster)


@pytest.mark.parametrize(("slug", "code"), [("kube-system", "reserved"), ("My Lab", "bad_name")])
def test_a_name_that_cannot_be_a_namespace_is_refused(cluster: Cluster, alice: User, slug: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        team_actions.create_tenant(slug=slug, name="X", owner=alice, by=system_actor("demo"), cluster=cluster)
    assert (refused.value.code, refused.value.refusal.field) == (code, "slug")


def test_people_do_not_make_teams_for_themselves(cluster: Cluster, alice: User, olga: User) -> None:
    with pytest.raises(Refused):
        team_actions.create_tenant(slug="mine", name="Mine", owner=alice, by=page(alice), cluster=cluster)
    assert team_actions.create_tenant(slug="mine", name="Mine", owner=alice, by=page(olga), cluster=cluster)


# ---- team members ------------------------------------------------------------------------------------------------


def test_a_new_member_is_told(team_a: Tenant, alice: User, charlie: User) -> None:
    member_actions.add_member("team-a", email=" CHARLIE@example.org ", role="viewer", by=page(alice))
    assert team_a.memberships.get(user=charlie).role == "viewer"
    assert Delivery.objects.get().user == charlie
    assert Event.objects.get(verb="member.added").after == {"user": charlie.email, "role": "viewer"}


def test_a_manager_makes_no_owners(team_a: Tenant, bob: User, charlie: User) -> None:
    Membership.objects.filter(user=bob).update(role="manager")
    with pytest.raises(Refused, match="Only an owner can make another person an owner"):
        member_actions.add_member("team-a", email=charlie.email, role="owner", by=page(bob))
    member_actions.add_member("team-a", email=charlie.email, role="member", by=page(bob))


def test_the_last_owner_stays(team_a: Tenant, alice: User, bob: User) -> None:
    with pytest.raises(Refused) as refused:
        member_actions.remove_member("team-a", user_id=alice.pk, by=page(alice))
    assert refused.value.code == "last_owner"
    Membership.objects.filter(user=bob).update(role="owner")
    member_actions.remove_member("team-a", user_id=alice.pk, by=page(alice))
    assert not team_a.memberships.filter(user=alice).exists()


def test_who_is_no_member_cannot_be_removed(team_a: Tenant, alice: User, charlie: User) -> None:
    with pytest.raises(Refused) as refused:
        member_actions.remove_member("team-a", user_id=charlie.pk, by=page(alice))
    assert refused.value.code == "not_found"


def test_a_stranger_does_not_learn_that_a_team_exists(team_a: Tenant, charlie: User, a100: GpuClass) -> None:
    for verb in (
        lambda: member_actions.add_member("team-a", email="x@example.org", role="member", by=page(charlie)),
        lambda: member_actions.remove_member("team-a", user_id=charlie.pk, by=page(charlie)),
        lambda: file(team_a, charlie, asked(a100)),
        lambda: lifecycle_actions.set_namespace_state(team_a.namespaces.get().pk, to="suspended", by=page(charlie)),
    ):
        with pytest.raises(Refused) as refused:
            verb()
        assert refused.value.code == "not_found"


# ---- requests ----------------------------------------------------------------------------------------------------


def test_a_request_is_filed_planned_and_told_to_those_who_decide_it(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User
) -> None:
    other_class = make.gpu_class(a100.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    only_mig = make.approver("Dora", gpu_class=other_class)
    only_a100 = make.approver("Dirk", gpu_class=a100)
    make.member(team_a, make.approver("Doro"))
    request = file(team_a, alice, asked(a100))
    assert request.justification == "Two trainings."
    assert Plan.objects.get(request=request).due_at is not None
    told = {delivery.user for delivery in Delivery.objects.all()}
    assert told == {dana, only_a100}
    assert only_mig not in told
    assert Event.objects.get(verb="request.filed").after["lines"][0]["units"] == 2


def test_one_pending_line_a_class_whoever_comes_by_which_door(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    file(team_a, alice, asked(a100))
    with pytest.raises(Refused) as refused:
        file(team_a, alice, asked(a100, 4))
    assert (refused.value.code, refused.value.refusal.field) == ("already_pending", "lines[0].gpu_class")
    assert QuotaRequest.objects.count() == 1


def test_a_request_that_is_refused_leaves_nothing(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    with pytest.raises(Refused) as refused:
        file(
            team_a, alice, asked(a100), RequestedLine("nothing", 1, timezone.now(), timezone.now() + timedelta(days=1))
        )
    assert refused.value.refusal.field == "lines[1].gpu_class"
    assert not QuotaRequest.objects.exists()
    assert not Event.objects.exists()


def test_withdrawn_lines_make_room_for_a_new_request(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    request = file(team_a, alice, asked(a100))
    actions.withdraw_request(request.pk, by=page(alice))
    assert request.lines.get().state == QuotaLine.State.WITHDRAWN
    assert Event.objects.filter(verb="request.withdrawn").count() == 1
    file(team_a, alice, asked(a100, 4))


def test_a_plan_is_tried_again_when_another_request_of_the_team_is_decided(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User
) -> None:
    GpuClass.objects.update(promise_limit=8)
    mig = make.gpu_class(a100.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", promise_limit=7)
    first, second = file(team_a, alice, asked(a100)), file(team_a, alice, asked(mig))
    Plan.objects.update(due_at=None)
    line = first.lines.get()
    decision_actions.decide_request(first.pk, [decision_types.Decision(line.pk, approve=True)], by=page(dana))
    assert Plan.objects.get(request=first).due_at is None
    assert Plan.objects.get(request=second).due_at is not None


# ---- suspending and closing a team -------------------------------------------------------------------------------


def test_operators_suspend_resume_and_close(namespace_a: Namespace, olga: User) -> None:
    for to in ("suspended", "active", "closed"):
        before = namespace_a.generation
        namespace_a = lifecycle_actions.set_namespace_state(namespace_a.pk, to=to, grace_hours=0, by=page(olga))
        assert (namespace_a.wanted, namespace_a.generation) == (to, before + 1)
    with pytest.raises(Refused) as refused:
        lifecycle_actions.set_namespace_state(namespace_a.pk, to="active", by=page(olga))
    assert refused.value.code == "closed"
    assert Event.objects.filter(verb="namespace.changed").count() == 3


def test_an_owner_does_not_suspend_its_own_team(namespace_a: Namespace, alice: User) -> None:
    with pytest.raises(Refused) as refused:
        lifecycle_actions.set_namespace_state(namespace_a.pk, to="suspended", by=page(alice))
    assert refused.value.code == "not_allowed"


def test_nothing_is_granted_to_a_team_that_is_being_closed(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, dana: User
) -> None:
    GpuClass.objects.update(promise_limit=8)
    request = file(team_a, alice, asked(a100))
    make.close()
    with pytest.raises(Refused) as refused:
        decision_actions.decide_request(
            request.pk, [decision_types.Decision(request.lines.get().pk, approve=True)], by=page(dana)
        )
    assert refused.value.code == "closed"


def test_a_suspended_approver_decides_nothing(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> None:
    GpuClass.objects.update(promise_limit=8)
    request = file(team_a, alice, asked(a100))
    dana.is_active = False
    with pytest.raises(Refused):
        decision_actions.decide_request(
            request.pk, [decision_types.Decision(request.lines.get().pk, approve=True)], by=page(dana)
        )
    assert request.lines.get().state == "pending"
    assert Role.APPROVER in dana.roles
