"""So many requests a minute for each token (or session), counted in Redis. Redis away: all pass, nobody waits.

Redis is told of the first request of a minute at once, and of what follows in bundles: to tell it of each takes a
twentieth of a whole call. Of several processes each may let a bundle less one request through above the limit.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
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
# Set by the doors process where it asks the URL map again for a call that waited. No client can: headers are HTTP_….
ALREADY_COUNTED = "portal.counted"
# After a failure Redis is left alone this long: each attempt may cost the time-out of one second.
PAUSE_S = 5.0
# Requests in a bundle: a hundredth of the limit as shipped, and of any lower one.
BUNDLE, BUNDLES = 6, 100


class TokenThrottle(BaseThrottle):
    _away_until = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        if request.META.get(ALREADY_COUNTED):
            return True
        now = time.time()
        if now < TokenThrottle._away_until:
            return True
        limit = settings.API_REQUESTS_PER_MINUTE
        try:
            return _counted(_who(request), int(now // WINDOW_S), min(BUNDLE, limit // BUNDLES)) <= limit
        except RedisError as error:
            TokenThrottle._away_until = now + PAUSE_S
            log.warning("throttle_away", error=type(error).__name__)
            return True

    def wait(self) -> float:
        return WINDOW_S - math.fmod(time.time(), WINDOW_S)


@dataclass
class _Minute:
    """By who asks: how many Redis knew of when it was last told, and how many have come here since."""

    number: int = 0
    told: dict[str, int] = field(default_factory=dict)
    untold: Counter[str] = field(default_factory=Counter)


_now, _lock = _Minute(), threading.Lock()


def _counted(who: str, minute: int, bundle: int) -> int:
    """In this minute, this one included, by all processes. Raises RedisError."""
    with _lock:
        if _now.number != minute:
            _now.number, _now.told, _now.untold = minute, {}, Counter()
        _now.untold[who] += 1
        new = _now.untold[who]
        if who in _now.told and new < bundle:
            return _now.told[who] + new
        del _now.untold[who]
    key = f"throttle:{who}:{minute}"
    with hints.redis_connection().pipeline() as trip:  # counted with its end or not at all
        trip.incrby(key, new)
        trip.expire(key, 2 * WINDOW_S)
        count = int(trip.execute()[0])
    with _lock:
        if _now.number == minute:
            _now.told[who] = max(count, _now.told.get(who, 0))
    return count


def _who(request: Request) -> str:
    if isinstance(request.auth, ApiToken):
        return f"token:{request.auth.pk}"
    return f"user:{getattr(request.user, 'pk', None)}"
