"""So many requests a minute for each token (or session), counted in Redis. Redis away: all pass, nobody waits."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.models import ApiToken
from portal import hints

if TYPE_CHECKING:
    # DRF's views import this module through the settings.
    from rest_framework.views import APIView


log = structlog.get_logger(__name__)
WINDOW_S = 60
# Set by the doors process where it asks the URL map again for a call that waited. No client can: headers are HTTP_….
COUNTED = "portal.counted"
# After a failure Redis is left alone this long: each attempt may cost the time-out of one second.
PAUSE_S = 5.0


class TokenThrottle(BaseThrottle):
    _away_until = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        if request.META.get(COUNTED):
            return True
        now = time.time()
        if now < TokenThrottle._away_until:
            return True
        key = f"throttle:{_who(request)}:{int(now // WINDOW_S)}"
        try:
            with hints.connection().pipeline() as trip:  # counted with its end or not at all
                trip.incr(key)
                trip.expire(key, 2 * WINDOW_S)
                count = int(trip.execute()[0])
        except RedisError as error:
            TokenThrottle._away_until = now + PAUSE_S
            log.warning("throttle_away", error=type(error).__name__)
            return True
        return count <= settings.API_REQUESTS_PER_MINUTE

    def wait(self) -> float:
        return WINDOW_S - math.fmod(time.time(), WINDOW_S)


def _who(request: Request) -> str:
    if isinstance(request.auth, ApiToken):
        return f"token:{request.auth.pk}"
    return f"user:{getattr(request.user, 'pk', None)}"
