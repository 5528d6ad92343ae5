"""A worker dies before every second write of one provisioning and after the others: see killed.py.

Before and after each of them: `run.py soak faults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.killed import MOMENTS, Zygote, killed_around_each_write
from tests.faults.scenes import Stage


@pytest.fixture
def zygote(tmp_path: Path, transactional_db: None) -> Iterator[Zygote]:
    found = Zygote(tmp_path / "zygote.log")
    yield found
    found.end()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_around_each_write(stage: Stage, zygote: Zygote, moment: str) -> None:
    assert killed_around_each_write(stage, zygote, "namespace", moment, every=2) >= 5


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_pool(stage: Stage, zygote: Zygote, moment: str) -> None:
    assert killed_around_each_write(stage, zygote, "pool", moment) >= 2
