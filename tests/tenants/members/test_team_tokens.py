"""A team token acts as its maker within that team, and has no rights outside of it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db.models.functions import Now
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from accounts import tasks
from accounts.api_tokens import actions as api_token_actions
from accounts.api_tokens import policy as api_token_policy
from accounts.core.actor import Actor
from accounts.events import actions as accounts
from accounts.models import ApiToken, Delivery, Event, Scope, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.members import actions as member_actions
from tenants.members.tokens import actions as token_actions
from tenants.models import Membership, QuotaRequest, Tenant
from tests.support.rows import make, running

SCOPES = ("read", "launch", "request", "admin")


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def make_token(
    user: User, *scopes: str, days: int = 30, name: str = "ci", team: str = "team-a"
) -> tuple[ApiToken, Client]:
    """Creates a token of the team, with all scopes by default; returns it with a client that uses it."""
    make.second_factor(user)
    token, text = token_actions.create_team_token(
        team, name=name, scopes=scopes or SCOPES, expires_in_days=days, by=page(user)
    )
    return token, Client(headers={"Authorization": f"Bearer {text}"})


def personal(user: User, *scopes: str, name: str = "own") -> Client:
    make.second_factor(user)
    _token, text = api_token_actions.create_token(
        name=name, scopes=scopes or list(Scope), expires_in_days=30, by=page(user)
    )
    return Client(headers={"Authorization": f"Bearer {text}"})


def send(client: Client, method: str, path: str, body: dict[str, Any] | None = None) -> HttpResponse:
    return client.generic(method, path, json.dumps(body or {}), content_type="application/json")


def told(answer: HttpResponse) -> tuple[int, str]:
    return answer.status_code, json.loads(answer.content)["code"]


@pytest.fixture
def mona(team_a: Tenant) -> User:
    """A manager."""
    found = make.user("Mona")
    make.member(team_a, found, Membership.Role.MANAGER)
    return found


# ---- creating, listing and revoking --------------------------------------------------------------------------------


def test_owners_and_managers_make_list_and_revoke_them_by_the_api(team_a: Tenant, alice: User, mona: User) -> None:
    by_mona, by_alice = personal(mona), personal(alice)
    new = {"name": "ci", "scopes": ["read"], "expires_in_days": 9}
    made = send(by_mona, "POST", "/api/v1/teams/team-a/tokens", new)
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    text, prefix = made.json()["token"], made.json()["prefix"]
    ci = Client(headers={"Authorization": f"Bearer {text}"})
    me = ci.get("/api/v1/me").json()
    assert (me["name"], me["teams"], me["confined_to"], me["via"]) == (
        "Mona",
        ["team-a"],
        "team-a",
        f"token {prefix}",
    )

    [listed] = by_alice.get("/api/v1/teams/team-a/tokens").json()["items"]
    assert (listed["name"], listed["owner"], listed["team"]) == ("ci", "mona@example.org", "team-a")
    assert text not in json.dumps(listed)
    assert [row["name"] for row in by_mona.get("/api/v1/tokens").json()["items"]] == ["own"]

    assert by_alice.delete(f"/api/v1/teams/team-a/tokens/{prefix}").status_code == 204
    assert told(ci.get("/api/v1/me")) == (401, "token_revoked")
    assert by_alice.delete(f"/api/v1/teams/team-a/tokens/{prefix}").status_code == 404
    events = Event.objects.filter(tenant="team-a").order_by("id").values_list("verb", "actor")
    assert list(events) == [("token.created", "Mona"), ("token.revoked", "Alice")]


def test_the_same_on_the_page(client: Client, team_a: Tenant, alice: User) -> None:
    client.force_login(alice)
    assert "/teams/team-a/tokens" in client.get("/teams/team-a/members").text
    assert 'value="decide"' not in client.get("/teams/team-a/tokens").text
    made = client.post("/teams/team-a/tokens", {"name": "ci", "scopes": ["read"], "expires_in_days": "30"})
    token = ApiToken.objects.get()
    [text] = set(re.findall(rf"gpt_{token.prefix}_[\w-]{{43}}", made.text))
    listed = client.get("/teams/team-a/tokens").text
    assert token.prefix in listed
    assert "alice@example.org" in listed
    assert text not in listed
    assert token.prefix not in client.get("/tokens").text

    again = client.post("/teams/team-a/tokens", {"name": "ci", "scopes": ["read"], "expires_in_days": "30"})
    assert again.status_code == 422
    assert "The team already has a token with this name" in again.text

    answer = client.post(f"/teams/team-a/tokens/{token.prefix}/revoke", follow=True)
    assert "The token ci was revoked" in answer.text
    assert "The team has no tokens." in answer.text


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("dana", 403), ("charlie", 404)])
def test_others_neither_see_nor_make_nor_revoke_them(
    request: pytest.FixtureRequest, team_a: Tenant, alice: User, who: str, status: int
) -> None:
    """Tested with a member, staff who see the team, and a stranger."""
    token, _client = make_token(alice)
    asking = personal(request.getfixturevalue(who))
    browser = Client()
    browser.force_login(request.getfixturevalue(who))
    address = "/api/v1/teams/team-a/tokens"
    answers = [
        asking.get(address),
        send(asking, "POST", address, {"name": "mine", "scopes": ["read"]}),
        send(asking, "POST", address, {"nonsense": 1}),
        asking.delete(f"{address}/{token.prefix}"),
        browser.get("/teams/team-a/tokens"),
        browser.post("/teams/team-a/tokens", {"name": "mine", "scopes": ["read"], "expires_in_days": "30"}),
        browser.post(f"/teams/team-a/tokens/{token.prefix}/revoke"),
    ]
    assert {answer.status_code for answer in answers} == {status}
    assert list(ApiToken.objects.filter(tenant="team-a", revoked_at=None)) == [token]
    if status == 403:
        assert "/teams/team-a/tokens" not in browser.get("/teams/team-a/members").text


def test_an_administrator_from_outside_revokes_them_and_makes_none(team_a: Tenant, alice: User, olga: User) -> None:
    token, ci = make_token(alice)
    by_olga = personal(olga)
    address = "/api/v1/teams/team-a/tokens"
    assert [row["prefix"] for row in by_olga.get(address).json()["items"]] == [token.prefix]
    assert told(send(by_olga, "POST", address, {"name": "mine", "scopes": ["read"]})) == (403, "not_allowed")
    assert by_olga.delete(f"{address}/{token.prefix}").status_code == 204
    assert told(ci.get("/api/v1/me")) == (401, "token_revoked")


def test_a_token_of_another_team_is_not_there(team_a: Tenant, alice: User, mona: User) -> None:
    """Alice owns both teams; the address names one of them."""
    other = make.tenant(team_a.namespaces.get().cluster, slug="team-b")
    make.member(other, alice, Membership.Role.OWNER)
    token, ci = make_token(alice, team="team-b")
    assert personal(mona).delete(f"/api/v1/teams/team-a/tokens/{token.prefix}").status_code == 404
    assert personal(alice).delete(f"/api/v1/teams/team-a/tokens/{token.prefix}").status_code == 404
    assert ci.get("/api/v1/me").json()["teams"] == ["team-b"]


def test_names_are_the_teams_own_and_their_number_has_an_end(
    team_a: Tenant, alice: User, mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_token(alice, name="ci")
    personal(alice, name="ci")
    with pytest.raises(Exception, match="team_token_name_once"), accounts.transaction.atomic():
        make_token(mona, name="ci")
    monkeypatch.setattr(api_token_policy, "TOKENS_MAX", 2)
    make_token(mona, name="two")
    with pytest.raises(Refused, match="The team has 2 tokens; the limit is 2"):
        make_token(alice, name="three")
    personal(alice, name="other")


# ---- limits of the rights of a token -------------------------------------------------------------------------------


def test_it_decides_nothing(team_a: Tenant, alice: User) -> None:
    with pytest.raises(Refused) as refused:
        make_token(alice, "read", "decide")
    assert refused.value.code == "unknown_scope"
    assert refused.value.refusal.message.endswith("Scopes are read, launch, request, admin.")


def test_it_makes_no_personal_token_no_wider_one_and_none_elsewhere(team_a: Tenant, alice: User) -> None:
    other = make.tenant(team_a.namespaces.get().cluster, slug="team-b")
    make.member(other, alice, Membership.Role.OWNER)
    _token, ci = make_token(alice, "read", "admin")
    new = {"name": "next", "scopes": ["read"], "expires_in_days": 3}
    address = "/api/v1/teams/team-a/tokens"
    assert told(send(ci, "POST", "/api/v1/tokens", new)) == (403, "team_token")
    assert told(send(ci, "POST", "/api/v1/teams/team-b/tokens", new)) == (404, "not_found")
    assert told(send(ci, "POST", address, {**new, "scopes": ["launch"]})) == (403, "lacks_scope")
    assert told(send(ci, "POST", address, {**new, "expires_in_days": 31})) == (403, "outlives_token")
    assert ApiToken.objects.count() == 1
    made = send(ci, "POST", address, new)
    assert (made.status_code, made.json()["team"]) == (201, "team-a")


def test_the_action_itself_lets_it_out_of_no_team(team_a: Tenant, alice: User) -> None:
    """The action refuses even when a page or view forgets to check."""
    by = Actor(alice, "token abcd1234", confined_to="team-a")
    for tenant in ("", "team-b"):
        with pytest.raises(Refused) as refused:
            api_token_actions.create_token(name="out", scopes=["read"], expires_in_days=3, tenant=tenant, by=by)
        assert refused.value.code == "team_token"
    assert ApiToken.objects.count() == 0


def test_what_its_maker_may_no_more_it_may_not(team_a: Tenant, mona: User) -> None:
    _token, ci = make_token(mona)
    new = {"name": "next", "scopes": ["read"], "expires_in_days": 3}
    Membership.objects.filter(user=mona).update(role=Membership.Role.VIEWER)
    assert ci.get("/api/v1/teams/team-a").status_code == 200
    assert told(send(ci, "POST", "/api/v1/teams/team-a/tokens", new)) == (403, "not_allowed")
    added = send(ci, "POST", "/api/v1/teams/team-a/members", {"email": "x@example.org", "role": "member"})
    assert told(added) == (403, "not_allowed")


# ---- end of a token ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [True, False])
def test_it_ends_when_its_maker_leaves_and_stays_so(team_a: Tenant, alice: User, mona: User, leaves: bool) -> None:
    token, ci = make_token(mona)
    own = personal(mona)
    _other, of_alice = make_token(alice, name="of alice")
    member_actions.remove_member("team-a", user_id=mona.pk, by=page(mona if leaves else alice))
    assert told(ci.get("/api/v1/me")) == (401, "token_revoked")
    make.member(team_a, mona, Membership.Role.MANAGER)
    assert told(ci.get("/api/v1/me")) == (401, "token_revoked")
    assert own.get("/api/v1/me").status_code == of_alice.get("/api/v1/me").status_code == 200
    revoked = Event.objects.get(verb="token.revoked")
    assert (revoked.tenant, revoked.name) == ("team-a", str(token))


def test_without_its_makers_membership_there_is_nothing(team_a: Tenant, mona: User) -> None:
    """It does not matter how the membership ended."""
    _token, ci = make_token(mona)
    Membership.objects.filter(user=mona).delete()
    assert ci.get("/api/v1/teams").json()["items"] == []
    assert ci.get("/api/v1/teams/team-a").status_code == 404
    assert ci.get("/api/v1/secrets?team=team-a").status_code == 404
    assert ci.get("/api/v1/events").json()["items"] == []


def test_it_rests_while_its_maker_is_suspended(team_a: Tenant, alice: User) -> None:
    _token, ci = make_token(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert told(ci.get("/api/v1/me")) == (401, "account_suspended")


# ---- actions and their events --------------------------------------------------------------------------------------


def test_what_it_does_is_its_makers_and_names_it(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    token, ci = make_token(alice)
    until = (timezone.now() + timedelta(days=9)).isoformat()
    asked = {
        "team": "team-a",
        "justification": "CI.",
        "lines": [{"gpu_class": a100.slug, "units": 1, "ends_at": until}],
    }
    assert send(ci, "POST", "/api/v1/requests", asked).status_code == 201
    assert QuotaRequest.objects.get().filed_by == alice
    filed = Event.objects.order_by("-id").first()
    assert filed is not None
    assert (filed.actor, filed.via, filed.tenant) == ("Alice", f"token {token.prefix}", "team-a")
    [line, *_] = ci.get("/api/v1/events").json()["items"]
    assert line["via"] == f"token {token.prefix}"


def test_without_naming_the_team_it_is_the_tokens(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    other = make.tenant(team_a.namespaces.get().cluster, slug="a-first-team")
    make.member(other, alice)
    running.workload(team_a.namespaces.get(), a100, name="one", by=alice)
    _token, ci = make_token(alice)
    assert [row["name"] for row in ci.get("/api/v1/workloads").json()["items"]] == ["one"]


def test_an_answer_that_was_kept_for_its_maker_is_not_the_tokens(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    """Same key and call: the stored answer about another team is there for the person, not for the team token."""
    other = make.tenant(team_a.namespaces.get().cluster, slug="team-b")
    make.member(other, alice, Membership.Role.OWNER)
    _token, ci = make_token(alice)
    until = (timezone.now() + timedelta(days=9)).isoformat()
    lines = [{"gpu_class": a100.slug, "units": 1, "ends_at": until}]
    for team, answer in (("team-a", (422, "key_reused")), ("team-b", (404, "not_found"))):
        body = json.dumps({"team": team, "justification": "CI.", "lines": lines})
        kept = {"content_type": "application/json", "headers": {"Idempotency-Key": f"key {team}"}}
        assert personal(alice, name=team).post("/api/v1/requests", body, **kept).status_code == 201
        assert told(ci.post("/api/v1/requests", body, **kept)) == answer


# ---- reminders -----------------------------------------------------------------------------------------------------


def test_its_maker_is_told_a_week_before_it_ends(team_a: Tenant, alice: User) -> None:
    token, _ci = make_token(alice, "read", name="nightly")
    reminder = Delivery.objects.get()
    assert (reminder.user, reminder.due_at) == (alice, token.expires_at - timedelta(days=7))
    tasks.deliver()
    assert mail.outbox == []
    Delivery.objects.update(due_at=Now())
    tasks.deliver()
    [message] = mail.outbox
    assert message.subject == f"The token nightly of team-a expires on {token.expires_at:%d %b %Y}"
    assert f"nightly ({token.prefix}…)" in message.body
    assert "/teams/team-a/tokens" in message.body


def test_of_a_token_of_ones_own_as_well_but_not_of_a_short_life(alice: User) -> None:
    personal(alice)
    assert "/tokens" in Delivery.objects.get().body
    api_token_actions.create_token(name="short", scopes=["read"], expires_in_days=7, by=page(alice))
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize("way", ["revoked", "left", "replaced"])
def test_of_a_token_that_ended_before_nobody_is_reminded(team_a: Tenant, alice: User, mona: User, way: str) -> None:
    token, _ci = make_token(mona)
    if way == "left":
        member_actions.remove_member("team-a", user_id=mona.pk, by=page(alice))
    else:
        api_token_actions.revoke_token(token.prefix, by=page(mona))
    if way == "replaced":
        token, _ci = make_token(mona)
    kept = [] if way != "replaced" else [f"accounts.apitoken.{token.pk}"]
    assert list(Delivery.objects.values_list("event__row", flat=True)) == kept


# ---- list for administrators ---------------------------------------------------------------------------------------


def test_an_administrator_lists_everybodys_tokens(team_a: Tenant, alice: User, bob: User, olga: User) -> None:
    make_token(alice)
    personal(bob)
    by_olga = personal(olga, name="of olga")
    everybody = by_olga.get("/api/v1/tokens?owner=everybody").json()["items"]
    assert [(row["owner"], row["team"]) for row in everybody] == [
        ("olga@example.org", ""),
        ("bob@example.org", ""),
        ("alice@example.org", "team-a"),
    ]
    assert [row["name"] for row in by_olga.get("/api/v1/tokens?owner=Bob@example.org").json()["items"]] == ["own"]
    assert [row["name"] for row in by_olga.get("/api/v1/tokens").json()["items"]] == ["of olga"]
    assert told(personal(olga, "read", name="narrow").get("/api/v1/tokens?owner=everybody")) == (403, "missing_scope")


@pytest.mark.parametrize("who", ["alice", "dana"])
def test_for_others_there_is_no_such_list(request: pytest.FixtureRequest, team_a: Tenant, who: str) -> None:
    person = request.getfixturevalue(who)
    asking = personal(person)
    for owner in ("everybody", person.email, "nobody@example.org"):
        assert told(asking.get(f"/api/v1/tokens?owner={owner}")) == (404, "not_found")
    browser = Client()
    browser.force_login(person)
    assert browser.get("/tokens/everybody").status_code == 404
    assert "/tokens/everybody" not in browser.get("/tokens").text


def test_the_page_of_everybodys_tokens(client: Client, team_a: Tenant, alice: User, bob: User, olga: User) -> None:
    make_token(alice, name="of the team")
    personal(bob, name="of bob")
    make.administrator(client, olga)
    assert "/tokens/everybody" in client.get("/tokens").text
    shown = client.get("/tokens/everybody").text
    assert "of the team" in shown
    assert "only in the team team-a" in shown
    only = client.get("/tokens/everybody?owner=bob@example.org").text
    assert "of bob" in only
    assert "of the team" not in only
    revoked = client.post(f"/tokens/{ApiToken.objects.get(user=bob).prefix}/revoke")
    assert (revoked.status_code, revoked["Location"]) == (302, "/tokens/everybody")
    assert "bob@example.org" not in client.get("/tokens/everybody").text


def test_lists_ask_the_same_number_of_questions_whatever_their_length(
    team_a: Tenant, alice: User, olga: User, django_assert_max_num_queries: Any
) -> None:
    by_olga, by_alice = personal(olga, name="of olga"), personal(alice)
    by_olga.get("/api/v1/me")
    for number in range(12):
        make_token(alice, name=f"ci {number}")
    with django_assert_max_num_queries(5):
        assert len(by_olga.get("/api/v1/tokens?owner=everybody").json()["items"]) == 14
    with django_assert_max_num_queries(6):
        assert len(by_alice.get("/api/v1/teams/team-a/tokens").json()["items"]) == 12
