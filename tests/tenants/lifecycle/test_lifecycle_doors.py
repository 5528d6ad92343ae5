"""Suspend, resume, close and renew: action, page, API and command answer alike, for every person and in every state.

The table is generated; the expected results are written here a second time, independent of the code under test.
"""

from __future__ import annotations

import html
import io
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.lifecycle import actions as lifecycle_actions
from tenants.models import Grant, Membership, Namespace, QuotaLine, Tenant
from tenants.requests.renewals import actions as renewal_actions
from tests.support.http.answers import DONE, Answer, answers_agree
from tests.support.http.visits import rows_of, signed_in_once, undone, visit
from tests.support.rows import make

STATES = ("active", "suspended", "closing", "closed")
VERBS = ("suspend", "resume", "close", "renew")
PEOPLE = ("owner", "member", "viewer", "approver", "operator", "stranger")
WANTED = {"suspend": "suspended", "resume": "active", "close": "closed"}
BECAUSE = "The course is over."


def expected(verb: str, who: str, state: str) -> str:
    """Returns the error code of the refusal; "" where the verb succeeds or has nothing to do."""
    if who == "stranger":
        return "not_found"
    if verb == "renew":
        # The grants of a closed team have ended.
        if state == "closed":
            return "not_found"
        return "not_allowed" if who != "owner" else "closed" if state == "closing" else ""
    if who != "operator":
        return "not_allowed"
    if state == "closed" or (state == "closing" and verb != "resume"):
        return "closed"
    return ""


@dataclass(frozen=True)
class World:
    namespace: int
    grant: int
    people: dict[str, User]


@pytest.fixture
def world(
    team_a: Tenant, a100: GpuClass, alice: User, bob: User, charlie: User, dana: User, olga: User
) -> Iterator[World]:
    GpuClass.objects.update(promise_limit=8)
    vera = make.user("Vera")
    make.member(team_a, vera, Membership.Role.VIEWER)
    grant = make.grant(team_a, a100, units=2, until=timezone.now() + timedelta(days=5))
    people = dict(zip(PEOPLE, (alice, bob, vera, dana, olga, charlie), strict=True))
    with signed_in_once(people.values()):
        yield World(team_a.namespaces.get().pk, grant.pk, people)


def bring(world: World, state: str) -> None:
    by = Actor(world.people["operator"], "page")
    if state == "suspended":
        lifecycle_actions.set_namespace_state(world.namespace, to="suspended", by=by)
    elif state != "active":
        lifecycle_actions.set_namespace_state(
            world.namespace, to="closed", grace_hours=0 if state == "closed" else 24, by=by
        )


# ---- interfaces: action, page, API, command ----------------------------------------------------------------------


def by_action(verb: str, world: World, who: User) -> Answer:
    by = Actor(who, "page")
    try:
        if verb == "renew":
            renewal_actions.renew_grant("team-a", world.grant, by=by)
        else:
            lifecycle_actions.set_namespace_state(world.namespace, to=WANTED[verb], because=BECAUSE, by=by)
    except Refused as refused:
        return Answer(refused.refusal.status, refused.code, refused.refusal.message)
    return DONE


def by_page(verb: str, world: World, who: User | None) -> Answer:
    if verb == "renew":
        path, body = f"/teams/team-a/grants/{world.grant}/renew", {}
    else:
        path, body = "/teams/team-a/namespace", {"to": WANTED[verb], "because": BECAUSE, "confirm": "team-a"}
    answer = visit(who).post(path, body)
    if answer.status_code == 302 and "login" not in answer.headers["Location"]:
        return DONE
    return Answer(answer.status_code, None, " ".join(html.unescape(answer.content.decode()).split()))


def by_api(verb: str, world: World, who: User | None) -> Answer:
    client: Any = visit(who)
    api = "/api/v1/teams/team-a"
    if verb == "renew":
        answer = client.post(f"{api}/grants/{world.grant}/renew", content_type="application/json")
    else:
        body = json.dumps({"wanted": WANTED[verb], "because": BECAUSE})
        answer = client.patch(f"{api}/namespace", body, content_type="application/json")
    if answer.status_code in (200, 201, 202):
        return DONE
    return Answer(answer.status_code, answer.json()["code"], answer.json()["message"])


def by_command(verb: str, world: World, who: User | None) -> Answer:
    words = ["team-a", str(world.grant)] if verb == "renew" else ["team-a", "--because", BECAUSE]
    try:
        call_command("quota", verb, *words, "--as", who.email if who else "nobody@example.org", stdout=io.StringIO())
    except CommandError as error:
        return Answer(None, None, str(error))
    return DONE


DOORS: dict[str, Callable[[str, World, Any], Answer]] = {"page": by_page, "API": by_api, "command": by_command}


# ---- expected outcomes -------------------------------------------------------------------------------------------


def rows() -> str:
    return rows_of(Namespace, Grant, QuotaLine, Event, Delivery)


def outcome() -> list[Any]:
    """Returns what a verb has changed, without the time and the interface."""
    times = ("closes_at", "volumes_until")
    return [
        [(row.wanted, *(getattr(row, time) is None for time in times)) for row in Namespace.objects.order_by("pk")],
        list(Grant.objects.order_by("pk").values_list("units", "kind", "grace")),
        list(QuotaLine.objects.order_by("pk").values_list("asked_units", "asked_from", "state")),
        list(Event.objects.order_by("pk").values_list("verb", "actor")),
        list(Delivery.objects.order_by("pk").values_list("user", "subject")),
    ]


# ---- tests of the table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "verb"), list(itertools.product(STATES, VERBS)))
def test_every_door_gives_the_same_answer_to_everybody(world: World, state: str, verb: str) -> None:
    bring(world, state)
    disagreements: dict[str, Any] = {}
    is_so_already = (state, verb) in (("active", "resume"), ("suspended", "suspend"))
    for name, who in world.people.items():
        before = rows()
        with undone():
            reference = by_action(verb, world, who)
            done, changed = outcome(), rows() != before
        is_to_change = reference == DONE and not is_so_already
        if (reference.code or "") != expected(verb, name, state) or changed is not is_to_change:
            disagreements[f"{name}: action"] = (reference, changed)
        for door, ask in DOORS.items():
            with undone():
                said = ask(verb, world, who)
                agrees = answers_agree(door, said, reference)
                if not agrees or (outcome() != done if said == DONE else rows() != before):
                    disagreements[f"{name}: {door}"] = said
    assert disagreements == {}


def test_nobody_gets_in_by_no_door(world: World) -> None:
    before = rows()
    for verb in VERBS:
        page, api, command = (DOORS[door](verb, world, None) for door in ("page", "API", "command"))
        assert (page.status, api.status, api.code) == (302, 401, "not_signed_in")
        assert command.sentence == "as: No user has the address 'nobody@example.org'."
    assert rows() == before


def test_the_table_has_every_outcome() -> None:
    """Without every outcome, the test above could pass without comparing anything."""
    cells = list(itertools.product(VERBS, PEOPLE, STATES))
    assert len(cells) == 96
    assert {expected(*cell) for cell in cells} == {"", "not_found", "not_allowed", "closed"}
    done = {(verb, who, state) for verb, who, state in cells if not expected(verb, who, state)}
    assert {who for _, who, _ in done} == {"owner", "operator"}
    assert {state for verb, _, state in done if verb == "resume"} == {"active", "suspended", "closing"}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"wanted": "paused"}, "unknown_state", "wanted"),
        ({"wanted": "closed", "grace_hours": 400}, "bad_grace", "grace_hours"),
        ({"wanted": "closed", "keep_days": 91}, "bad_keep", "keep_days"),
    ],
)
def test_what_is_wrong_is_told_by_every_door(world: World, body: dict[str, Any], code: str, field: str) -> None:
    before, client = rows(), visit(world.people["operator"])
    answer: Any = client.patch("/api/v1/teams/team-a/namespace", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field)
    message = answer.json()["message"]
    typed = {**body, "to": body["wanted"], "confirm": "team-a"}
    page = client.post("/teams/team-a/namespace", typed)
    assert page.status_code == 422
    assert message in html.unescape(page.content.decode())
    if code != "unknown_state":
        words = [f"--{field.replace('_', '-')}", str(body[field]), "--as", world.people["operator"].email]
        with pytest.raises(CommandError) as refused:
            call_command("quota", "close", "team-a", *words, stdout=io.StringIO())
        assert str(refused.value) == f"{field}: {message}"
    assert rows() == before


def test_what_is_so_already_is_200_and_a_change_202(world: World) -> None:
    client: Any = visit(world.people["operator"])
    answers = [
        client.patch("/api/v1/teams/team-a/namespace", json.dumps({"wanted": wanted}), content_type="application/json")
        for wanted in ("active", "suspended", "suspended", "active", "closed", "active")
    ]
    assert [answer.status_code for answer in answers] == [200, 202, 200, 202, 202, 202]
    assert [answer.json()["state"] for answer in answers][-2:] == ["closing", "active"]
