"""Where Redis is, as REDIS_URL says it: one server, or the primary that Redis Sentinel names at the moment.

    redis://[user:password@]host:6379/0
    sentinel://[user:password@]host:26379,host:26379,host:26379/0?service=NAME[&sentinel_password=PASSWORD]

Each client of the portal (hints, cache, streams, Celery) is told in its own way, from here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import redis
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.backoff
import redis.retry
import redis.sentinel

from portal.core.connections.keepalive import WAITING_OPTIONS

SENTINEL_PORT = 26379
# A click may wait for it: the first sentinel that is asked can be on the host that has just vanished.
SENTINEL_TIMEOUT_S = 0.5
# A Redis that does not answer must not hold up a page.
AT_ONCE = {"socket_timeout": 1, "socket_connect_timeout": 1}
# The next sentinel is asked instead.
ONCE = redis.retry.Retry(redis.backoff.NoBackoff(), 0)


class MalformedRedisUrl(ValueError):
    pass


@dataclass(frozen=True)
class Sentinels:
    """`login`: user and password of Redis itself. Sentinels have a password of their own, or none."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    database: int
    login: dict[str, str] = field(default_factory=dict, repr=False)
    password: str = field(default="", repr=False)

    @property
    def own_options(self) -> dict[str, Any]:
        """Of connections to the sentinels."""
        found: dict[str, Any] = {
            "socket_timeout": SENTINEL_TIMEOUT_S,
            "socket_connect_timeout": SENTINEL_TIMEOUT_S,
        }
        return found | ({"password": self.password} if self.password else {})


def sentinels_of(url: str) -> Sentinels | None:
    """None: the URL names the server itself."""
    parts = urlsplit(url)
    if parts.scheme != "sentinel":
        return None
    who, _, where = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    asked = dict(parse_qsl(parts.query))
    try:
        hosts = tuple(_host(one) for one in where.split(","))
        database = int(parts.path.strip("/") or 0)
    except ValueError as error:
        raise MalformedRedisUrl("a host is host:port, and the path the number of a database") from error
    service = asked.pop("service", "")
    sentinel_password = asked.pop("sentinel_password", "")
    if not service:
        raise MalformedRedisUrl("?service= has to name what the sentinels watch")
    if asked:
        raise MalformedRedisUrl(f"unknown parameter {', '.join(sorted(asked))}")
    login = {"username": unquote(user), "password": unquote(password)}
    return Sentinels(hosts, service, database, {key: value for key, value in login.items() if value}, sentinel_password)


def _host(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("no host")
    return parts.hostname, parts.port or SENTINEL_PORT


def passwords_of(url: str) -> tuple[str, ...]:
    """For the logs, which must not have them."""
    found = sentinels_of(url)
    return (found.login.get("password", ""), found.password) if found else (urlsplit(url).password or "",)


def connection_pool(url: str, **options: Any) -> redis.ConnectionPool:
    found = sentinels_of(url)
    if found is None:
        return redis.ConnectionPool.from_url(url, **options)
    asked = redis.sentinel.Sentinel(found.hosts, sentinel_kwargs=found.own_options | {"retry": ONCE})
    return redis.sentinel.SentinelConnectionPool(
        found.service, asked, db=found.database, **found.login, **WAITING_OPTIONS, **options
    )


def client(url: str, **options: Any) -> redis.Redis:
    return redis.Redis.from_pool(connection_pool(url, **options))


@asynccontextmanager
async def async_client(url: str, **options: Any) -> AsyncIterator[redis.asyncio.Redis]:
    found = sentinels_of(url)
    if found is None:
        async with redis.asyncio.Redis.from_url(url, **WAITING_OPTIONS, **options) as server:
            yield server
        return
    once = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)
    asked = redis.asyncio.sentinel.Sentinel(found.hosts, sentinel_kwargs=found.own_options | {"retry": once})
    try:
        kept: dict[str, Any] = {**found.login, **WAITING_OPTIONS, **options, "db": found.database}
        async with asked.master_for(found.service, **kept) as primary:
            yield primary
    finally:
        for one in asked.sentinels:
            await one.aclose()


class CachePool:
    """What Django's cache calls for its pool."""

    from_url = staticmethod(connection_pool)


def cache(url: str) -> dict[str, Any]:
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        # A list, because a text is taken apart at its commas.
        "LOCATION": [url],
        "OPTIONS": {"pool_class": CachePool, **AT_ONCE},
    }


def broker_url(url: str) -> str:
    """As Celery's library reads it: the login of Redis is repeated for each sentinel."""
    found = sentinels_of(url)
    if found is None:
        return url
    login = ":".join(quote(found.login.get(key, ""), safe="") for key in ("username", "password"))
    at = f"{login}@" if found.login else ""
    return ";".join(
        f"sentinel://{at}{f'[{host}]' if ':' in host else host}:{port}/{found.database}" for host, port in found.hosts
    )


def broker_options(url: str) -> dict[str, Any]:
    """Without acknowledgements: a hint may be lost, and tracking each one costs a launch two round trips."""
    told = {**AT_ONCE, **WAITING_OPTIONS, "retry_on_timeout": False, "ack_emulation": False}
    found = sentinels_of(url)
    if found is None:
        return told
    return told | {"master_name": found.service, "sentinel_kwargs": found.own_options | {"retry": ONCE}}
