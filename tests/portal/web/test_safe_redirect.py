"""`next` leads to the portal's own address only, whatever other names this process answers to."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from portal.web.safe_redirect import safe_redirect_target
from tests.support.rows import make

pytestmark = pytest.mark.django_db

OURS = ["/tokens", "/teams/a?tab=quota#x", "https://portal.test:8443/tokens"]
ELSEWHERE = [
    "//evil.test",
    "///evil.test",
    "https:evil.test",
    "https:///evil.test",
    "https://evil.test/",
    "\\\\evil.test",
    "/\\evil.test",
    "\t//evil.test",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://also.test/tokens",  # in ALLOWED_HOSTS
    "https://testserver/tokens",  # the host that was asked
    "https://portal.test/tokens",  # another port
    "https://portal.test:8444/tokens",
    "http://portal.test:8443/tokens",  # in plain
    "https://alice@portal.test:8443/tokens",
    "https://portal.test:8443@evil.test/",
    "https://portal.test:8443.evil.test/",
    "https://n1.portal.test:8443/lab",
]


@pytest.fixture(autouse=True)
def known_by_two_names(settings: Any) -> None:
    settings.PORTAL_URL, settings.HTTPS = "https://portal.test:8443", True
    settings.ALLOWED_HOSTS = ["portal.test", "also.test", "testserver"]


@pytest.mark.parametrize("wanted", OURS)
def test_an_address_of_ours_is_followed(client: Client, alice: User, wanted: str) -> None:
    typed = {"username": alice.email, "password": make.PASSWORD, "next": wanted}
    assert client.post("/theme", {"next": wanted}, secure=True)["Location"] == wanted
    assert client.post("/login", typed, secure=True)["Location"] == wanted


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_no_other_is(client: Client, alice: User, wanted: str) -> None:
    typed = {"username": alice.email, "password": make.PASSWORD, "next": wanted}
    admin = client.get("/admin/login/", {"next": wanted}, secure=True)
    assert admin["Location"] == "/login?next=/admin/"
    for host in ("testserver", "portal.test:8443", "also.test"):
        at_host = {"secure": True, "headers": {"host": host}}
        assert client.post("/theme", {"next": wanted}, **at_host)["Location"] == "/"
        signed_in = client.post("/login", typed, **at_host)
        assert (signed_in.status_code, signed_in["Location"]) == (302, "/")
        # Who is signed in already is sent on by a GET.
        assert client.get("/login", {"next": wanted}, **at_host)["Location"] == "/"
        client.logout()


@pytest.mark.parametrize("wanted", [None, "", " "])
def test_without_one_there_is_another_way(wanted: str | None) -> None:
    assert safe_redirect_target(wanted, otherwise="/start") == "/start"
