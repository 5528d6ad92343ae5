"""Lets requests into web through the gate of this process, and says in words who has to come back later."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter

from portal.web.admission.gate import Gate
from portal.web.admission.kinds import Kind, kind_of
from portal.web.admission.refusal import later
from portal.web.client_address import client_address, network_of
from portal.web.session_cookie import session_key_in

REFUSED = Counter("portal_http_refused_total", "HTTP requests refused because web was busy.", ["kind", "status"])
# Probes tell Kubernetes about this process; a full one is not a broken one.
PROBES = ("/livez", "/readyz")


class AdmissionMiddleware:
    """Stands below the middleware that answers files, and above everything that reads the database."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.gate = Gate()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Doors (ASGI) have few threads of their own, and what runs in them is bounded there.
        if "wsgi.input" not in request.META or request.path_info in PROBES:
            return self.get_response(request)
        is_fragment = request.headers.get("HX-Request") == "true"
        kind = kind_of(request.path_info, request.method or "", is_fragment=is_fragment)
        caller = caller_of(request, kind)
        refusal = self.gate.enter(kind, caller)
        if refusal is not None:
            REFUSED.labels(kind, refusal.status).inc()
            return later(request, refusal)
        try:
            return self.get_response(request)
        finally:
            self.gate.leave(kind, caller)


def caller_of(request: HttpRequest, kind: Kind) -> str:
    """Who counts for this request, as far as that is known without the database: its session; else the token that it
    shows; else the network that it comes from. A cookie that is not ours is no session. A token is not verified here,
    and anybody can make up many: for what goes first it is no caller of its own.
    """
    if session := session_key_in(request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")):
        return session
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if kind not in (Kind.FIRST, Kind.SIGN_IN) and scheme.lower() == "bearer" and token.strip():
        return hashlib.sha256(token.strip().encode()).hexdigest()
    return network_of(client_address(request))
