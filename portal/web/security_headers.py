"""The headers of every response, from every process and also after errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from csp.utils import build_policy
from django.conf import settings
from django.http import HttpRequest, HttpResponse

Message = MutableMapping[str, Any]
Header = tuple[bytes, bytes]


def security_headers() -> dict[str, str]:
    headers = {
        # Sorted, because the library's order is random.
        "Content-Security-Policy": "; ".join(sorted(build_policy().split("; "))),
        "Cross-Origin-Opener-Policy": settings.SECURE_CROSS_ORIGIN_OPENER_POLICY,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": settings.SECURE_REFERRER_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": settings.X_FRAME_OPTIONS,
    }
    if settings.SECURE_HSTS_SECONDS:
        below = "; includeSubDomains" if settings.SECURE_HSTS_INCLUDE_SUBDOMAINS else ""
        headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}{below}"
    return headers


class SecurityHeadersMiddleware:
    """Must stand before middleware that may refuse a request: Django's own middleware adds no headers if an inner
    middleware raises. Headers that a view sets itself have priority.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.headers = security_headers()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # What is rendered for a person stays in no cache, of a proxy or of a browser that the next person uses. Static
        # files have a header of their own.
        response.headers.setdefault("Cache-Control", "no-store")
        for name, value in self.headers.items():
            response.headers.setdefault(name, value)
        return response


class SendWithHeaders:
    """`send` of an ASGI server for one request; adds the headers of every response. The app's own have priority."""

    # Slots save memory: each open stream has one instance.
    __slots__ = ("_carried", "_send", "has_begun", "transport")

    def __init__(self, send: Callable[[Message], Awaitable[None]], carried: tuple[Header, ...]) -> None:
        self._send, self._carried = send, carried
        self.has_begun = False
        # portal.live.backpressure reads the connection from this attribute.
        self.transport = getattr(getattr(send, "__self__", None), "transport", None)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            said = list(message.get("headers", ()))
            names = {name for name, _value in said}
            message = {**message, "headers": said + [one for one in self._carried if one[0] not in names]}
        await self._send(message)
