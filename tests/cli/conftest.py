from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from accounts.models import User
from tests.cli.command import PORTAL, Gpu, token_of


@pytest.fixture
def gpu_of(
    db: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Gpu]:
    """gpu_of(bob, "read", "launch"): Bob's command, with a token of these scopes in GPU_TOKEN."""

    def made(user: User | None, *scopes: str) -> Gpu:
        environment = {"XDG_CONFIG_HOME": str(tmp_path), "GPU_PORTAL": PORTAL}
        if user is not None:
            environment["GPU_TOKEN"] = token_of(user, *scopes)
        return Gpu(capsys, monkeypatch, environment)

    return made


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], bob: User) -> Gpu:
    """The command of Bob, who may read, launch and request."""
    return gpu_of(bob, "read", "launch", "request")
