"""Cross-origin requests of a browser: only a link followed into its own tab gets through."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import ApiToken, Event, User
from portal.web.fetch_metadata import OTHER_ORIGIN

NOTEBOOK = "http://n1.notebooks.testserver"
TAB = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def alices(alice: User) -> Client:
    """As lenient about forms as can be: what is refused here is refused for where it came from."""
    client = Client()
    client.force_login(alice)
    return client


def assert_other_origin(answer: Any, path: str) -> None:
    """A code for programs, a sentence for people."""
    assert answer.status_code == 403
    if path.startswith("/api/"):
        assert answer.json()["code"] == OTHER_ORIGIN.code
    else:
        assert (answer["Content-Type"], answer.content.decode()) == ("text/plain; charset=utf-8", OTHER_ORIGIN.message)


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
@pytest.mark.parametrize(
    ("mode", "dest"),
    [
        ("cors", "empty"),
        ("no-cors", "image"),
        ("no-cors", "script"),
        ("navigate", "iframe"),
        ("navigate", "object"),
        ("websocket", "websocket"),
    ],
)
def test_what_another_page_loads_is_refused(alices: Client, site: str, mode: str, dest: str) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    for path in ("/tokens", "/api/v1/me", "/static/portal/portal.js"):
        answer = alices.get(path, headers=headers)
        assert_other_origin(answer, path)
        assert "Alice" not in answer.content.decode()


@pytest.mark.parametrize("site", ["same-site", "cross-site", "none", "same-origin"])
def test_a_link_leads_in_from_everywhere(alices: Client, site: str) -> None:
    assert alices.get("/tokens", headers={"sec-fetch-site": site, **TAB}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-site", **TAB},
        {"origin": NOTEBOOK},
        {"origin": "null"},
        {"origin": "http://testserver.evil.test", "sec-fetch-site": "none", **TAB},
        {"origin": "https://testserver"},
    ],
)
def test_a_form_of_another_page_changes_nothing(alices: Client, headers: dict[str, str]) -> None:
    events = Event.objects.count()
    typed = {"name": "ci", "scopes": ["read"], "expires_in_days": "90"}
    for path, body in (("/tokens", typed), ("/logout", {}), ("/theme", {"theme": "dark"})):
        answer = alices.post(path, body, headers=headers)
        assert_other_origin(answer, path)
        assert not answer.cookies
    assert not ApiToken.objects.exists()
    assert Event.objects.count() == events
    assert alices.get("/tokens").status_code == 200


@pytest.mark.parametrize("headers", [{}, {"origin": "http://testserver", "sec-fetch-site": "same-origin", **TAB}])
def test_a_form_of_ours_and_a_program_get_through(alices: Client, headers: dict[str, str]) -> None:
    typed = {"name": "ci", "scopes": ["read"], "expires_in_days": "90"}
    assert alices.post("/tokens", typed, headers=headers).status_code == 200
    assert ApiToken.objects.count() == 1


def test_no_answer_may_be_loaded_into_another_page(alices: Client) -> None:
    for path in ("/tokens", "/api/v1/me", "/static/portal/portal.js", "/nothing-here", "/livez"):
        assert alices.get(path)["Cross-Origin-Resource-Policy"] == "same-origin"
