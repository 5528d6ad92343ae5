"""Refuses requests that a browser makes for pages of other origins, except links that the user follows.

Notebooks run untrusted code, and a browser treats them as the same site as the portal: it sends SameSite cookies with
the requests of their pages. Sec-Fetch-Site and Origin state where a request comes from, and no page can forge them. A
program that is not a browser sends neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse

from portal.core.errors import Refusal
from portal.web.refusals import early_refusal

OTHER_ORIGIN = Refusal(
    "other_origin", "Request from another site refused. Open the page in the portal itself.", status=403
)
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Pages of other sites embed the image of launch buttons. It is the same for all users.
FOR_OTHER_PAGES = frozenset({"/static/portal/launch.svg"})


class FetchMetadataMiddleware:
    """Must stand before all middleware that reads cookies. Applies to static files, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path in FOR_OTHER_PAGES:
            public = self.get_response(request)
            public["Cross-Origin-Resource-Policy"] = "cross-origin"  # see security_headers.py for all others
            return public
        own_origin = f"{request.scheme}://{request.get_host()}"
        if is_cross_origin(request.method or "", request.headers, own_origin=own_origin):
            return early_refusal(request, OTHER_ORIGIN)
        return self.get_response(request)


def is_cross_origin(method: str, headers: Mapping[str, str], *, own_origin: str) -> bool:
    """False for a link that opens as a top-level page, whatever site it is on. Pure."""
    origin = headers.get("Origin", "")
    if method not in SAFE_METHODS and origin and origin != own_origin:
        return True
    if headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return False
    is_tab = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    return not (is_tab and method == "GET")
