"""`?wait=`: a call that responds when something has happened. Only the doors process waits."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest.strict.query import integer_parameter
from portal.core.errors import refuse

WAIT_LIMIT_S = 300
RETRY_AFTER_S = 5
# Set by the doors process, which waits itself.
WAITED = "portal.waited"


def wait_parameter(what: str) -> OpenApiParameter:
    return integer_parameter("wait", 0, WAIT_LIMIT_S, f"Respond when {what}, after at most this many seconds.")


def wants_to_wait(request: Request) -> bool:
    """Raises Refused: bad_wait (422)."""
    asked = request.query_params.get("wait")
    if asked is None:
        return False
    if not (asked.isascii() and asked.isdigit() and len(asked) < 5 and int(asked) <= WAIT_LIMIT_S):
        raise refuse("bad_wait", f"wait must be a whole number of seconds from 0 to {WAIT_LIMIT_S}.", field="wait")
    return True


def with_retry_after(request: Request, response: Response, *, waits: bool) -> Response:
    """Sets Retry-After when the call did not reach the process that can wait."""
    if waits and WAITED not in request.META:
        response["Retry-After"] = str(RETRY_AFTER_S)
    return response
