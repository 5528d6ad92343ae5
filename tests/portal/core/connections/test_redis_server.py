"""REDIS_URL as each client is told. tests/recovery/test_sentinel.py uses them with real sentinels."""

from __future__ import annotations

import os
import subprocess
import sys

import kombu
import pytest

from portal.core.connections import redis_server
from portal.core.connections.redis_server import MalformedRedisUrl, Sentinels, sentinels_of

URL = "sentinel://who:a%2Fb%40c@one:1,two,[fd00::1]:3/4?service=portal&sentinel_password=own%26"


def test_the_parts_of_a_url_with_sentinels() -> None:
    assert sentinels_of(URL) == Sentinels(
        (("one", 1), ("two", 26379), ("fd00::1", 3)), "portal", 4, {"username": "who", "password": "a/b@c"}, "own&"
    )
    assert sentinels_of("sentinel://one/?service=x") == Sentinels((("one", 26379),), "x", 0)
    assert sentinels_of("redis://:secret@one:6379/0") is None
    assert "a/b@c" not in repr(sentinels_of(URL))


@pytest.mark.parametrize(
    "url",
    [
        "sentinel://one:26379/0",
        "sentinel:///0?service=portal",
        "sentinel://one:x/0?service=portal",
        "sentinel://one,,two/0?service=portal",
        "sentinel://one/a?service=portal",
        "sentinel://one/0?service=portal&pasword=x",
    ],
)
def test_a_malformed_url_ends_the_process_without_showing_it(url: str) -> None:
    with pytest.raises(MalformedRedisUrl):
        sentinels_of(url)
    ran = subprocess.run(
        [sys.executable, "-c", "from portal import settings"],
        env={**os.environ, "REDIS_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stderr.splitlines()[-1]
    assert "ImproperlyConfigured: REDIS_URL is malformed: " in last
    assert url not in last


def test_celery_reads_every_sentinel_and_the_login() -> None:
    options = redis_server.broker_options(URL)
    channel = kombu.Connection(redis_server.broker_url(URL), transport_options=options)
    assert [kombu.Connection(one).hostname for one in channel.alt] == ["one", "two", "fd00::1"]
    assert {(one.userid, one.password) for one in map(kombu.Connection, channel.alt)} == {("who", "a/b@c")}
    assert channel.virtual_host == "4"
    assert options["master_name"] == "portal"
    assert options["sentinel_kwargs"]["password"] == "own&"
    assert redis_server.broker_url("redis://:secret@one:6379/0") == "redis://:secret@one:6379/0"


def test_every_password_is_known_to_the_logs() -> None:
    assert redis_server.passwords_of(URL) == ("a/b@c", "own&")
    assert redis_server.passwords_of("redis://:secret@one:6379/0") == ("secret",)
