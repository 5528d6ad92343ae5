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
    """gpu_of(bob, "read", "launch"): his command, by GPU_TOKEN."""

    def made(user: User | None, *scopes: str) -> Gpu:
        environment = {"XDG_CONFIG_HOME": str(tmp_path), "GPU_PORTAL": PORTAL}
        if user is not None:
            environment["GPU_TOKEN"] = token_of(user, *scopes)
        return Gpu(capsys, monkeypatch, environment)

    return made


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], bob: User) -> Gpu:
    """Bob's, who may read, launch and ask."""
    return gpu_of(bob, "read", "launch", "request")
