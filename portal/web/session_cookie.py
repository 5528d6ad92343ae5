"""The session cookie: the key of the session's row and a signature that is not stored in the database.

So the database, or a copy of it, contains nothing that can be used to sign in. While SECRET_KEY is replaced, cookies
with a signature of the key before are valid, and people get one with a new signature.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse


def _signer() -> Signer:
    return Signer(salt="portal.session_cookie")


def signed_cookie(key: str) -> str:
    return _signer().sign(key)


def session_key_in(cookie: str) -> str:
    """Returns the session key, or "" if the signature is wrong."""
    try:
        return _signer().unsign(cookie)
    except BadSignature:
        return ""


class SignedSessionMiddleware(SessionMiddleware):
    """Django's SessionMiddleware accepts an unsigned key; this one also checks the signature."""

    def process_request(self, request: HttpRequest) -> None:
        key = session_key_in(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
        request.session = self.SessionStore(key or None)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if settings.SECRET_KEY_FALLBACKS and _is_signed_by_former_key(request):
            request.session.modified = True  # sets the cookie again
        answered = super().process_response(request, response)
        morsel = answered.cookies.get(settings.SESSION_COOKIE_NAME)
        if morsel is not None and morsel.value:
            cookie = signed_cookie(morsel.value)
            morsel.set(morsel.key, cookie, cookie)
        return answered


def _is_signed_by_former_key(request: HttpRequest) -> bool:
    """False if the session has ended. Reads the session."""
    cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    key = session_key_in(cookie)
    return bool(key) and cookie != signed_cookie(key) and bool(list(request.session.keys()))
