"""Limits of requests a minute for pages, all tokens of a person, and teams: real Redis, real rows."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.api_tokens import actions as token_actions
from accounts.core.actor import Actor
from accounts.models import Scope, User
from accounts.rest import throttles
from portal.core import hints
from tenants.members.tokens import actions as team_token_actions
from tenants.models import Membership, Tenant
from tests.support.rows import make

LISTS = "/teams/team-a/requests"


@pytest.fixture(autouse=True)
def minute(settings: LazySettings, monkeypatch: pytest.MonkeyPatch, unique: str) -> int:
    """A minute of this test's own, 15 s old: the counts in Redis outlive it."""
    settings.API_REQUESTS_PER_MINUTE = 3
    throttles.TokenThrottle._away_until = 0.0
    # Dates end with the year 9999.
    found = int(unique, 16) // 2
    monkeypatch.setattr(throttles.time, "time", lambda: 60.0 * found + 15)
    return found


@pytest.fixture
def member(team_a: Tenant) -> User:
    found = make.user("Mina")
    make.member(team_a, found)
    return found


def signed_in(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def statuses(client: Client, path: str, times: int, **headers: str) -> list[int]:
    return [client.get(path, headers=headers).status_code for _ in range(times)]


def used(minute: int, of: str, name: object) -> int:
    return int(hints.redis_connection().get(f"throttle:{of}:{name}:{minute}") or 0)  # type: ignore[arg-type]


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def personal_token(user: User, name: str) -> dict[str, str]:
    make.second_factor(user)
    _, text = token_actions.create_token(
        name=name, scopes=[Scope.READ], expires_in_days=7, by=Actor(user=user, via="page")
    )
    return bearer(text)


# ---- pages of one person -------------------------------------------------------------------------------------------


def test_the_limit_of_one_persons_pages_does_not_reach_another(alice: User, member: User, team_a: Tenant) -> None:
    of_alice, of_member = signed_in(alice), signed_in(member)

    assert statuses(of_alice, LISTS, 4) == [200, 200, 200, 429]
    refused = of_alice.get(LISTS)

    assert refused["Retry-After"] == "46"
    assert "the limit is 3 a minute. Nothing was done. Try again in 46 s." in refused.content.decode()
    assert statuses(of_member, LISTS, 1) == [200]


def test_two_browsers_of_one_person_share_the_limit(alice: User, team_a: Tenant) -> None:
    assert statuses(signed_in(alice), LISTS, 2) == [200, 200]
    assert statuses(signed_in(alice), LISTS, 2) == [200, 429]


def test_home_and_stop_are_counted_apart(alice: User, team_a: Tenant) -> None:
    browser = signed_in(alice)
    assert statuses(browser, LISTS, 4)[-1] == 429

    assert browser.get("/teams/team-a").status_code == 200
    assert browser.post("/teams/team-a/workloads/none/stop").status_code == 404
    assert browser.get("/teams/team-a").status_code == 200
    assert browser.get("/teams/team-a").status_code == 429, "what goes first has a limit as well"


def test_a_refused_page_asks_the_database_only_who_it_is(alice: User, team_a: Tenant) -> None:
    browser = signed_in(alice)
    statuses(browser, LISTS, 4)
    with CaptureQueriesContext(connection) as asked:
        assert browser.get(LISTS).status_code == 429
    assert len(asked) == 2


def test_htmx_gets_the_sentence(alice: User, team_a: Tenant) -> None:
    browser = signed_in(alice)
    statuses(browser, LISTS, 4)
    answer = browser.get(LISTS, headers={"HX-Request": "true"})
    assert answer.status_code == 429
    assert 'data-refusal="too_many_requests"' in answer.content.decode()


def test_without_redis_pages_pass_and_one_waits(alice: User, team_a: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "redis_connection", lambda: redis.Redis.from_url("redis://127.0.0.1:1/0"))
    assert statuses(signed_in(alice), LISTS, 5) == [200] * 5
    assert throttles.TokenThrottle._away_until > 0


# ---- teams ---------------------------------------------------------------------------------------------------------


def test_a_team_has_a_limit_that_only_its_members_meet(
    alice: User, member: User, team_a: Tenant, minute: int, settings: LazySettings
) -> None:
    hints.redis_connection().set(f"throttle:team:team-a:{minute}", 29, ex=60)

    assert statuses(signed_in(alice), LISTS, 1) == [200]
    refused = signed_in(member).get(LISTS)
    assert refused.status_code == 429
    assert "team team-a: the limit is 30 a minute" in refused.content.decode()
    # A stranger learns nothing, and an approver of the platform reads on.
    assert statuses(signed_in(make.user("Stranger")), LISTS, 1) == [404]
    assert statuses(signed_in(make.approver("Dana")), LISTS, 1) == [200]


def test_strangers_use_nothing_of_a_teams_limit(alice: User, team_a: Tenant, minute: int) -> None:
    assert statuses(signed_in(make.user("Stranger")), LISTS, 3) == [404] * 3
    assert used(minute, "team", "team-a") == 0
    signed_in(alice).get(LISTS)
    assert used(minute, "team", "team-a") == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [("post", "history"), ("get", "workloads/none/stop"), ("get", "workloads/none/keep")],
)
def test_a_wrong_method_uses_nothing_of_a_teams_limit(
    alice: User, team_a: Tenant, minute: int, method: str, path: str
) -> None:
    """It is refused before anybody asks who may see the team."""
    for browser in (signed_in(make.user("Stranger")), signed_in(alice)):
        assert getattr(browser, method)(f"/teams/team-a/{path}").status_code == 405
    assert (used(minute, "team", "team-a"), used(minute, "team", "team-a:first")) == (0, 0)
    assert sum(used(minute, "user", f"{user.pk}{kind}") for user in User.objects.all() for kind in ("", ":first")) == 2


def test_one_person_who_is_refused_uses_nothing_of_the_teams_limit(
    alice: User, member: User, team_a: Tenant, minute: int
) -> None:
    assert statuses(signed_in(alice), LISTS, 40).count(200) == 3
    assert used(minute, "team", "team-a") == 3
    assert statuses(signed_in(member), LISTS, 1) == [200]


# ---- tokens --------------------------------------------------------------------------------------------------------


def test_many_tokens_are_no_way_around_the_limit_of_a_person(alice: User, bob: User, team_a: Tenant) -> None:
    tokens = [personal_token(alice, f"ci-{number}") for number in range(4)]
    client, path = Client(), "/api/v1/teams"

    found = [statuses(client, path, 3, **token) for token in tokens[:3]]

    assert found == [[200] * 3] * 3
    refused = client.get(path, headers=tokens[3])
    assert refused.json()["code"] == "too_many_requests"
    assert "with your tokens: the limit is 9 a minute" in refused.json()["message"]
    assert statuses(client, path, 1, **personal_token(bob, "ci")) == [200]
    assert statuses(signed_in(alice), LISTS, 1) == [200], "her pages are counted apart"


def test_a_teams_token_counts_for_the_team_and_not_for_its_creator(alice: User, team_a: Tenant, minute: int) -> None:
    make.second_factor(alice)
    created: Any = team_token_actions.create_team_token(
        "team-a", name="ci", scopes=[Scope.READ], expires_in_days=7, by=Actor(user=alice, via="page")
    )
    text = created[1]

    assert statuses(Client(), "/api/v1/workloads", 4, **bearer(text)) == [200, 200, 200, 429]
    assert (used(minute, "team", "team-a"), used(minute, "tokens-of", alice.pk)) == (3, 0)
    hints.redis_connection().set(f"throttle:team:team-a:{minute}", 30, ex=60)
    assert Membership.objects.filter(user=alice, tenant=team_a).exists()
    assert statuses(signed_in(alice), LISTS, 1) == [429]
