"""Runs `gpu` in this process against the portal itself: real rows, no network, a clock that the test moves."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import User
from gpu_cli.main import main
from gpu_cli.session import Runtime
from tests.support.rows import make

PORTAL = "https://testserver"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Between(httpx.BaseTransport):
    """A transport in front of the portal: `faults` answer first, one for each call; all requests are recorded."""

    def __init__(self) -> None:
        self._portal = Client(raise_request_exception=False)
        self.faults: list[Callable[[httpx.Request], httpx.Response | None]] = []
        self.asked: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        fault = self.faults.pop(0) if self.faults else lambda _request: None
        return fault(request) or self.answer(request)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Uses Django's client: the handler of a real server would close the connection of the test's transaction."""
        answer = self._portal.generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type=request.headers.get("Content-Type", ""),
            secure=request.url.scheme == "https",
            headers=dict(request.headers),
        )
        body = answer.getvalue() if answer.streaming else answer.content
        return httpx.Response(answer.status_code, content=body, headers=dict(answer.items()))


def unheard(error: type[httpx.TransportError]) -> Callable[[httpx.Request], httpx.Response | None]:
    def raises(request: httpx.Request) -> httpx.Response | None:
        raise error("no way", request=request)

    return raises


def answered(status: int, *, body: Any = None, **headers: str) -> Callable[[httpx.Request], httpx.Response | None]:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return lambda _request: httpx.Response(status, json=body, headers=named)


@dataclass
class Gpu:
    """gpu("status", "train") returns the result. `meanwhile`: functions that run one by one while it sleeps."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    environment: dict[str, str]
    between: Between = field(default_factory=Between)
    meanwhile: Iterator[Callable[[], object]] = field(default_factory=lambda: iter(()))
    slept: list[float] = field(default_factory=list)
    browsed: list[str] = field(default_factory=list)
    _now: float = 0.0

    def __call__(self, *arguments: str, stdin: str = "") -> Done:
        self.capsys.readouterr()
        self.monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        outside = Runtime(
            environment=self.environment,
            transport=self.between,
            now=lambda: self._now,
            sleep=self._sleep,
            browse=self.browsed.append,
        )
        code = main(arguments, outside)
        out, err = self.capsys.readouterr()
        return Done(code, out, err)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += seconds
        next(self.meanwhile, lambda: None)()

    @property
    def config(self) -> Path:
        return Path(self.environment["XDG_CONFIG_HOME"]) / "gpu" / "config.json"


def token_of(user: User, *scopes: str) -> str:
    if "admin" in scopes:
        make.second_factor(user)
    _row, text = api_token_actions.create_token(
        name="cli", scopes=list(scopes), expires_in_days=30, by=Actor(user=user, via="page")
    )
    return text
