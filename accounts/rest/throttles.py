"""A limit of requests a minute for each token or session, counted in Redis over all processes. While Redis is
unavailable every request passes, and none waits for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.models import ApiToken
from portal.core import hints

if TYPE_CHECKING:
    # DRF's views import this module through the settings.
    from rest_framework.views import APIView


log = structlog.get_logger(__name__)
WINDOW_S = 60
# The doors process sets it when it dispatches a waiting call again. A client cannot set it: headers become HTTP_….
ALREADY_COUNTED = "portal.counted"
# The headers for the response. A client cannot set it either.
HEADERS = "portal.rate_limit"
# After a failure Redis is not called for this time: each attempt may cost the time-out of 1 s.
PAUSE_S = 5.0


class TokenThrottle(BaseThrottle):
    _away_until = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        if request.META.get(ALREADY_COUNTED):
            return True
        now = time.time()
        if now < TokenThrottle._away_until:
            return True
        try:
            count, most = _count(_who(request), int(now // WINDOW_S)), settings.API_REQUESTS_PER_MINUTE
            request.META[HEADERS] = {
                "RateLimit-Limit": str(most),
                "RateLimit-Remaining": str(max(0, most - count)),
                "RateLimit-Reset": str(math.ceil(self.wait())),
            }
            return count <= most
        except RedisError as error:
            TokenThrottle._away_until = now + PAUSE_S
            log.warning("throttle_away", error=type(error).__name__)
            return True

    def wait(self) -> float:
        return WINDOW_S - math.fmod(time.time(), WINDOW_S)


class RateLimitMiddleware:
    """Adds to the response of a counted request how many are left, and in how many seconds the count starts again."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        for name, text in request.META.get(HEADERS, {}).items():
            response[name] = text
        return response


def _count(who: str, minute: int) -> int:
    """Returns the number of requests in this minute over all processes, including this one. Raises RedisError."""
    key = f"throttle:{who}:{minute}"
    with hints.redis_connection().pipeline(transaction=False) as round_trip:
        round_trip.incr(key)
        round_trip.expire(key, 2 * WINDOW_S)
        return int(round_trip.execute()[0])


def _who(request: Request) -> str:
    if isinstance(request.auth, ApiToken):
        return f"token:{request.auth.pk}"
    return f"user:{getattr(request.user, 'pk', None)}"
