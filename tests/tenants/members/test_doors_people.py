"""Verbs about people and namespaces, and filing a request: page, API and command answer as the action does.

Generated: every verb × every person × before and after the request was answered. The end checks that each outcome
occurs. Who may do what is tested by the table of tests/tenants/members/test_members.py.
"""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from portal.core.errors import Refusal, Refused, to_refusal
from tenants.core.forms import end_of_day
from tenants.lifecycle import actions as lifecycle_actions
from tenants.members import actions
from tenants.members.invitations import actions as invitation_actions
from tenants.models import Invitation, JoinRequest, Membership, Namespace, QuotaLine, QuotaRequest, Tenant
from tenants.requests import actions as request_actions
from tenants.requests.types import RequestedLine
from tests.support.http.visits import rows_of, signed_in_once, undone, visit
from tests.support.rows import make


@dataclass(frozen=True)
class World:
    """The rows that the verbs act on: Bob is a member, Fay asks to join, new@example.org is invited."""

    bob: int
    join: int
    invitation: int
    namespace: int
    gpu_class: str
    people: Mapping[str, User] = field(default_factory=dict)


@dataclass(frozen=True)
class Doors:
    """One verb through each interface; `api` and `page`: method, path, body; `command`: words."""

    action: Callable[[Actor], Any]
    page: tuple[str, dict[str, Any]]
    api: tuple[str, str, dict[str, Any]] | None = None
    command: tuple[str, ...] = ()


def verbs(world: World) -> dict[str, Doors]:
    team, api = "/teams/team-a", "/api/v1/teams/team-a"
    bob, join, invited = world.bob, world.join, world.invitation
    until = timezone.localdate() + timedelta(days=30)
    dates = {"from_date": timezone.localdate(), "until_date": until}
    wish = {"gpu_class": world.gpu_class, "units": 2, "ends_at": end_of_day(until).isoformat()}
    return {
        "add": Doors(
            lambda by: actions.add_member("team-a", email="gil@example.org", role="viewer", by=by),
            (f"{team}/members/add", {"email": "gil@example.org", "role": "viewer"}),
            ("POST", f"{api}/members", {"email": "gil@example.org", "role": "viewer"}),
        ),
        "add again": Doors(
            lambda by: actions.add_member("team-a", email="bob@example.org", role="viewer", by=by),
            (f"{team}/members/add", {"email": "bob@example.org", "role": "viewer"}),
            ("POST", f"{api}/members", {"email": "bob@example.org", "role": "viewer"}),
        ),
        "invite again": Doors(
            lambda by: actions.add_member("team-a", email="nobody@example.org", role="member", by=by),
            (f"{team}/members/add", {"email": "nobody@example.org", "role": "member"}),
            ("POST", f"{api}/members", {"email": "nobody@example.org", "role": "member"}),
        ),
        "make an owner": Doors(
            lambda by: actions.set_role("team-a", user_id=bob, role="owner", by=by),
            (f"{team}/members/{bob}/role", {"role": "owner"}),
            ("PATCH", f"{api}/members/{bob}", {"role": "owner"}),
        ),
        "remove": Doors(
            lambda by: actions.remove_member("team-a", user_id=bob, by=by),
            (f"{team}/members/{bob}/remove", {}),
            ("DELETE", f"{api}/members/{bob}", {}),
        ),
        "remove the last owner": Doors(
            lambda by: actions.remove_member("team-a", user_id=world.people["owner"].pk, by=by),
            (f"{team}/members/{world.people['owner'].pk}/remove", {}),
            ("DELETE", f"{api}/members/{world.people['owner'].pk}", {}),
        ),
        "revoke": Doors(
            lambda by: invitation_actions.revoke_invitation("team-a", invited, by=by),
            (f"{team}/invitations/{invited}/revoke", {}),
            ("DELETE", f"{api}/invitations/{invited}", {}),
        ),
        "let in": Doors(
            lambda by: invitation_actions.answer_join("team-a", join, accept=True, role="viewer", by=by),
            (f"{team}/joins/{join}", {"answer": "accept", "role": "viewer"}),
            ("POST", f"{api}/joins/{join}", {"accept": True, "role": "viewer"}),
        ),
        "say no": Doors(
            lambda by: invitation_actions.answer_join("team-a", join, accept=False, reason="We are full.", by=by),
            (f"{team}/joins/{join}", {"answer": "decline", "reason": "We are full."}),
            ("POST", f"{api}/joins/{join}", {"accept": False, "reason": "We are full."}),
        ),
        "ask to join": Doors(
            lambda by: invitation_actions.ask_to_join("team-a", message="Hello.", by=by),
            ("/start/join", {"team": "team-a", "message": "Hello."}),
            ("POST", "/api/v1/joins", {"team": "team-a", "message": "Hello."}),
        ),
        "withdraw the asking": Doors(
            lambda by: invitation_actions.withdraw_join(join, by=by),
            (f"/start/join/{join}/withdraw", {}),
            ("DELETE", f"/api/v1/joins/{join}", {}),
        ),
        "accept": Doors(
            lambda by: invitation_actions.accept_invitation(invited, by=by),
            (f"/start/invitations/{invited}", {"answer": "accept"}),
            ("POST", f"/api/v1/invitations/{invited}/accept", {}),
        ),
        "decline": Doors(
            lambda by: invitation_actions.decline_invitation(invited, by=by),
            (f"/start/invitations/{invited}", {"answer": "decline"}),
            ("POST", f"/api/v1/invitations/{invited}/decline", {}),
        ),
        "file": Doors(
            lambda by: request_actions.file_request(
                "team-a",
                lines=[RequestedLine(world.gpu_class, 2, timezone.now(), end_of_day(until))],
                justification="Training.",
                by=by,
            ),
            (f"{team}/requests/new", {f"units-{world.gpu_class}": 2, "justification": "Training.", **dates}),
            ("POST", "/api/v1/requests", {"team": "team-a", "justification": "Training.", "lines": [wish]}),
            ("file", "team-a", "--line", f"{world.gpu_class}=2", "--until", f"{until}", "--because", "Training."),
        ),
        "suspend": Doors(
            lambda by: lifecycle_actions.set_namespace_state(world.namespace, to="suspended", by=by),
            (f"{team}/namespace", {"to": "suspended"}),
            command=("suspend", "team-a"),
        ),
        "close": Doors(
            lambda by: lifecycle_actions.set_namespace_state(world.namespace, to="closed", by=by),
            (f"{team}/namespace", {"to": "closed", "confirm": "team-a"}),
            command=("close", "team-a"),
        ),
    }


@pytest.fixture
def world(
    team_a: Tenant, a100: GpuClass, alice: User, bob: User, charlie: User, dana: User, olga: User
) -> Iterator[World]:
    people = {
        "owner": alice,
        "manager": make.user("Mona"),
        "member": bob,
        "viewer": make.user("Vera"),
        "who asks to join": make.user("Fay"),
        "who is invited": make.user("New"),
        "approver": dana,
        "operator": olga,
        "stranger": charlie,
    }
    make.user("Gil")
    make.member(team_a, people["manager"], Membership.Role.MANAGER)
    make.member(team_a, people["viewer"], Membership.Role.VIEWER)
    join = invitation_actions.ask_to_join("team-a", message="", by=Actor(people["who asks to join"], "page"))
    until = timezone.now() + timedelta(days=9)
    row = Invitation.objects.create(tenant=team_a, email="new@example.org", role="viewer", expires_at=until)
    Invitation.objects.create(tenant=team_a, email="nobody@example.org", role="viewer", expires_at=until)
    with signed_in_once(people.values()):
        yield World(bob.pk, join.pk, row.pk, team_a.namespaces.get().pk, a100.slug, people)


def answer_all(world: World) -> None:
    """Everything pending is answered, a request for the class is filed, and the team is being closed."""
    alice = Actor(world.people["owner"], "page")
    verbs(world)["file"].action(alice)
    invitation_actions.answer_join("team-a", world.join, accept=False, reason="We are full.", by=alice)
    invitation_actions.revoke_invitation("team-a", world.invitation, by=alice)
    lifecycle_actions.set_namespace_state(world.namespace, to="closed", by=Actor(world.people["operator"], "page"))


def rows() -> str:
    return rows_of(Membership, Invitation, JoinRequest, QuotaRequest, QuotaLine, Namespace, Event, Delivery)


def outcome() -> list[Any]:
    return [
        list(Membership.objects.order_by("pk").values_list("user", "role")),
        list(Invitation.objects.order_by("pk").values_list("email", "role", "state")),
        list(JoinRequest.objects.order_by("pk").values_list("user", "state", "reason", "message")),
        list(QuotaLine.objects.order_by("pk").values_list("gpu_class", "kind", "asked_units", "state")),
        list(Namespace.objects.order_by("pk").values_list("wanted")),
        list(Event.objects.order_by("pk").values_list("verb", "actor")),
        list(Delivery.objects.order_by("pk").values_list("user", "subject")),
    ]


def by_action(verb: Doors, who: User) -> Refusal | None:
    try:
        verb.action(Actor(who, "page"))
    except (Refused, IntegrityError) as error:
        return to_refusal(error)
    return None


def by_page(verb: Doors, who: User, *, follow: bool) -> tuple[int, str]:
    """Returns status and text. `follow`: follow the redirect; some refusals are shown on the page it leads to."""
    path, body = verb.page
    answer = visit(who).post(path, body, follow=follow)
    return answer.status_code, " ".join(html.unescape(answer.content.decode()).split())


def by_api(verb: Doors, who: User) -> tuple[int, dict[str, Any]]:
    assert verb.api is not None
    method, path, body = verb.api
    answer: Any = visit(who).generic(method, path, json.dumps(body), content_type="application/json")
    return answer.status_code, answer.json() if answer.content else {}


def by_command(verb: Doors, who: User) -> str:
    try:
        call_command("quota", *verb.command, "--as", who.email, stdout=io.StringIO())
    except CommandError as error:
        return str(error)
    return ""


def disagreements(verb: Doors, who: User, reference: Refusal | None, done: list[Any]) -> dict[str, Any]:
    """Returns, by interface, each answer or effect that differs from the action's."""
    found: dict[str, Any] = {}
    before = rows()

    def look(door: str, said: object, *, agrees: bool) -> None:
        did_the_same = outcome() == done if reference is None else rows() == before
        if not agrees or not did_the_same:
            found[door] = (said, reference)

    with undone():
        status, text = by_page(verb, who, follow=reference is not None)
        if reference is None:
            agrees = status == 302
        else:
            # A 404 has a page of its own.
            agrees = status == 404 if reference.status == 404 else reference.message in text
        look("page", (status, text[:300]), agrees=agrees)
    if verb.api:
        with undone():
            status, body = by_api(verb, who)
            expected = (reference.status, reference.body()) if reference else None
            look("API", (status, body), agrees=(status, body) == expected if expected else 200 <= status < 300)
    if verb.command:
        with undone():
            sentence = by_command(verb, who)
            field = f"{reference.field}: " if reference and reference.field else ""
            look("command", sentence, agrees=sentence == (f"{field}{reference.message}" if reference else ""))
    return found


@pytest.mark.parametrize("is_answered", [False, True], ids=["waiting", "answered"])
def test_every_door_says_and_does_what_the_action_does(world: World, is_answered: bool) -> None:
    if is_answered:
        answer_all(world)
    wrong: dict[str, Any] = {}
    seen: set[str] = set()
    for verb, doors in verbs(world).items():
        for name, who in world.people.items():
            before = rows()
            with undone():
                reference = by_action(doors, who)
                done = outcome()
                if (rows() != before) is (reference is not None):
                    wrong[f"{name}: {verb}: action"] = reference
            seen.add(reference.code if reference else "")
            wrong |= {
                f"{name}: {verb}: {door}": told for door, told in disagreements(doors, who, reference, done).items()
            }
    assert wrong == {}
    common = {"", "not_found", "not_allowed", "already_member"}
    assert seen >= common | ({"already_decided", "closed"} if is_answered else {"last_owner", "already_invited"})


@pytest.mark.parametrize("name", ["owner", "member"])
def test_an_answer_that_cannot_be_read_is_told_where_nothing_waits(world: World, name: str) -> None:
    JoinRequest.objects.update(state="declined")
    answer = visit(world.people[name]).post(f"/teams/team-a/joins/{world.join}", {"answer": "maybe"})
    assert answer.status_code == 422
    assert "maybe is not one of the available choices" in answer.content.decode()
