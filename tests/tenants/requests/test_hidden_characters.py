"""Texts for approvers and in mails: characters that change what a reader sees are refused, and shown where stored."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.events import actions as event_actions
from accounts.events.reconcile import message_for
from accounts.models import Delivery, Role, User
from catalog.models import GpuClass
from portal.core.plain_text import REPLACEMENT, hidden_refusal, visible, visible_html
from portal.live.sse import server_sent_event
from tenants.models import QuotaRequest, Tenant
from tenants.onboarding.bundles import actions as bundle_actions
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.http.callers import caller, send

pytestmark = pytest.mark.django_db
HIDDEN = ["\u202e", "\u2066", "\u200f", "\x1b", "\x07", "\x9b", "\u2028", "\U000e0041"]
# These had a code of their own before.
OF_NAMES = ("/api/v1/people", "/api/v1/tokens")
LATER = (timezone.now() + timedelta(days=30)).isoformat()


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> QuotaRequest:
    line = RequestedLine(a100.slug, 2, timezone.now(), timezone.now() + timedelta(days=30))
    return actions.file_request("team-a", lines=[line], justification="Two trainings.", by=Actor(alice, "page"))


@pytest.mark.parametrize("hidden", HIDDEN, ids=lambda one: f"U+{ord(one):04X}")
def test_a_justification_with_one_is_refused_by_its_name(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User, hidden: str
) -> None:
    text = f"Two {hidden}trainings."
    line = {"gpu_class": a100.slug, "units": 2, "ends_at": LATER}
    body = {"team": "team-a", "justification": text, "lines": [line]}
    refused = send(caller(alice), "POST", "/api/v1/requests", body).json()
    assert (refused["code"], refused["field"]) == ("hidden_character", "justification")
    assert f"U+{ord(hidden):04X}" in refused["message"]
    allowed = send(caller(alice), "POST", "/api/v1/requests", body | {"justification": "Two\ntrainings:\tعربي é 👩‍👧"})
    assert allowed.status_code == 201, allowed.json()


@pytest.mark.parametrize(
    ("who", "method", "path", "body", "field"),
    [
        ("alice", "POST", "/api/v1/requests/{pk}/comments", {"text": "BAD"}, "text"),
        ("dana", "POST", "/api/v1/requests/{pk}/decide", {"lines": [{"id": 0, "approve": False, "reason": "BAD"}]},
         "lines[0].reason"),
        ("charlie", "POST", "/api/v1/joins", {"team": "team-a", "message": "BAD"}, "message"),
        ("charlie", "POST", "/api/v1/team-requests",
         {"name": "BAD", "slug": "new", "purpose": "To see.", "bundle": "Small"}, "name"),
        ("charlie", "POST", "/api/v1/team-requests",
         {"name": "New", "slug": "new", "purpose": "BAD", "bundle": "Small"}, "purpose"),
        ("olga", "PATCH", "/api/v1/teams/team-a/namespace", {"wanted": "suspended", "because": "BAD"}, "because"),
        ("olga", "PATCH", "/api/v1/people/{bob}", {"suspended": True, "because": "BAD"}, "because"),
        ("olga", "POST", "/api/v1/people", {"email": "new@example.org", "name": "BAD"}, "name"),
        ("alice", "POST", "/api/v1/tokens", {"name": "BAD", "scopes": ["read"], "expires_in_days": 1}, "name"),
        ("olga", "PUT", "/api/v1/cluster/banner", {"text": "BAD", "until": None}, "text"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_so_is_every_text_that_other_people_read(
    request: pytest.FixtureRequest,
    filed: QuotaRequest,
    a100: GpuClass,
    bob: User,
    who: str,
    method: str,
    path: str,
    body: dict[str, Any],
    field: str,
) -> None:
    user: User = request.getfixturevalue(who)
    User.objects.filter(email="olga@example.org").update(roles=[Role.OPERATOR, Role.ADMIN])
    bundle_actions.put_bundle(name="Small", lines=[(a100.slug, 1)], by=system_actor("test"))
    line = filed.lines.get().pk
    sent = json.loads(json.dumps(body).replace("BAD", "Ab\\u202ec").replace('"id": 0', f'"id": {line}'))
    answer = send(caller(user), method, path.format(pk=filed.pk, bob=bob.pk), sent)
    found = answer.json()
    assert (answer.status_code, found["code"], found["field"]) == (
        422,
        "bad_name" if path in OF_NAMES else "hidden_character",
        field,
    )
    assert "right-to-left override" in found["message"]


def test_what_is_stored_is_shown_with_a_sign_in_its_place(filed: QuotaRequest, alice: User, dana: User) -> None:
    QuotaRequest.objects.filter(pk=filed.pk).update(justification="Only \u202e2 units\u202c \x1b[2K")
    User.objects.filter(pk=alice.pk).update(name="Al\u2066ice")
    client = Client()
    client.force_login(dana)
    for path in ("/inbox", f"/requests/{filed.pk}"):
        text = client.get(path).text
        assert not {"\u202e", "\u202c", "\u2066", "\x1b"} & set(text), path
        assert f"Al{REPLACEMENT}ice" in text
    answer = client.get(f"/requests/{filed.pk}")
    assert f"Only {REPLACEMENT}2 units" in answer.text
    assert int(answer.headers.get("Content-Length", len(answer.content))) == len(answer.content)


def test_mails_have_none(alice: User, dana: User) -> None:
    User.objects.filter(pk=alice.pk).update(name="Al\u202eice")
    with transaction.atomic():
        event = event_actions.record(Actor(alice, "page"), "a.b", alice)
        event_actions.deliver(event, [dana], subject="By Al\u202eice", body="One\n\u2066two\tthree")
    message = message_for(Delivery.objects.get())
    assert message.subject == f"By Al{REPLACEMENT}ice"
    assert message.body.startswith(f"One\n{REPLACEMENT}two\tthree")


def test_live_fragments_have_none() -> None:
    assert "\u202e".encode() not in server_sent_event("state", "<p>a\u202eb</p>".encode())


def test_pages_and_texts_agree_about_which_characters_these_are() -> None:
    for code in (*range(0x300), *range(0x600, 0x620), *range(0x2000, 0x2100), *range(0xFFF0, 0xFFFE)):
        char = chr(code)
        is_hidden = visible(char) != char
        assert is_hidden == (visible_html(char.encode()) != char.encode()), f"U+{code:04X}"
        assert is_hidden == (hidden_refusal("text", char) is not None)
