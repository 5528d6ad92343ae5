from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from accounts.models import Event, User
from portal.web.request_id import choose_request_id
from tests.portal.ops.test_redaction import lines
from tests.support.rows import make

__all__ = ["lines"]  # the fixture


def test_a_caller_s_id_comes_back_and_a_missing_one_is_made(client: Client, db: None) -> None:
    kept = client.get("/livez", headers={"X-Request-ID": "ci-run-4711.a_b"})
    first, second = client.get("/livez"), client.get("/livez")

    assert kept["X-Request-ID"] == "ci-run-4711.a_b"
    assert re.fullmatch("[0-9a-f]{32}", first["X-Request-ID"])
    assert first["X-Request-ID"] != second["X-Request-ID"]


@pytest.mark.parametrize(
    "offered", [None, "", "short", "x" * 65, "a b c d e f", "line\nbreak-1234", "-leading-12", "é" * 9]
)
def test_an_id_that_could_do_harm_is_replaced(offered: str | None) -> None:
    assert choose_request_id(offered) != offered
    assert choose_request_id("request-0001") == "request-0001"


@pytest.mark.parametrize("path", ["/api/v1/nonsense", "/nonsense", "/api/v1/me"])
def test_refusals_have_one_too(client: Client, db: None, path: str) -> None:
    assert client.get(path, headers={"X-Request-ID": "request-0001"})["X-Request-ID"] == "request-0001"


def test_log_lines_and_events_carry_it(lines: object, client: Client, alice: User) -> None:
    client.post(
        "/login",
        {"username": "alice@example.org", "password": make.PASSWORD, "next": "/tokens"},
        headers={"X-Request-ID": "request-0001"},
    )

    assert Event.objects.get().request_id == "request-0001"
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]  # type: ignore[attr-defined]
    finished = [line for line in logged if line["event"] == "request_finished"]
    assert [line["request_id"] for line in finished] == ["request-0001"]
