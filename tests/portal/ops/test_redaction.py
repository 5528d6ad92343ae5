"""Planted secrets never appear in a log line, wherever they were planted."""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from django.conf import settings
from django.test import Client

from accounts.api_tokens import actions, token_text
from accounts.core.actor import Actor
from accounts.models import User
from portal.ops.redaction import SecretRedactor, sounds_secret
from tests.support.rows import make

PLANTED = "hunter2-correct-horse"
TOKEN = f"gpt_abcd1234_{'s' * 43}"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the process writes: the real formatter and processors, another stream."""
    handler = logging.getLogger().handlers
    ours = next(h for h in handler if isinstance(h.formatter, structlog.stdlib.ProcessorFormatter))
    stream, root = io.StringIO(), logging.getLogger()
    copy = logging.StreamHandler(stream)
    copy.setFormatter(ours.formatter)
    level, _ = root.level, root.addHandler(copy)
    root.setLevel(logging.DEBUG)
    yield stream
    root.setLevel(level)
    root.removeHandler(copy)


@pytest.mark.parametrize(
    "fields",
    [
        {"password": PLANTED},
        {"api_key": PLANTED},
        {"X-Api-Key": PLANTED},
        {"csrftoken": PLANTED},
        {"Set-Cookie": PLANTED},
        {"headers": {"Authorization": f"Bearer {PLANTED}", "Accept": "*/*"}},
        {"answers": [{"name": "a", "value": {"client_secret": PLANTED}}]},
        {"rows": ({"deep": [{"deeper": {"ticket": PLANTED}}]},)},
        {"request": f"GET /gateway/open?ticket={PLANTED}&next=/"},
        {"request": f"GET /x?next=/a&access_token={PLANTED}"},
        {"url": f"postgres://portal:{PLANTED}@db.internal:5432/portal"},
        {"header": f"Authorization: Bearer {PLANTED}"},
        {"header": f"Authorization: token {PLANTED}"},
        {"headers": f"{{'Authorization': 'token {PLANTED}'}}"},
        {"body": json.dumps({"name": "a", "password": PLANTED})},
        {"body": json.dumps(json.dumps({"password": PLANTED}))},
        {"raw": f"password={PLANTED}".encode()},
        {"curl": f"curl -H 'Authorization: Bearer {PLANTED}' https://portal/api"},
        {"note": f"password: {PLANTED}, try again"},
        {"token": {"whole": {"value": PLANTED}}},
        {"session_key": PLANTED},
    ],
)
def test_a_planted_secret_does_not_appear(lines: io.StringIO, fields: dict[str, Any]) -> None:
    structlog.get_logger("test").warning("something_happened", **fields)
    logging.getLogger("other.library").warning("something happened: %s", fields, extra={"fields": fields})

    assert PLANTED not in lines.getvalue()
    assert lines.getvalue().count("\n") == 2
    assert all(json.loads(line)["event"] for line in lines.getvalue().splitlines())


def test_a_token_of_ours_keeps_only_its_recognisable_part(lines: io.StringIO) -> None:
    structlog.get_logger("test").warning("pasted", text=f"I used {TOKEN} and it failed")

    assert json.loads(lines.getvalue())["text"] == "I used gpt_abcd1234_*** and it failed"


def test_tracebacks_are_cleaned_as_well(lines: io.StringIO) -> None:
    try:
        tokens_seen = [PLANTED]
        raise ValueError(
            f"cannot connect to redis://:{PLANTED}@cache:6379/0 with password='{PLANTED}'\nand {tokens_seen=}"
        )
    except ValueError:
        structlog.get_logger("test").exception("failed")

    line = json.loads(lines.getvalue())
    assert "ValueError: cannot connect to redis" in line["exception"]
    assert PLANTED not in lines.getvalue()


def test_the_process_s_own_secrets_are_hidden_wherever_they_stand(lines: io.StringIO) -> None:
    structlog.get_logger("test").warning("oops", text=f"the key is <{settings.SECRET_KEY}>")

    assert settings.SECRET_KEY not in lines.getvalue()


def test_a_service_account_s_token_and_a_private_key_are_hidden() -> None:
    clean = SecretRedactor().text

    assert clean("use eyJhbGciOi.eyJpc3Mi.c2ln now") == "use *** now"
    assert "MIIE" not in clean("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----")


@pytest.mark.parametrize(
    "fields",
    [
        {"event": "token.created", "token_prefix": "abcd1234"},
        {"hint": "tenants.namespace.work", "error": "ConnectionError"},
        {"keyset": ["-id"], "monkey": "george", "attempts": 3, "is_secret": True},
        {"request": "GET /api/v1/tokens?limit=2", "code": 200},
        {"row": "tenants.namespace.5", "sent": {"kind": "ResourceQuota", "name": "gpu-portal"}},
    ],
)
def test_what_is_no_secret_stays_readable(fields: dict[str, Any]) -> None:
    assert SecretRedactor()(None, "", dict(fields)) == fields


def test_names_that_sound_secret() -> None:
    assert all(map(sounds_secret, ["key", "api-key", "PASSWORD", "X-Auth-Token", "sessionCookie", "private_key"]))
    assert not any(map(sounds_secret, ["keyset", "monkey", "keyboard", "token_prefix", "token_name", "event"]))


def test_a_structure_without_end_is_cut_off() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless

    assert "***" in str(SecretRedactor()(None, "", {"value": endless}))


@pytest.mark.django_db
def test_signing_in_and_calling_the_api_log_no_secret(lines: io.StringIO, client: Client, alice: User) -> None:
    _, text = actions.create_token(name="ci", scopes=["read"], expires_in_days=1, by=Actor(user=alice, via="page"))
    secret = str(token_text.parse_token(text).secret)  # type: ignore[union-attr]

    client.post("/login", {"username": "alice@example.org", "password": PLANTED, "next": f"/?token={secret}"})
    client.post("/login", {"username": "alice@example.org", "password": make.PASSWORD, "next": "/tokens"})
    client.get(f"/api/v1/me?token={secret}", headers={"Authorization": f"Bearer {text}"})
    client.get("/api/v1/me", headers={"Authorization": f"Bearer {text}x"})

    logged = lines.getvalue()
    assert "sign_in_failed" in logged
    assert logged.count("request_finished") == 4
    for planted in (PLANTED, make.PASSWORD, secret, client.cookies["session"].value):
        assert planted not in logged


def test_a_long_text_costs_little_and_is_cut() -> None:
    started = time.perf_counter()

    cleaned = SecretRedactor().text("A1b2" * 500_000)

    assert time.perf_counter() - started < 1
    assert cleaned.endswith("(2000000 characters)")
    assert len(cleaned) < 21_000
