"""The key of a session, as stored in the database, does not sign a user in."""

from __future__ import annotations

import pytest
from django.conf import LazySettings, settings
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.models import User
from portal.web.session_cookie import session_key_in, signed_cookie
from tests.support.rows import make
from workloads.gateway.stream_access import stream_caller

pytestmark = pytest.mark.django_db


def test_a_key_from_the_database_is_no_cookie(alice: User, client: Client) -> None:
    client.force_login(alice)
    key = Session.objects.get().session_key
    for cookie, status in ((client.cookies[settings.SESSION_COOKIE_NAME].value, 200), (key, 302), (f"{key}:x", 302)):
        asking = Client()
        asking.cookies[settings.SESSION_COOKIE_NAME] = cookie
        assert asking.get("/tokens").status_code == status, cookie


def test_signing_in_gives_a_cookie_that_no_row_has(alice: User, client: Client) -> None:
    answer = client.post("/login", {"username": alice.email, "password": make.PASSWORD})
    cookie = answer.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    key = Session.objects.get().session_key
    assert (session_key_in(cookie.value), cookie.value != key, len(cookie.value) > len(key) + 40) == (key, True, True)
    assert client.get("/tokens").status_code == 200
    assert client.post("/logout").cookies[settings.SESSION_COOKIE_NAME].value == ""


def test_doors_believe_no_bare_key_either(alice: User, client: Client) -> None:
    client.force_login(alice)
    key = Session.objects.get().session_key
    assert session_key_in(key) == session_key_in("") == session_key_in(f"{key}:") == ""
    assert stream_caller(session_key=session_key_in(key), bearer="") is None
    assert stream_caller(session_key=session_key_in(signed_cookie(key)), bearer="") is not None


def test_a_new_key_signs_nobody_out(alice: User, client: Client, settings: LazySettings) -> None:
    client.force_login(alice)
    before, session = client.cookies[settings.SESSION_COOKIE_NAME].value, Session.objects.get().session_key
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key for tests only", [settings.SECRET_KEY]
    assert stream_caller(session_key=session_key_in(before), bearer="") is not None
    # A second request with the former cookie, sent before the answer to the first one has come.
    other = Client()
    other.cookies[settings.SESSION_COOKIE_NAME] = before
    assert (client.get("/tokens").status_code, other.get("/tokens").status_code) == (200, 200)
    assert Session.objects.get().session_key == session
    renewed = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert renewed == signed_cookie(session) != before
    assert settings.SESSION_COOKIE_NAME not in client.get("/tokens").cookies, "once"

    settings.SECRET_KEY_FALLBACKS = []
    assert client.get("/tokens").status_code == 200
    other.cookies[settings.SESSION_COOKIE_NAME] = before
    assert other.get("/tokens").status_code == 302


def test_an_ended_session_gets_no_new_cookie(alice: User, client: Client, settings: LazySettings) -> None:
    client.force_login(alice)
    Session.objects.all().delete()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key for tests only", [settings.SECRET_KEY]
    assert client.get("/tokens").status_code == 302
    assert not Session.objects.exists()


def test_a_new_password_ends_sessions_also_without_the_key_in_their_hash(alice: User, client: Client) -> None:
    client.force_login(alice)
    alice.set_password("another long passphrase")
    alice.save()
    assert client.get("/tokens").status_code == 302
