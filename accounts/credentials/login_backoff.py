"""Each wrong password or code delays the next attempt from the same IP address at the same account, and no others.

The attempts are counted in Redis. While Redis is unavailable there is no delay: for that time, sign-in is more
important than slowing down a guesser.
"""

from __future__ import annotations

import hashlib
import time

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)
PREFIX = "sign-in"
FREE_ATTEMPTS = 5
FIRST_WAIT_S = 1
WAIT_MAX_S = 60
FORGET_AFTER_S = 15 * 60


def wait_before_attempt(email: str, address: str, *, at: str = "password") -> int:
    """Returns the seconds to wait before the next attempt. 0: continue, and this attempt is counted. `at`: the kind of
    secret (password or code).

    The attempt is counted before the password or code is checked, so that parallel attempts have no advantage.
    """
    key = _key(email, address, at)
    try:
        now = time.time()
        until: float | None = cache.get(f"{key}:until")
        if until is not None and until > now:
            # The clock of the process that set it may be ahead of ours.
            return min(int(until - now) + 1, WAIT_MAX_S)
        cache.add(key, 0, timeout=FORGET_AFTER_S)
        attempts = cache.incr(key)
        if attempts < FREE_ATTEMPTS:
            return 0
        wait_s: int = min(FIRST_WAIT_S * 2 ** (attempts - FREE_ATTEMPTS), WAIT_MAX_S)
        if not cache.add(f"{key}:until", now + wait_s, timeout=wait_s):
            return wait_s
    except (RedisError, ValueError) as error:
        log.warning("slow_down_away", error=type(error).__name__)
    return 0


def reset_backoff(email: str, address: str, *, at: str = "password") -> None:
    """Call it after a successful attempt."""
    key = _key(email, address, at)
    try:
        cache.delete_many([key, f"{key}:until"])
    except RedisError as error:
        log.warning("slow_down_away", error=type(error).__name__)


def _key(email: str, address: str, at: str) -> str:
    digest = hashlib.sha256(f"{email.strip().lower()}\0{address}\0{at}".encode()).hexdigest()
    return f"{PREFIX}:{digest[:32]}"
