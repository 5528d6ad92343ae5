"""Makes Django's test client sign the session key in its cookie, which the portal requires; otherwise unchanged."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.test import Client

from portal.web.session_cookie import session_key_in, signed_cookie

_login = Client._login  # type: ignore[attr-defined]


def _session(client: Client) -> SessionBase:
    store = import_module(settings.SESSION_ENGINE).SessionStore
    if cookie := client.cookies.get(settings.SESSION_COOKIE_NAME):
        return store(session_key_in(cookie.value))  # type: ignore[no-any-return]
    session: SessionBase = store()
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = signed_cookie(str(session.session_key))
    return session


def _signed_in(client: Client, *args: Any, **kwargs: Any) -> None:
    _login(client, *args, **kwargs)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    signed = signed_cookie(cookie.value)
    cookie.set(cookie.key, signed, signed)


def sign_cookies() -> None:
    Client.session = property(_session)  # type: ignore[assignment,misc]
    Client._login = _signed_in  # type: ignore[attr-defined]
