"""What administrators do with accounts: roles, suspension, classes to decide. By page and API; nobody else may."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounts.core.actor import Actor, system_actor
from accounts.models import Delivery, Event, Role, Scope, User
from accounts.people import actions
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.approvers import actions as approver_actions
from tenants.approvers import queries
from tenants.lifecycle import actions as lifecycle_actions
from tenants.models import ApproverFor, Membership, Tenant
from tests.support.http.callers import caller, send, told
from tests.support.rows import make

PEOPLE = "/api/v1/people"


def page(user: User | None) -> Actor:
    return Actor(user=user, via="page")


@pytest.fixture
def ada(db: None) -> User:
    """Administrator with every role, as createsuperuser creates one."""
    return make.user("Ada", roles=list(Role))


def signed_in(user: User) -> Client:
    return make.administrator(Client(), user)


# ---- access -------------------------------------------------------------------------------------------------------


def calls(pk: int, slug: str) -> list[tuple[str, str, Any]]:
    return [
        ("GET", PEOPLE, None),
        ("GET", f"{PEOPLE}/{pk}", None),
        ("POST", PEOPLE, {"nonsense": 1}),
        ("PATCH", f"{PEOPLE}/{pk}", {"nonsense": 1}),
        ("POST", f"{PEOPLE}/{pk}/password-code", None),
        ("POST", f"{PEOPLE}/{pk}/second-factor-drop", {"nonsense": 1}),
        ("PUT", f"{PEOPLE}/{pk}/approver-for/{slug}", None),
        ("DELETE", f"{PEOPLE}/{pk}/approver-for/{slug}", None),
        ("PUT", f"{PEOPLE}/{pk}/approver-for-all", None),
        ("DELETE", f"{PEOPLE}/{pk}/approver-for-all", None),
    ]


PAGES = ("roles", "suspend", "restore", "grant-class", "revoke-class", "password-code", "second-factor-drop")


@pytest.mark.parametrize("roles", [[], [Role.OPERATOR, Role.APPROVER, Role.AUDITOR]], ids=["nobody", "other staff"])
def test_for_everybody_else_there_is_nothing(a100: GpuClass, dana: User, roles: list[Role]) -> None:
    """The answer is the same whether the account exists or not, and whatever is sent."""
    other = make.user("Other", roles=roles)
    by_token, by_page = caller(other), signed_in(other)
    events = Event.objects.count()
    for pk in (dana.pk, 4711):
        for method, path, body in calls(pk, a100.slug):
            answer = send(by_token, method, path, body)
            assert (method, path, answer.status_code) == (method, path, 404)
            assert answer.json()["code"] == "not_found"
        assert by_page.get(f"/people/{pk}").status_code == 404
        for verb in PAGES:
            assert by_page.post(f"/people/{pk}/{verb}", {"roles": "admin"}).status_code == 404
    assert by_page.get("/people").status_code == 404
    assert Event.objects.count() == events


def test_a_token_that_only_reads_changes_nothing(ada: User, bob: User, a100: GpuClass) -> None:
    client = caller(ada, Scope.READ)
    make.second_factor(ada)
    assert client.get(f"{PEOPLE}/{bob.pk}").status_code == 200
    for method, path, body in calls(bob.pk, a100.slug):
        if method != "GET":
            assert told(send(client, method, path, body)) == (403, "missing_scope", None)


def test_an_action_asks_for_the_scope_itself(ada: User, bob: User) -> None:
    reader = Actor(user=ada, via="token x", scopes=frozenset({Scope.READ}))
    for ask in (
        lambda: actions.set_roles(bob.pk, [], by=reader),
        lambda: actions.suspend_user(bob.pk, because="x", by=reader),
        lambda: actions.restore_user(bob.pk, by=reader),
        lambda: approver_actions.grant_class(bob.pk, None, by=reader),
        lambda: approver_actions.revoke_class(bob.pk, None, by=reader),
    ):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.code == "missing_scope"


# ---- list of accounts ---------------------------------------------------------------------------------------------


def listed(client: Client, query: str = "") -> list[str]:
    answer = client.get(PEOPLE + query)
    assert answer.status_code == 200, answer.content
    return [one["name"] for one in answer.json()["items"]]


def test_the_list_is_searched_and_paged_by_address(ada: User, alice: User, bob: User, dana: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    client = caller(ada)
    assert listed(client) == ["Ada", "Alice", "Bob", "Dana"]
    assert listed(client, "?q=AL") == ["Alice"]
    assert listed(client, "?q=alice example.org") == ["Alice"]
    assert listed(client, "?q=alice bob") == []
    assert listed(client, "?role=approver") == ["Ada", "Dana"]
    assert listed(client, "?suspended=true") == ["Bob"]
    assert listed(client, "?suspended=false&role=approver&q=dana") == ["Dana"]

    first = client.get(f"{PEOPLE}?limit=3&suspended=false").json()
    assert [one["name"] for one in first["items"]] == ["Ada", "Alice", "Dana"]
    assert first["next"] is None
    first = client.get(f"{PEOPLE}?limit=2").json()
    assert listed(client, "?" + first["next"].partition("?")[2]) == ["Bob", "Dana"]


@pytest.mark.parametrize(
    "query", ["?role=root", "?suspended=gone", "?q=%00", f"?q={'x' * 81}", "?cursor=x", "?limit=0"]
)
def test_a_filter_that_cannot_be_read_is_refused(ada: User, query: str) -> None:
    assert caller(ada).get(PEOPLE + query).status_code == 422


def test_the_page_filters_by_what_it_can_read(ada: User, bob: User) -> None:
    client = signed_in(ada)
    for query in ("?role=root", "?state=gone", "?q=%00"):
        assert b"bob@example.org" in client.get(f"/people{query}").content
    assert b"No match" in client.get("/people?q=nobody").content
    assert b"bob@example.org" not in client.get("/people?q=ada").content


def test_what_somebody_decides_is_told(ada: User, a100: GpuClass, dana: User) -> None:
    make.approver("Doris", gpu_class=a100)
    client = caller(ada)
    found = {one["name"]: one for one in client.get(PEOPLE).json()["items"]}
    assert (found["Dana"]["approver_for_all"], found["Dana"]["approver_for"]) == (True, [])
    assert (found["Doris"]["approver_for_all"], found["Doris"]["approver_for"]) == (False, [a100.slug])
    text = signed_in(ada).get("/people").content.decode()
    assert "every class" in text
    assert a100.name in text


def test_the_list_costs_the_same_for_many(
    ada: User, a100: GpuClass, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        make.approver(f"Approver{number}", gpu_class=a100)
    client = signed_in(ada)
    # Queries: session and account, the bar (teams, inbox), the page, its classes and second factors.
    with django_assert_max_num_queries(11):
        assert client.get("/people").status_code == 200
    with_token = caller(ada)
    with_token.get(PEOPLE)
    with django_assert_max_num_queries(4):
        assert len(listed(with_token)) == 13


# ---- roles --------------------------------------------------------------------------------------------------------


def test_roles_are_set_by_page_and_by_api(ada: User, bob: User) -> None:
    answer = signed_in(ada).post(f"/people/{bob.pk}/roles", {"roles": ["operator", "approver"]}, follow=True)
    assert "Roles of Bob are now: approver, operator." in answer.content.decode()
    changed = send(caller(ada), "PATCH", f"{PEOPLE}/{bob.pk}", {"roles": ["auditor"]})
    assert (changed.status_code, changed.json()["roles"]) == (200, ["auditor"])
    events = Event.objects.filter(verb="account.roles_set").order_by("id")
    assert [(one.row, one.before, one.after) for one in events] == [
        (f"accounts.user.{bob.pk}", {"roles": []}, {"roles": ["approver", "operator"]}),
        (f"accounts.user.{bob.pk}", {"roles": ["approver", "operator"]}, {"roles": ["auditor"]}),
    ]


def test_the_same_roles_again_change_nothing(ada: User, olga: User) -> None:
    send(caller(ada), "PATCH", f"{PEOPLE}/{olga.pk}", {"roles": ["admin", "operator", "admin"]})
    assert not Event.objects.filter(verb="account.roles_set").exists()


def test_a_refusal_stands_on_the_page(ada: User, olga: User, bob: User) -> None:
    """Olga herself is not an approver."""
    answer = signed_in(olga).post(f"/people/{bob.pk}/roles", {"roles": ["approver"]})
    assert answer.status_code == 403
    assert "You do not have the role &#x27;approver&#x27;" in answer.content.decode()
    answer = signed_in(ada).post(f"/people/{bob.pk}/roles", {"roles": ["root"]})
    assert answer.status_code == 422
    assert "root is not one of the available choices" in answer.content.decode()
    answer = signed_in(ada).post(f"/people/{bob.pk}/roles", {"roles": ["operator"], "is_superuser": "on"})
    assert answer.status_code == 422
    bob.refresh_from_db()
    assert bob.roles == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"roles": ["root"]}, (422, "unknown_role", "roles")),
        ({"roles": "admin"}, (422, "invalid", "roles")),
        ({"suspended": "gone"}, (422, "invalid", "suspended")),
        ({"suspended": True}, (422, "reason_missing", "because")),
        ({"suspended": True, "because": "x" * 301}, (422, "invalid", "because")),
        ({"is_staff": True}, (422, "unknown_field", "is_staff")),
        ({"roles": ["operator"], "suspended": True}, (422, "reason_missing", "because")),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_half_done(
    ada: User, bob: User, body: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    assert told(send(caller(ada), "PATCH", f"{PEOPLE}/{bob.pk}", body)) == expected
    bob.refresh_from_db()
    assert (bob.roles, bob.is_active) == ([], True)
    assert not Event.objects.filter(verb__startswith="account.").exists()


def test_nobody_changes_themselves(ada: User, a100: GpuClass) -> None:
    client, own = caller(ada), f"{PEOPLE}/{ada.pk}"
    assert told(send(client, "PATCH", own, {"roles": ["admin"]})) == (403, "own_roles", None)
    assert told(send(client, "PATCH", own, {"suspended": True, "because": "x"})) == (403, "own_account", None)
    assert told(send(client, "PUT", f"{own}/approver-for/{a100.slug}")) == (403, "own_roles", None)
    assert told(send(client, "PUT", f"{own}/approver-for-all")) == (403, "own_roles", None)
    text = signed_in(ada).get(f"/people/{ada.pk}").content.decode()
    assert "You cannot change your own roles" in text
    assert "You cannot suspend your own account" in text
    assert "<form" not in text.split("<main")[1].split("</main")[0]


# ---- the last administrator ----------------------------------------------------------------------------------------


def test_not_even_the_portal_takes_the_last_administrator_away(ada: User, olga: User) -> None:
    """The groups of a directory may ask for this at a sign-in."""
    by = system_actor("rule directory")
    actions.set_roles(olga.pk, [Role.OPERATOR], by=by)
    for take in (
        lambda: actions.set_roles(ada.pk, [Role.OPERATOR], by=by),
        lambda: actions.suspend_user(ada.pk, because="left", by=by),
    ):
        with pytest.raises(Refused) as refused:
            take()
        assert refused.value.code == "last_admin"
    ada.refresh_from_db()
    assert ada.is_active
    assert ada.has_role(Role.ADMIN)


def test_one_whose_account_is_suspended_does_not_count(ada: User, olga: User) -> None:
    actions.suspend_user(olga.pk, because="left", by=page(ada))
    with pytest.raises(Refused) as refused:
        actions.set_roles(ada.pk, [], by=system_actor("rule directory"))
    assert refused.value.code == "last_admin"
    # Olga is suspended and does not count, so her role may be taken.
    actions.set_roles(olga.pk, [], by=page(ada))


@pytest.mark.django_db(transaction=True)
def test_of_two_that_go_at_once_one_stays() -> None:
    ada, olga = make.user("Ada", roles=list(Role)), make.user("Olga", roles=[Role.ADMIN])
    said: list[str] = []

    def second() -> None:
        try:
            actions.set_roles(olga.pk, [], by=system_actor("rule directory"))
        except Refused as refused:
            said.append(refused.code)
        finally:
            connection.close()

    other = threading.Thread(target=second)
    with transaction.atomic():
        actions.set_roles(ada.pk, [], by=system_actor("rule directory"))
        other.start()
        # The thread cannot finish before this transaction ends.
        other.join(timeout=0.3)
        assert other.is_alive()
    other.join(timeout=10)
    assert said == ["last_admin"]
    assert [user.name for user in User.objects.filter(roles__contains=["admin"])] == ["Olga"]


# ---- suspension ---------------------------------------------------------------------------------------------------


def test_a_suspension_ends_session_and_token_at_once(ada: User, bob: User, team_a: Tenant) -> None:
    browser, script = signed_in(bob), caller(bob)
    assert (browser.get("/teams/team-a").status_code, script.get("/api/v1/me").status_code) == (200, 200)

    typed = {"because": "left the institute", "confirm": bob.email}
    answer = signed_in(ada).post(f"/people/{bob.pk}/suspend", typed, follow=True)

    assert "Bob is suspended" in answer.content.decode()
    assert browser.get("/teams/team-a").status_code == 302
    assert script.get("/api/v1/me").json()["code"] == "account_suspended"
    event = Event.objects.get(verb="account.suspended")
    assert (event.actor, event.after) == ("Ada", {"is_active": False, "because": "left the institute"})

    back = send(caller(ada), "PATCH", f"{PEOPLE}/{bob.pk}", {"suspended": False})
    assert (back.status_code, back.json()["suspended"]) == (200, False)
    assert script.get("/api/v1/me").status_code == 200
    assert Event.objects.get(verb="account.restored").after == {"is_active": True}


@pytest.mark.parametrize(
    "typed", [{"because": "x"}, {"because": "x", "confirm": "Bob"}, {"confirm": "bob@example.org"}]
)
def test_it_takes_the_address_and_a_reason(ada: User, bob: User, typed: dict[str, str]) -> None:
    assert signed_in(ada).post(f"/people/{bob.pk}/suspend", typed).status_code == 422
    bob.refresh_from_db()
    assert bob.is_active


def test_the_state_that_it_has_already_changes_nothing(ada: User, bob: User) -> None:
    events = Event.objects.filter(verb__startswith="account.")
    answer = send(caller(ada), "PATCH", f"{PEOPLE}/{bob.pk}", {"suspended": False})
    assert (answer.status_code, events.count()) == (200, 0)


def test_a_team_that_nobody_else_owns_is_named_before(ada: User, alice: User, bob: User, team_a: Tenant) -> None:
    client = signed_in(ada)
    assert "<b>team-a</b> has no other owner" in client.get(f"/people/{alice.pk}").content.decode()
    Membership.objects.filter(user=bob).update(role="owner")
    assert "has no other owner" not in client.get(f"/people/{alice.pk}").content.decode()
    User.objects.filter(pk=bob.pk).update(is_active=False)
    detail = caller(ada).get(f"{PEOPLE}/{alice.pk}").json()
    assert detail["teams"] == [{"team": "team-a", "role": "owner", "is_only_owner": True}]


def test_why_a_team_is_suspended_is_told_after_the_pages_of_people_were_read(team_a: Tenant, olga: User) -> None:
    """Both are functions of tenants.queries; they once had the same name, and one hid the other."""
    lifecycle_actions.set_namespace_state(
        team_a.namespaces.get().pk, to="suspended", because="The course is over.", by=page(olga)
    )
    assert caller(olga).get("/api/v1/teams/team-a/namespace").json()["because"] == "The course is over."


# ---- classes of an approver ---------------------------------------------------------------------------------------


def decides(user: User) -> frozenset[str] | None:
    found = queries.rights_of(page(User.objects.get(pk=user.pk))).own
    assert found is not None
    return found.classes


def test_classes_are_given_and_taken_back(ada: User, a100: GpuClass) -> None:
    dora = make.user("Dora", roles=[Role.APPROVER])
    client, browser, own = caller(ada), signed_in(ada), f"{PEOPLE}/{dora.pk}"

    given = send(client, "PUT", f"{own}/approver-for/{a100.slug}")
    assert (given.status_code, given.json()["approver_for"]) == (200, [a100.slug])
    assert decides(dora) == {a100.slug}
    answer = browser.post(f"/people/{dora.pk}/grant-class", {"gpu_class": "*"}, follow=True)
    assert "Dora can now decide requests for every class" in answer.content.decode()
    assert decides(dora) is None
    assert send(client, "DELETE", f"{own}/approver-for-all").status_code == 204
    assert decides(dora) == {a100.slug}
    answer = browser.post(f"/people/{dora.pk}/revoke-class", {"gpu_class": a100.slug}, follow=True)
    assert "can no longer decide requests for" in answer.content.decode()
    assert decides(dora) == frozenset()

    events = Event.objects.filter(verb__startswith="approver.").order_by("id")
    assert [(one.verb, one.row, one.before, one.after) for one in events] == [
        ("approver.named", f"accounts.user.{dora.pk}", {}, {"class": a100.slug}),
        ("approver.named", f"accounts.user.{dora.pk}", {}, {"class": "every class"}),
        ("approver.ended", f"accounts.user.{dora.pk}", {"class": "every class"}, {}),
        ("approver.ended", f"accounts.user.{dora.pk}", {"class": a100.slug}, {}),
    ]
    assert Delivery.objects.filter(event__in=events, user=dora).count() == 4


def test_given_twice_is_told_once(ada: User, a100: GpuClass) -> None:
    dora = make.user("Dora", roles=[Role.APPROVER])
    for slug in (a100.slug, None):
        for _ in range(2):
            approver_actions.grant_class(dora.pk, slug, by=page(ada))
    assert ApproverFor.objects.count() == Event.objects.filter(verb="approver.named").count() == 2


def test_only_approvers_are_given_classes(ada: User, bob: User, a100: GpuClass) -> None:
    path = f"{PEOPLE}/{bob.pk}/approver-for/{a100.slug}"
    assert told(send(caller(ada), "PUT", path)) == (409, "not_approver", None)
    answer = signed_in(ada).post(f"/people/{bob.pk}/grant-class", {"gpu_class": a100.slug})
    assert answer.status_code == 422
    assert "Bob does not have the role approver." in answer.content.decode()
    assert not ApproverFor.objects.exists()


def test_what_was_given_does_not_count_without_the_role_and_can_be_taken_back(
    ada: User, dana: User, a100: GpuClass
) -> None:
    actions.set_roles(dana.pk, [], by=page(ada))
    assert not queries.rights_of(page(User.objects.get(pk=dana.pk)))
    assert "not in effect: not an approver" in signed_in(ada).get("/people").content.decode()
    approver_actions.revoke_class(dana.pk, None, by=page(ada))
    assert not ApproverFor.objects.exists()


def test_what_is_not_there_cannot_be_given_or_taken(ada: User, dana: User, a100: GpuClass) -> None:
    client = caller(ada)
    for method, path in (
        ("PUT", f"{PEOPLE}/{dana.pk}/approver-for/nonsense"),
        ("DELETE", f"{PEOPLE}/{dana.pk}/approver-for/nonsense"),
        ("DELETE", f"{PEOPLE}/{dana.pk}/approver-for/{a100.slug}"),
        ("PUT", f"{PEOPLE}/4711/approver-for/{a100.slug}"),
    ):
        assert told(send(client, method, path)) == (404, "not_found", None)
    assert signed_in(ada).post(f"/people/{dana.pk}/grant-class", {"gpu_class": "nonsense"}).status_code == 422
    assert ApproverFor.objects.get().gpu_class is None


def test_the_portal_itself_names_the_first_approver(bob: User) -> None:
    actions.set_roles(bob.pk, [Role.APPROVER], by=system_actor("setup"))
    approver_actions.grant_class(bob.pk, None, by=system_actor("setup"))
    assert decides(bob) is None


def test_a_role_that_was_taken_a_moment_ago_gives_no_class(ada: User, dana: User, a100: GpuClass) -> None:
    stale = page(User.objects.get(pk=ada.pk))
    User.objects.filter(pk=ada.pk).update(roles=["operator"])
    with pytest.raises(Refused) as refused:
        approver_actions.grant_class(dana.pk, a100.slug, by=stale)
    assert refused.value.code == "not_allowed"


def test_createsuperuser_can_make_every_role(db: None) -> None:
    first = User.objects.create_superuser(email="first@example.org", name="First", password=None)
    dora = make.user("Dora")
    actions.set_roles(dora.pk, list(Role), by=page(first))
    assert queries.rights_of(page(first)).classes == frozenset()


def test_what_happened_stands_on_the_page(ada: User, bob: User, a100: GpuClass) -> None:
    actions.set_roles(bob.pk, [Role.APPROVER], by=page(ada))
    approver_actions.grant_class(bob.pk, a100.slug, by=page(ada))
    text = signed_in(ada).get(f"/people/{bob.pk}").content.decode()
    assert "set the roles of Bob: approver" in text
    assert f"granted approval rights to Bob: {a100.slug}" in text
