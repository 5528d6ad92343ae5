"""Registry prefixes below which a team may use its own images: who may set them, and who sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Event, Scope, User
from portal.core.errors import Refused
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.class_access.image_prefixes import policy as image_prefixe_policy
from tenants.models import ImagePrefix, Tenant
from tests.support.http.callers import caller

PREFIXES = "/api/v1/teams/team-a/image-prefixes"
VISION = "registry.example.org/vision/"
needs_rows = pytest.mark.django_db


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def sent(client: Client, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = client.generic(method, path, json.dumps(body or {}), content_type="application/json")
    return answer.status_code, answer.json() if answer.content else None


# ---- valid prefixes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "prefixes", "code", "words"),
    [
        ("registry.example.org/vision/train:1", [VISION], None, ""),
        (
            "registry.example.org/other/train:1",
            [VISION],
            "image_not_allowed",
            "does not match an allowed prefix of your team. Allowed prefixes: registry.example.org/vision/. "
            "Choose an image from the catalog, or ask an operator to allow its prefix.",
        ),
        ("registry.example.org/other/train:1", [], "image_not_allowed", "Your team has no allowed prefixes."),
        ("registry.example.org/vision/../other/train", [VISION], "unknown_image", "'..' is not possible. Allowed"),
        ("ghcr.io/a/b", [f"ghcr.io/team-{n}/" for n in range(7)], "image_not_allowed", "team-4/ and 2 more."),
    ],
)
def test_what_may_be_used(image: str, prefixes: list[str], code: str | None, words: str) -> None:
    found = image_prefixe_policy.may_use_image(image, prefixes)
    assert (found.code, found.field) == (code, "image") if found else code is None
    assert words in (found.message if found else "")


# ---- actions ---------------------------------------------------------------------------------------------------------


@needs_rows
def test_operators_allow_and_take_away_with_one_event_each(team_a: Tenant, olga: User) -> None:
    row, is_new = image_prefixe_actions.allow_prefix("team-a", "registry.example.org/vision", by=page(olga))
    assert (row.prefix, is_new, row.allowed_by) == (VISION, True, olga)
    again, is_new = image_prefixe_actions.allow_prefix("team-a", VISION, by=page(olga))
    assert (again.pk, is_new) == (row.pk, False)
    image_prefixe_actions.disallow_prefix("team-a", row.pk, by=page(olga))
    assert not ImagePrefix.objects.exists()
    events = Event.objects.filter(verb__startswith="prefix.").order_by("id")
    assert [(one.verb, one.tenant, one.name, one.before, one.after) for one in events] == [
        ("prefix.allowed", "team-a", VISION, {}, {"prefix": VISION}),
        ("prefix.ended", "team-a", VISION, {"prefix": VISION}, {}),
    ]


@needs_rows
def test_nobody_else_does(team_a: Tenant, olga: User, alice: User, dana: User, charlie: User) -> None:
    row, _ = image_prefixe_actions.allow_prefix("team-a", VISION, by=page(olga))
    for user, code in ((alice, "not_allowed"), (dana, "not_allowed"), (charlie, "not_found")):
        with pytest.raises(Refused) as allowed:
            image_prefixe_actions.allow_prefix("team-a", "ghcr.io/a/", by=page(user))
        with pytest.raises(Refused) as ended:
            image_prefixe_actions.disallow_prefix("team-a", row.pk, by=page(user))
        assert (allowed.value.code, ended.value.code) == (code, code)
    assert ImagePrefix.objects.get().prefix == VISION


@needs_rows
def test_a_team_has_so_many(team_a: Tenant, olga: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_prefixe_policy, "PREFIXES_LIMIT", 1)
    image_prefixe_actions.allow_prefix("team-a", VISION, by=page(olga))
    image_prefixe_actions.allow_prefix("team-a", VISION, by=page(olga))
    with pytest.raises(Refused, match="has 1 prefixes; the limit is 1"):
        image_prefixe_actions.allow_prefix("team-a", "ghcr.io/a/", by=page(olga))


# ---- API -------------------------------------------------------------------------------------------------------------


@needs_rows
def test_the_api_allows_lists_in_pages_and_takes_away(
    team_a: Tenant, olga: User, alice: User, django_assert_num_queries: Any
) -> None:
    staff, team = caller(olga, Scope.READ, Scope.ADMIN), caller(alice, Scope.READ, Scope.ADMIN)
    status, made = sent(staff, "POST", PREFIXES, {"prefix": "registry.example.org/vision"})
    assert (status, made["prefix"], made["by"]) == (201, VISION, "Olga")
    assert sent(staff, "POST", PREFIXES, {"prefix": VISION})[0] == 200
    assert sent(staff, "POST", PREFIXES, {"prefix": "ghcr.io/a"})[0] == 201

    status, first = sent(team, "GET", f"{PREFIXES}?limit=1")
    assert (status, [one["prefix"] for one in first["items"]]) == (200, ["ghcr.io/a/"])
    status, second = sent(team, "GET", first["next"])
    assert ([one["prefix"] for one in second["items"]], second["next"]) == ([VISION], None)
    team.get(PREFIXES)
    with django_assert_num_queries(3):
        team.get(PREFIXES)

    bad = sent(staff, "POST", PREFIXES, {"prefix": "Registry.example.org/vision"})
    assert (bad[0], bad[1]["code"], bad[1]["field"]) == (422, "bad_prefix", "prefix")
    assert sent(staff, "POST", PREFIXES, {"prefix": VISION, "x": 1})[1]["code"] == "unknown_field"
    one = f"{PREFIXES}/{made['id']}"
    assert sent(team, "POST", PREFIXES, {"prefix": "ghcr.io/b"})[0] == 403
    assert sent(team, "DELETE", one)[0] == 403
    assert sent(staff, "DELETE", one) == (204, None)
    assert sent(staff, "DELETE", one)[0] == 404


@needs_rows
def test_a_stranger_is_told_nothing(team_a: Tenant, olga: User, charlie: User) -> None:
    row, _ = image_prefixe_actions.allow_prefix("team-a", VISION, by=page(olga))
    stranger = caller(charlie, *Scope)
    for method, path in (("GET", PREFIXES), ("POST", PREFIXES), ("DELETE", f"{PREFIXES}/{row.pk}")):
        assert sent(stranger, method, path, {"prefix": 7})[0] == 404
