"""When runs are judged: with each minute that was read, and otherwise once a minute."""

from __future__ import annotations

from typing import Any

import pytest

from usage import tasks
from usage.telemetry import collection


@pytest.mark.parametrize("is_new", [True, False])
def test_a_minute_that_was_read_is_judged_at_once(monkeypatch: pytest.MonkeyPatch, is_new: bool) -> None:
    judged: list[dict[str, Any]] = []
    monkeypatch.setattr(tasks.update_idle_runs, "apply_async", lambda **options: judged.append(options))
    monkeypatch.setattr(collection, "read_telemetry", lambda: is_new)
    tasks.read_telemetry()
    assert judged == ([{"queue": "background", "expires": 60}] if is_new else [])
