"""Faults between the cluster and a page, in random order, as a viewer of the page sees them: see
tests/desk/streaming/test_faults_at_the_viewer.py.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.desk.streaming.test_faults_at_the_viewer import FAULTS, RIGHT_WITHIN_S, Scene, proxy, scene, watchers

__all__ = ["proxy", "scene", "watchers"]
ROUNDS = int(os.environ.get("SOAK_ROUNDS", "10"))
SEED = int(os.environ.get("SOAK_SEED", "2026"))


@pytest.mark.django_db(transaction=True)
def test_the_page_is_right_after_each_of_many_faults(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    dice = random.Random(SEED)
    took: dict[str, float] = {}
    scene.tick()
    scene.until(scene.is_right, RIGHT_WITHIN_S, "the page shows the job")
    for _ in range(ROUNDS):
        for fault in dice.sample(FAULTS, len(FAULTS)):
            fault(scene)
            scene.proxy.forget()
            seconds = scene.until(scene.is_right, RIGHT_WITHIN_S, f"the page is right after {fault.__name__}")
            took[fault.__name__] = max(took.get(fault.__name__, 0.0), seconds)
    with capsys.disabled():
        print(
            f"\n{ROUNDS} rounds, seed {SEED}: right after at most", {name: round(took[name], 1) for name in took}, "s"
        )
    shown = scene.numbers()
    assert shown == sorted(shown), shown
