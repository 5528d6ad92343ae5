"""A GET of any route changes no row of any table, and every answer has the security headers. Each is sent as the first
of owner, approver, operator and auditor who may see it. tests/matrix covers all roles, for the portal's own tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.api_tokens import queries
from accounts.core.actor import Actor
from accounts.models import ApiToken, Role, User
from catalog.models import GpuClass, Image
from tenants.models import Grant, Tenant
from tenants.requests import actions as tenants
from tenants.requests.types import RequestedLine
from tests.support.http.contract import query_of
from tests.support.http.routes import filled
from tests.support.http.visits import rows_of, signed_in_once, visit
from tests.support.rows import make, mirrored
from workloads.launch import actions as workloads
from workloads.launch.types import LaunchSpec

pytestmark = pytest.mark.django_db
KEPT_IN_ITS_PLACE = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
ONLY_OUR_OWN = ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'")
EVERYTHING = [model for model in apps.get_models() if model._meta.managed]


def missing_headers(answer: object) -> list[str]:
    found = answer.headers  # type: ignore[attr-defined]
    wrong = [name for name, value in KEPT_IN_ITS_PLACE.items() if found.get(name) != value]
    policy = found.get("Content-Security-Policy", "")
    wrong += [rule for rule in ONLY_OUR_OWN if rule not in policy.split("; ")]
    return wrong + ["unsafe" for word in ("unsafe", "*://", "http:") if word in policy.replace("http://*.", "")]


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """Includes the routes of the admin."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern).removeprefix("^").removesuffix("$")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        else:
            yield route


@pytest.fixture
def house(team_a: Tenant, a100: GpuClass, alice: User) -> dict[str, str]:
    """Objects for most addresses: a parameter's name → its values."""
    mirrored.hardware_seen(a100.cluster)
    Image.objects.create(name="JupyterLab", reference="quay.io/jupyter/scipy-notebook:2025-11-10", kind="notebook")
    make.grant(team_a, a100, units=4)
    by = Actor(user=alice, via="page")
    workloads.launch(team_a.slug, LaunchSpec("one", "notebook", a100.slug, 1, "JupyterLab", volume="one"), by=by)
    now = timezone.now()
    asked = RequestedLine(gpu_class=a100.slug, units=5, starts=now, ends=now + timedelta(days=30))
    filed = tenants.file_request(team_a.slug, lines=[asked], justification="A course.", by=by)
    token, _text = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=9, by=by)
    return {
        "tenant": team_a.slug,
        "name": "one",
        "slug": a100.slug,
        "namespace": team_a.namespaces.get().name,
        "prefix": token.prefix,
        "pk": str(filed.pk),
        "image_pk": str(Image.objects.get().pk),
        "grant_pk": str(Grant.objects.get().pk),
    }


def address(route: str, house: dict[str, str]) -> str:
    """The address of the house's row for the route; any other number finds nothing, and Django's admin then puts a
    message about it into the session: "" for those.
    """
    values = dict(house)
    if "images/<" in route:
        values["pk"] = house["image_pk"]
    if "grants/<" in route:
        values["pk"] = house["grant_pk"]
    _admin, app, model, *rest = [*route.split("/"), "", "", ""]
    if rest[0] == "<path:object_id>" and app != "r":
        row = apps.get_model(app, model)._default_manager.first()
        if row is None:
            return ""
        values["object_id"] = str(row.pk)
    path = filled(route, values)
    return path + query_of("GET", route, team=house["tenant"])


def people(alice: User, dana: User, olga: User) -> dict[str, User]:
    auditor = make.user("Ada", roles=[Role.AUDITOR])
    return {"owner": alice, "approver": dana, "operator": olga, "auditor": auditor}


def test_reading_changes_nothing(house: dict[str, str], alice: User, dana: User, olga: User) -> None:
    """Not in the URL map: the URL that opens a notebook spends its one-time ticket, on the notebook's own host."""
    paths = sorted({address(route, house) for route in routes(get_resolver().url_patterns)} - {""})
    changed, shown, bare = [], 0, {}
    cast = people(alice, dana, olga)
    with signed_in_once(cast.values()):
        before = rows_of(*EVERYTHING)
        for path in paths:
            for who, person in cast.items():
                client = visit(person)
                client.raise_request_exception = False
                answer = client.get(path)
                assert answer.status_code < 500, f"{who} {path}"
                shown += answer.status_code == 200
                if missing := missing_headers(answer):
                    bare[path] = missing
                if (after := rows_of(*EVERYTHING)) != before:
                    changed.append(f"{who} {path}")
                    before = after
                if answer.status_code == 200:
                    break
    assert changed == []
    assert bare == {}
    assert shown > 80, "the sweep looks at too few pages"


def test_a_token_knows_when_it_was_used_last_and_nothing_else_is_written(client: Client, alice: User) -> None:
    """The last use of a token is the one exception, once a minute."""
    token, text = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=9, by=Actor(alice, "page"))
    before = json.loads(rows_of(*EVERYTHING))

    assert client.get("/api/v1/me", headers={"authorization": f"Bearer {text}"}).status_code == 200

    place = EVERYTHING.index(ApiToken)
    after = json.loads(rows_of(*EVERYTHING))
    assert after[place][0].pop("last_used_at") is not None
    assert before[place][0].pop("last_used_at") is None
    assert after == before
    assert ApiToken.objects.get().prefix == token.prefix


# ---- headers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "method", "path", "more"),
    [
        (200, "GET", "/static/portal/portal.js", {}),
        (304, "GET", "/static/portal/portal.js", {"If-Modified-Since": "Fri, 01 Jan 2038 00:00:00 GMT"}),
        (302, "GET", "/", {}),
        (400, "GET", "/login", {"Host": "elsewhere.test"}),
        (400, "GET", "/livez", {"Host": "not a host"}),
        (401, "GET", "/api/v1/me", {}),
        (403, "GET", "/login", {"Sec-Fetch-Site": "cross-site"}),
        (403, "POST", "/login", {}),
        (404, "GET", "/no-such-page", {}),
        (404, "GET", "/static/no-such-file", {}),
        (404, "GET", "/api/v1/nothing", {}),
        (405, "POST", "/livez", {}),
        (413, "POST", "/api/v1/tokens", {}),
    ],
)
def test_errors_and_files_carry_them_too(
    settings: Any, alice: User, status: int, method: str, path: str, more: dict[str, str]
) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    client = Client(enforce_csrf_checks=status == 403)
    body = ""
    if status == 413:
        make.second_factor(alice)
        _token, text = api_token_actions.create_token(
            name="ci", scopes=["admin"], expires_in_days=9, by=Actor(alice, "page")
        )
        body, more = f'{{"name": "{"x" * (1 << 20)}"}}', {"Authorization": f"Bearer {text}"}
    kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
    if host := more.get("Host"):
        answer = client.generic(method, path, body, content_type=kind, HTTP_HOST=host)
    else:
        answer = client.generic(method, path, body, content_type=kind, headers=more)
    assert answer.status_code == status
    assert missing_headers(answer) == []


@pytest.mark.parametrize("path", ["/tokens", "/api/v1/tokens"])
def test_a_mistake_of_ours_carries_them_too(alice: User, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(queries, "tokens_of", lambda _user: 1 / 0)
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    answer = client.get(path)
    assert answer.status_code == 500
    assert missing_headers(answer) == []


def test_the_picture_for_other_peoples_pages_may_be_loaded_there(client: Client) -> None:
    answer = client.get("/static/portal/launch.svg", headers={"sec-fetch-site": "cross-site"})
    assert (answer.status_code, missing_headers(answer)) == (200, ["Cross-Origin-Resource-Policy"])


# ---- messages ----------------------------------------------------------------------------------------------------


def test_messages_are_kept_in_the_session_alone(alice: User) -> None:
    """They quote names of the team's work, and a cookie could be set by a page beside ours."""
    client = Client()
    client.force_login(alice)
    token, _text = api_token_actions.create_token(
        name="ci", scopes=["read"], expires_in_days=9, by=Actor(alice, "page")
    )

    answer = client.post(f"/tokens/{token.prefix}/revoke")
    forged = json.dumps([["__json_message", 0, 25, "forged", ""]])
    client.cookies["messages"] = forged

    assert set(answer.cookies) <= {settings.SESSION_COOKIE_NAME}
    page = client.get("/tokens").content.decode()
    assert "The token ci was revoked" in page
    assert "forged" not in page
    assert "The token ci was revoked" not in client.get("/tokens").content.decode()


def test_a_page_without_a_message_costs_nothing_for_them(alice: User) -> None:
    """The session is loaded to find its user; it is written only when a message is added or shown."""
    client = Client()
    client.force_login(alice)
    client.get("/tokens")
    with CaptureQueriesContext(connection) as asked:
        client.get("/tokens")
    sessions = [one["sql"] for one in asked.captured_queries if Session._meta.db_table in one["sql"]]
    assert [sql.split()[0] for sql in sessions] == ["SELECT"]
    with CaptureQueriesContext(connection) as asked:
        Client().get("/login")
    assert not [one for one in asked.captured_queries if Session._meta.db_table in one["sql"]]
