"""A running demo for each module, which names its `SCENARIO`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.load.usage import running_demo
from tests.load.usage.running_demo import RunningDemo


@pytest.fixture(scope="module")
def demo(request: pytest.FixtureRequest) -> Iterator[RunningDemo]:
    with running_demo.started(request.module.SCENARIO) as found:
        yield found


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def show(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="", flush=True)

    return show
