"""Pages and calls about accounts, and tokens of scope admin, require a second factor."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from accounts.api_tokens import actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, Role, Scope, User
from tenants.models import Tenant
from tests.support.http.callers import caller, send, told
from tests.support.rows import make

pytestmark = pytest.mark.django_db
NEEDED = (403, "second_factor_needed")
PAGES = ("/people", "/people/new", "/tokens/everybody")


@pytest.fixture
def ada(db: None) -> User:
    return make.user("Ada", roles=[Role.ADMIN])


def by_password(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def without_factor(user: User) -> None:
    Authenticator.objects.filter(user=user).delete()


@pytest.mark.parametrize("held", [False, True], ids=["none", "not used in this session"])
def test_pages_about_accounts_lead_to_the_second_factor_and_back(ada: User, bob: User, held: bool) -> None:
    if held:
        make.second_factor(ada)
    client = by_password(ada)
    for path in (*PAGES, f"/people/{bob.pk}"):
        answer = client.get(path)
        assert (answer.status_code, answer["Location"]) == (
            302,
            f"/account/second-factor?next={path.replace('/', '%2F')}",
        )
    for verb in ("roles", "suspend", "password-code", "grant-class"):
        answer = client.post(f"/people/{bob.pk}/{verb}", {"roles": "admin", "confirm": bob.email, "because": "x"})
        assert (answer.status_code, answer["Location"]) == (302, "/account/second-factor")
    bob.refresh_from_db()
    assert (bob.is_active, bob.roles) == (True, [])
    assert "require a second factor" in client.get("/account/second-factor").text
    make.administrator(client, ada)
    for path in (*PAGES, f"/people/{bob.pk}"):
        assert client.get(path).status_code == 200
    without_factor(ada)
    assert client.get("/people").status_code == 302


def test_for_others_these_pages_still_do_not_exist(alice: User) -> None:
    for path in PAGES:
        assert by_password(alice).get(path).status_code == 404


def test_so_do_calls_by_a_session_and_by_any_token(ada: User, bob: User) -> None:
    reads = caller(ada, Scope.READ)
    for client in (by_password(ada), reads):
        for path in ("/api/v1/people", f"/api/v1/people/{bob.pk}"):
            answer = client.get(path)
            assert told(answer)[:2] == NEEDED, path
    make.second_factor(ada)
    assert reads.get("/api/v1/people").status_code == 200
    assert told(by_password(ada).get("/api/v1/people"))[:2] == NEEDED
    assert make.administrator(Client(), ada).get("/api/v1/people").status_code == 200


def asked(*scopes: str) -> dict[str, Any]:
    return {"name": "ci", "scopes": list(scopes), "expires_in_days": 30}


@pytest.mark.parametrize("address", ["/api/v1/tokens", "/api/v1/teams/team-a/tokens"])
def test_no_session_without_one_creates_a_token_of_scope_admin(alice: User, team_a: Tenant, address: str) -> None:
    client = by_password(alice)
    assert send(client, "POST", address, asked("read", "launch")).status_code == 201
    ApiToken.objects.all().delete()
    page = address.removeprefix("/api/v1")
    for _ in ("none", "not used in this session"):
        assert told(send(client, "POST", address, asked("read", "admin")))[:2] == NEEDED
        by_page = client.post(page, asked("read", "admin"))
        assert by_page.status_code == 422
        assert "require a second factor" in by_page.text
        assert 'value="ci"' in by_page.text, "what was typed stays"
        make.second_factor(alice)
    assert not ApiToken.objects.exists()
    assert send(make.administrator(Client(), alice), "POST", address, asked("read", "admin")).status_code == 201


def test_the_action_asks_for_it_itself(alice: User) -> None:
    with pytest.raises(Exception, match="second factor"):
        actions.create_token(name="ci", scopes=["admin"], expires_in_days=1, by=Actor(alice, "page"))


def test_the_scope_applies_while_the_owner_has_one(alice: User, team_a: Tenant) -> None:
    client = caller(alice, Scope.READ, Scope.ADMIN)
    add = ("POST", "/api/v1/teams/team-a/members", {"email": "new@example.org", "role": "viewer"})
    without_factor(alice)
    refused = send(client, *add)
    assert told(refused)[:2] == NEEDED
    assert "its owner has no second factor" in refused.json()["message"]
    assert client.get("/api/v1/me").json()["scopes"] == ["read"]
    make.second_factor(alice)
    assert send(client, *add).status_code == 202
    assert client.get("/api/v1/me").json()["scopes"] == ["admin", "read"]


def test_a_token_without_the_scope_needs_none(alice: User, team_a: Tenant) -> None:
    client = caller(alice, Scope.READ)
    assert client.get("/api/v1/teams/team-a").status_code == 200
    assert told(send(client, "POST", "/api/v1/teams/team-a/members", {}))[:2] == (403, "missing_scope")
