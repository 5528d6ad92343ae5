"""The doors process authorizes every request to a notebook for the gateway. Bare ASGI edges."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs

from django.conf import settings
from django.http.cookie import parse_cookie
from django.urls import reverse

from portal.core.errors import Refused
from portal.live.broadcaster import Broadcaster
from portal.live.types import Scope, Send
from workloads.gateway import actions
from workloads.gateway.authorization import GatewayDenial, NotebookUpstream, authorise, cookies_in, origin_of

# A lost permission takes effect within 5 s; a decision is cached for less.
REMEMBER_S = 4.0
REMEMBER_LIMIT = 10_000
COOKIE = "__Host-notebook" if settings.HTTPS else "notebook"

Header = tuple[bytes, bytes]
NO_STORE: Header = (b"cache-control", b"no-store")


@dataclass(frozen=True)
class EdgeRequest:
    """The parts of a request that an edge reads. `host` is the browser's, as the gateway received it."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]

    @classmethod
    def of(cls, scope: Scope) -> EdgeRequest:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return cls(scope["path"], {name: values[-1] for name, values in query.items()}, headers)

    @property
    def host(self) -> str:
        return self.headers.get("x-forwarded-host") or self.headers.get("host", "")

    @property
    def wants_page(self) -> bool:
        """True for navigation by a person, which can be redirected; false for a script's call or a WebSocket."""
        method = self.headers.get("x-forwarded-method", "GET")
        return method == "GET" and "text/html" in self.headers.get("accept", "")

    def cookie(self, name: str) -> str:
        """Does not use the standard library's parser, which stops at the first invalid cookie."""
        return parse_cookie(self.headers.get("cookie", "")).get(name, "")

    def cookies(self, name: str) -> tuple[str, ...]:
        """Returns all cookies with this name: pages on neighboring hosts may have set some that this host never set."""
        parts = (part.partition("=") for part in self.headers.get("cookie", "").split(";"))
        return tuple(value.strip() for key, _, value in parts if key.strip() == name)


async def answer(send: Send, status: int, body: bytes = b"", headers: Iterable[Header] = ()) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [NO_STORE, length, *headers]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def answer_json(send: Send, status: int, body: dict[str, object], headers: Iterable[Header] = ()) -> None:
    kind = (b"content-type", b"application/json")
    await answer(send, status, json.dumps(body).encode(), [kind, *headers])


async def redirect(send: Send, to: str, status: int = 302, headers: Iterable[Header] = ()) -> None:
    await answer(send, status, b"", [(b"location", to.encode("latin-1")), *headers])


# ---- gateway ---------------------------------------------------------------------------------------------------------


class NotebookGateway:
    """Authorizes every request to a notebook for the gateway; caches an allowed request for a few seconds."""

    def __init__(self, live: Broadcaster) -> None:
        self._live = live
        self._remembered: dict[tuple[str, str], tuple[float, NotebookUpstream]] = {}

    async def authorize(self, asked: EdgeRequest, send: Send) -> None:
        origin = origin_of(asked.host)
        found = await self._ask(origin, cookies_in(asked.cookies(COOKIE)))
        if isinstance(found, NotebookUpstream):
            headers = [
                (b"x-notebook-upstream", found.upstream.encode()),
                (b"authorization", f"token {found.token}".encode()),
            ]
            return await answer(send, 200, b"", headers)
        if found is GatewayDenial.GONE or not origin:
            return await answer(send, 404, b"There is no notebook at this address.")
        if asked.wants_page:
            return await redirect(send, settings.PORTAL_URL + reverse("open", args=[origin]))
        if found is GatewayDenial.NOT_READY:
            return await answer(send, 503, b"This notebook is not ready.", [(b"retry-after", b"5")])
        return await answer(send, 401, b"Open this notebook from its page in the portal.")

    async def _ask(self, origin: str, cookies: tuple[str, ...]) -> NotebookUpstream | GatewayDenial:
        if not origin or not cookies:
            return GatewayDenial.SIGN_IN
        now = time.monotonic()
        for cookie in cookies:
            until, known = self._remembered.get((origin, cookie), (0.0, None))
            if known is not None and now < until:
                return known
        found = await self._live.in_thread(authorise, origin, cookies)
        if isinstance(found, NotebookUpstream):
            if len(self._remembered) >= REMEMBER_LIMIT:
                self._remembered.clear()
            self._remembered[origin, found.cookie] = (now + REMEMBER_S, found)
        else:
            for cookie in cookies:
                self._remembered.pop((origin, cookie), None)
        return found

    async def open(self, asked: EdgeRequest, send: Send) -> None:
        """Exchanges the one-time ticket for the cookie of the notebook's own origin; no other host ever gets this
        cookie.
        """
        origin = origin_of(asked.host)
        if not origin:
            return await answer(send, 404, b"There is no notebook at this address.")
        try:
            secret = await self._live.in_thread(_redeem, asked.query.get("ticket", ""), origin)
        except Refused:
            return await redirect(send, settings.PORTAL_URL + reverse("open", args=[origin]))
        secure = "; Secure" if settings.HTTPS else ""
        cookie = f"{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}"
        headers = [(b"set-cookie", cookie.encode()), (b"referrer-policy", b"no-referrer")]
        return await redirect(send, "/lab", 303, headers)


def _redeem(ticket: str, origin: str) -> str:
    return actions.redeem_ticket(ticket, origin=origin)
