"""A visitor without an account gets in nowhere, and a stranger to a team gets 404: for every route of the URL map."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.conf import settings
from django.shortcuts import resolve_url
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.http.contract import query_of
from tests.support.http.routes import all_routes, filled
from tests.support.rows import make, running

# Pages that anybody may open without an account, and why.
OPEN_TO_ALL = {
    "login": "the way in",
    "password-code": "the way to a password, with a code",
    "oidc-begin": "the way in by an issuer, not there without one",
    "oidc-back": "believes who began to sign in and brings what the issuer says, nobody else",
    "livez": "a load balancer asks",
    "readyz": "a load balancer asks",
    "logout": "ends the session of who asks, if there is one",
    "session": "says whether the browser of who asks has a session, and whose",
    "theme": "a cookie in the browser of who asks",
    "api-docs": "describes the API, holds no data",
    "api-section": "describes the API, holds no data",
    "help": "describes the pages, holds no data",
    "api-schema": "describes the API, holds no data",
}
FORM = "application/x-www-form-urlencoded"
METHODS = ("GET", "POST", "PUT", "DELETE")


@pytest.mark.django_db
def test_nobody_gets_in_without_signing_in(team_a: Tenant) -> None:
    """Pages redirect to the login page, the API answers 401; before they look at the method, the path or the body."""
    values = {"tenant": "team-a", "slug": "team-a", "name": "one"}
    login = resolve_url(settings.LOGIN_URL)
    let_in, checked = {}, 0
    for route, pattern in all_routes():
        if pattern.name in OPEN_TO_ALL or route.startswith("static"):
            continue
        for method in METHODS:
            response = Client().generic(method, filled(route, values))
            sent_to = response.headers.get("Location", "").partition("?")[0]
            checked += 1
            if response.status_code != 401 and (response.status_code, sent_to) != (302, login):
                let_in[f"{method} {route}"] = (response.status_code, sent_to)
    assert let_in == {}
    assert checked > 100


@pytest.mark.django_db
def test_a_stranger_gets_404_for_everything_of_a_tenant(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User, charlie: User
) -> None:
    """Walks the URL map: every route to an object of a team answers a signed-in stranger as if it did not exist."""
    make.tenant(namespace_a.cluster, slug="team-c", namespace=f"{namespace_a.name}-c")
    make.member(Tenant.objects.get(slug="team-c"), charlie)
    running.workload(namespace_a, a100, name="one", by=alice)
    line = RequestedLine(a100.slug, 1, timezone.now(), timezone.now() + timedelta(days=9))
    filed = actions.file_request("team-a", lines=[line], justification="x", by=Actor(alice, "page"))
    as_json = json.dumps({"lines": [{"id": filed.lines.get().pk, "approve": False, "reason": "No."}]})
    client = Client()
    client.force_login(charlie)
    events = Event.objects.count()
    seen, reached = {}, set()
    for route, _pattern in all_routes():
        named = ("tenant>", "requests/<", "workloads/<", "volumes/<")
        if not any(part in route for part in named):
            continue
        values = {"tenant": "team-a", "name": "one", "pk": str(filed.pk if "requests/<" in route else bob.pk)}
        for method in METHODS:
            path = filled(route, values)
            if route.startswith("api/"):
                path += query_of(method, route, team="team-a")
                status = client.generic(method, path, as_json, content_type="application/json").status_code
            else:
                status = client.generic(method, path, "confirm=one", content_type=FORM).status_code
            if status == 404:
                reached.add(route)
            elif status != 405:
                seen[f"{method} {route}"] = status
        if route not in reached:
            seen[route] = 405
    assert seen == {}
    assert len(reached) >= 20
    assert Event.objects.count() == events
