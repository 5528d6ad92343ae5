"""Authentication of the API, by token and by session."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from allauth.mfa.models import Authenticator
from django.conf import LazySettings
from django.core.cache import cache
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.api_tokens import actions
from accounts.core.actor import Actor
from accounts.credentials import login_backoff
from accounts.models import ApiToken, Event, Scope, User
from accounts.rest import throttles
from portal.core import hints
from tenants.models import Tenant
from tests.support.rows import make

ME = "/api/v1/me"


def token_of(user: User, *scopes: Scope) -> str:
    make.second_factor(user)
    _, text = actions.create_token(
        name="ci", scopes=scopes or list(Scope), expires_in_days=7, by=Actor(user=user, via="page")
    )
    return text


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def token(alice: User) -> str:
    return token_of(alice)


# ---- tokens --------------------------------------------------------------------------------------------------------


def test_a_token_acts_as_its_owner(client: Client, alice: User, token: str) -> None:
    answer = client.get(ME, headers=bearer(token)).json()

    assert answer == {
        "email": "alice@example.org",
        "name": "Alice",
        "roles": [],
        "scopes": ["admin", "decide", "launch", "read", "request"],
        "teams": [],
        "via": f"token {token[4:12]}",
        "confined_to": "",
        "token": answer["token"],
    }


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer gpt_", "Bearer gpt_aaaaaaaa_" + "b" * 43, "Bearer x y", "bearer é", "Bearer \x00"],
)
def test_what_is_no_token_is_refused(client: Client, token: str, header: str) -> None:
    answer = client.get(ME, headers={"Authorization": header})

    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["code"] == "bad_token"


def test_a_secret_of_another_token_is_refused(client: Client, alice: User, bob: User) -> None:
    of_alice, of_bob = token_of(alice), token_of(bob)

    answer = client.get(ME, headers=bearer(of_alice[:13] + of_bob[13:]))

    assert answer.status_code == 401


@pytest.mark.parametrize("header", [None, "Basic YWxpY2U6eA==", "Token abc"])
def test_nobody_is_asked_to_sign_in(client: Client, db: None, header: str | None) -> None:
    answer = client.get(ME, headers={"Authorization": header} if header else {})

    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["code"] == "not_signed_in"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"expires_at": Now() - timedelta(seconds=1)}, "token_expired"),
        ({"revoked_at": Now()}, "token_revoked"),
    ],
)
def test_a_token_ends(client: Client, token: str, change: dict[str, Any], code: str) -> None:
    ApiToken.objects.update(**change)

    answer = client.get(ME, headers=bearer(token))

    assert (answer.status_code, answer.json()["code"]) == (401, code)


def test_only_who_knows_the_secret_learns_why(client: Client, token: str) -> None:
    ApiToken.objects.update(revoked_at=Now())

    answer = client.get(ME, headers=bearer(token[:-1] + ("A" if token[-1] != "A" else "B")))

    assert answer.json()["code"] == "bad_token"


def test_a_suspended_person_has_neither_token_nor_session(client: Client, alice: User, token: str) -> None:
    client.force_login(alice)
    User.objects.update(is_active=False)

    assert client.get(ME).status_code == 401
    assert client.get(ME, headers=bearer(token)).json()["code"] == "account_suspended"


def test_the_last_use_is_noted_once_a_minute(client: Client, token: str) -> None:
    def use() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(ME, headers=bearer(token)).status_code == 200
        return sum("UPDATE" in query["sql"] for query in queries)

    assert [use(), use()] == [1, 0]
    ApiToken.objects.update(last_used_at=Now() - timedelta(seconds=61))
    assert [use(), use()] == [1, 0]


def test_a_bad_token_is_not_saved_by_a_good_session(client: Client, alice: User) -> None:
    client.force_login(alice)

    assert client.get(ME, headers=bearer("gpt_wrong")).status_code == 401


# ---- scopes --------------------------------------------------------------------------------------------------------


def test_a_token_does_what_its_scopes_say(client: Client, alice: User) -> None:
    text = token_of(alice, Scope.READ)
    asked = {"name": "more", "scopes": ["read"], "expires_in_days": 1}

    assert client.get("/api/v1/tokens", headers=bearer(text)).status_code == 200
    answer = client.post("/api/v1/tokens", asked, content_type="application/json", headers=bearer(text))

    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    assert "'admin'" in answer.json()["message"]
    assert ApiToken.objects.count() == 1


def test_a_session_has_all_scopes(client: Client, alice: User) -> None:
    client.force_login(alice)

    assert client.get(ME).json()["via"] == "page"
    assert len(client.get(ME).json()["scopes"]) == 5


# ---- CSRF ----------------------------------------------------------------------------------------------------------


def test_a_session_needs_the_csrf_token_to_write(alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    asked = {"name": "ci", "scopes": ["read"]}

    refused = browser.post("/api/v1/tokens", asked, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf")

    browser.get("/tokens")
    csrf = browser.cookies["csrf"].value
    made = browser.post("/api/v1/tokens", asked, content_type="application/json", headers={"X-CSRFToken": csrf})
    assert made.status_code == 201


def test_a_token_needs_none(alice: User, token: str) -> None:
    script = Client(enforce_csrf_checks=True)

    made = script.post(
        "/api/v1/tokens",
        {"name": "two", "scopes": ["read"], "expires_in_days": 1},
        content_type="application/json",
        headers=bearer(token),
    )

    assert made.status_code == 201


# ---- request rate --------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_pause() -> None:
    """Clears the state that another test's Redis outage left behind."""
    throttles.TokenThrottle._away_until = 0.0


def test_one_token_is_slowed_down_and_others_are_not(
    client: Client, alice: User, bob: User, settings: LazySettings
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 3
    of_alice, of_bob = token_of(alice), token_of(bob)

    statuses = [client.get(ME, headers=bearer(of_alice)).status_code for _ in range(8)]
    refused = client.get(ME, headers=bearer(of_alice))

    # The minute may end in between; then the same number of requests passes again.
    assert statuses[:3] == [200, 200, 200]
    assert 429 in statuses
    if refused.status_code == 429:
        assert refused.json()["code"] == "too_many_requests"
        assert 1 <= int(refused["Retry-After"]) <= 61
    assert client.get(ME, headers=bearer(of_bob)).status_code == 200


def test_requests_to_other_processes_are_counted_too(
    client: Client, token: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 300
    now = time.time()
    monkeypatch.setattr(throttles, "time", SimpleNamespace(time=lambda: now))
    key = f"throttle:token:{ApiToken.objects.get().pk}:{int(now // 60)}"

    def call(times: int) -> list[int]:
        return [client.get(ME, headers=bearer(token)).status_code for _ in range(times)]

    assert call(7) == [200] * 7
    assert hints.redis_connection().get(key) == b"7"
    hints.redis_connection().incrby(key, 290)  # by another process

    assert call(4) == [200, 200, 200, 429]
    assert 0 < int(hints.redis_connection().ttl(key)) <= 120  # type: ignore[arg-type]


def test_without_redis_all_pass_and_only_one_request_waits_for_it(
    client: Client, token: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 1
    monkeypatch.setattr(hints, "redis_connection", lambda: redis.Redis.from_url("redis://127.0.0.1:1/0"))

    statuses = [client.get(ME, headers=bearer(token)).status_code for _ in range(3)]

    assert statuses == [200, 200, 200]
    assert throttles.TokenThrottle._away_until > 0


# ---- signing in ----------------------------------------------------------------------------------------------------


def sign_in(client: Client, *, email: str = "alice@example.org", password: str = make.PASSWORD, **extra: Any) -> Any:
    return client.post("/login", {"username": email, "password": password, "next": "/tokens"}, **extra)


def test_signing_in_and_out_is_recorded(client: Client, alice: User, settings: LazySettings) -> None:
    settings.LOGIN_REDIRECT_URL = "tokens"
    assert client.get("/login").status_code == 200

    answer = sign_in(client, email="ALICE@example.org")
    assert (answer.status_code, answer["Location"]) == (302, "/tokens")
    assert client.get("/login").status_code == 302, "who is signed in is sent on"
    assert client.post("/logout")["Location"] == "/login"
    assert client.get("/tokens").status_code == 302

    events = list(Event.objects.order_by("id"))
    assert [event.verb for event in events] == ["account.signed_in", "account.signed_out"]
    assert (events[0].actor_id, events[0].after) == (alice.pk, {"address": "127.0.0.1"})
    assert events[0].request_id == answer["X-Request-ID"]


@pytest.mark.parametrize("elsewhere", ["https://evil.example/tokens", "//evil.example", "javascript:alert(1)"])
def test_another_site_is_no_place_to_go_on(client: Client, alice: User, settings: LazySettings, elsewhere: str) -> None:
    settings.LOGIN_REDIRECT_URL = "tokens"

    answer = client.post("/login", {"username": "alice@example.org", "password": make.PASSWORD, "next": elsewhere})

    assert answer["Location"] == "/tokens"


@pytest.mark.parametrize(
    ("email", "password"),
    [("alice@example.org", "wrong"), ("nobody@example.org", make.PASSWORD), ("", ""), ("\0", "x"), ("a" * 400, "x")],
)
def test_a_wrong_password_and_an_unknown_address_look_the_same(
    client: Client, alice: User, email: str, password: str
) -> None:
    answer = sign_in(client, email=email, password=password)

    assert answer.status_code == 422
    if len(email) > 1 and len(email) < 254:
        assert "do not match" in answer.text
    assert Event.objects.count() == 0


def test_a_suspended_person_cannot_sign_in(client: Client, alice: User) -> None:
    User.objects.update(is_active=False)

    assert sign_in(client).status_code == 422


def test_signing_out_needs_a_post(client: Client, alice: User) -> None:
    client.force_login(alice)

    assert client.get("/logout").status_code == 405


def test_guessing_gets_slower_for_the_guesser_only(
    client: Client, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slows down one address guessing at one account, not the owner elsewhere or other users at the same address."""
    monkeypatch.setattr(login_backoff, "FIRST_WAIT_S", 30)
    guesser, owner = {"HTTP_X_FORWARDED_FOR": "198.51.100.7"}, {"HTTP_X_FORWARDED_FOR": "198.51.100.8"}
    statuses = [sign_in(client, password=f"guess {n}", **guesser).status_code for n in range(6)]
    refused = sign_in(client, **guesser)

    assert statuses == [422] * 5 + [429]
    assert refused.status_code == 429, "the right password waits as well"
    assert "Try again in " in refused.text
    assert sign_in(Client(), **owner).status_code == 302
    assert sign_in(Client(), email="bob@example.org", **guesser).status_code == 302


def test_guesses_in_parallel_gain_nothing(alice: User) -> None:
    waits: list[int] = []
    start = threading.Barrier(20)

    def guess() -> None:
        start.wait()
        waits.append(login_backoff.wait_before_attempt("alice@example.org", "198.51.100.9"))

    threads = [threading.Thread(target=guess) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert waits.count(0) <= login_backoff.FREE_ATTEMPTS
    assert max(waits) <= login_backoff.WAIT_MAX_S


def test_a_clock_that_is_ahead_makes_nobody_wait_longer(alice: User) -> None:
    who = ("alice@example.org", "198.51.100.9")
    cache.set(f"{login_backoff._key(*who, 'password')}:until", time.time() + login_backoff.WAIT_MAX_S + 5, timeout=60)

    assert login_backoff.wait_before_attempt(*who) == login_backoff.WAIT_MAX_S


def test_without_redis_people_sign_in(client: Client, alice: User, settings: LazySettings) -> None:
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }

    assert sign_in(client).status_code == 302


def test_an_address_is_believed_from_the_gateway_only(client: Client, alice: User) -> None:
    """A client that reaches the web process directly cannot choose the address that is slowed down and recorded."""
    sign_in(client, HTTP_X_FORWARDED_FOR="203.0.113.1, 198.51.100.7", REMOTE_ADDR="8.8.8.8")
    sign_in(Client(), HTTP_X_FORWARDED_FOR="203.0.113.1, 198.51.100.7", REMOTE_ADDR="10.0.0.3")

    assert [event.after["address"] for event in Event.objects.order_by("id")] == ["8.8.8.8", "198.51.100.7"]


# ---- a token about itself -----------------------------------------------------------------------------------------


def test_me_says_which_token_this_is(alice: User) -> None:
    text = token_of(alice, Scope.READ, Scope.LAUNCH)
    told = Client(headers={"Authorization": f"Bearer {text}"}).get(ME).json()["token"]
    row = ApiToken.objects.get()
    assert (told["name"], told["prefix"], told["scopes"]) == ("ci", row.prefix, ["read", "launch"])
    assert datetime.fromisoformat(told["expires_at"]) == row.expires_at
    assert text not in str(told)
    by_session = Client()
    by_session.force_login(alice)
    assert by_session.get(ME).json()["token"] is None


@pytest.mark.parametrize("scope", list(Scope))
def test_any_token_revokes_itself(alice: User, scope: Scope) -> None:
    client = Client(headers={"Authorization": f"Bearer {token_of(alice, scope)}"})
    other = token_of_other_name(alice)
    Authenticator.objects.all().delete()  # the scope admin does not apply, and is not needed either
    assert client.delete(f"{ME}/token").status_code == 204
    again = client.delete(f"{ME}/token")
    assert (again.status_code, again.json()["code"]) == (401, "token_revoked")
    assert Client(headers={"Authorization": f"Bearer {other}"}).get(ME).status_code == 200
    event = Event.objects.get(verb="token.revoked")
    assert event.actor_id == alice.pk


def token_of_other_name(user: User) -> str:
    by = Actor(user=user, via="page")
    return actions.create_token(name="other", scopes=["read"], expires_in_days=7, by=by)[1]


def test_a_teams_token_revokes_itself_too(alice: User, team_a: Tenant) -> None:
    by = replace(Actor(user=alice, via="page"), confined_to="team-a")
    row, text = actions.create_token(name="ci", scopes=["launch"], expires_in_days=7, tenant="team-a", by=by)
    assert Client(headers={"Authorization": f"Bearer {text}"}).delete(f"{ME}/token").status_code == 204
    row.refresh_from_db()
    assert row.revoked_at is not None


def test_a_session_has_no_token_to_revoke(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    answer = client.delete(f"{ME}/token")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
