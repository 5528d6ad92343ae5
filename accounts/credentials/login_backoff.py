"""Each wrong password or code delays the next attempt at the same account from the same network: one IPv4 address, or
an IPv6 /64, which one machine may use freely.

A guesser may have many networks. So the attempts at an account are limited over all of them as well, for a day, except
for networks from which its user has signed in before: a stranger can delay the user elsewhere, but not there.

The attempts are counted in Redis. While Redis is unavailable there is no delay: for that time, sign-in is more
important than slowing down a guesser.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

from accounts.credentials.queries import has_signed_in_from
from portal.web.client_address import network_of

log = structlog.get_logger(__name__)
PREFIX = "sign-in"
FREE_ATTEMPTS = 5
FIRST_WAIT_S = 1
WAIT_MAX_S = 60
FORGET_AFTER_S = 15 * 60
ACCOUNT_FREE_ATTEMPTS = 20
ACCOUNT_WAIT_MAX_S = 15 * 60
ACCOUNT_FORGET_AFTER_S = 24 * 3600


@dataclass(frozen=True)
class _Limit:
    free_attempts: int
    wait_max_s: int
    forget_after_s: int


def wait_before_attempt(email: str, address: str, *, at: str = "password") -> int:
    """Returns the seconds to wait before the next attempt. 0: continue, and this attempt is counted. `at`: the kind of
    secret (password or code). One query, if the account's limit is reached.

    The attempt is counted before the password or code is checked, so that parallel attempts have no advantage.
    """
    network = network_of(address)
    of_network = _Limit(FREE_ATTEMPTS, WAIT_MAX_S, FORGET_AFTER_S)
    of_account = _Limit(ACCOUNT_FREE_ATTEMPTS, ACCOUNT_WAIT_MAX_S, ACCOUNT_FORGET_AFTER_S)
    try:
        if wait_s := _wait(_key(email, network, at), of_network):
            return wait_s
        wait_s = _wait(_key(email, "", at), of_account)
    except (RedisError, ValueError) as error:
        log.warning("slow_down_away", error=type(error).__name__)
        return 0
    if not wait_s or has_signed_in_from(email, network):
        return 0
    log.warning("account_guessed", email=email[:254], address=address, at=at)
    return wait_s


def _wait(key: str, limit: _Limit) -> int:
    """Raises RedisError, and ValueError if the count expires at this moment."""
    now = time.time()
    until: float | None = cache.get(f"{key}:until")
    if until is not None and until > now:
        # The clock of the process that set it may be ahead of ours.
        return min(int(until - now) + 1, limit.wait_max_s)
    cache.add(key, 0, timeout=limit.forget_after_s)
    attempts = cache.incr(key)
    if attempts < limit.free_attempts:
        return 0
    # Beyond 2**20 s every limit is reached.
    wait_s: int = min(FIRST_WAIT_S * 2 ** min(attempts - limit.free_attempts, 20), limit.wait_max_s)
    return 0 if cache.add(f"{key}:until", now + wait_s, timeout=wait_s) else wait_s


def reset_backoff(email: str, address: str, *, at: str = "password") -> None:
    """Call it after a successful attempt. Over all networks only this attempt is not counted: a user who signs in must
    not give a guesser new attempts.
    """
    key = _key(email, network_of(address), at)
    try:
        cache.delete_many([key, f"{key}:until"])
        cache.decr(_key(email, "", at))
    except (RedisError, ValueError) as error:
        log.warning("slow_down_away", error=type(error).__name__)


def _key(email: str, network: str, at: str) -> str:
    digest = hashlib.sha256(f"{email.strip().lower()}\0{network}\0{at}".encode()).hexdigest()
    return f"{PREFIX}:{digest[:32]}"
