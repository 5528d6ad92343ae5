"""In the scenario waste exactly the idle runs are named; raw samples and Kueue's conditions confirm the evidence."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.load.usage.own_figures import HOUR_S, MINUTE_S, UTILISATION, OwnMinutes, is_near, pods_of
from tests.load.usage.running_demo import RunningDemo
from tests.support.waiting import wait_until

SCENARIO = "waste"
NAMED_WITHIN_S, THEN_FOR_S = 300, 180


def test_exactly_the_idle_runs_are_named(demo: RunningDemo, say: Callable[[str], None]) -> None:
    """Of eight runs four are idle by the raw samples, and no others are named, now or in the minutes after."""
    held = demo.held_gpus()
    idle = {name for name, minutes in _last_hour(demo, held).items() if minutes.is_idle}
    assert (len(held), len(idle)) == (8, 4)

    def named() -> set[str]:
        found = demo.idle_holders().keys()
        assert found <= idle, f"named, and busy: {found - idle}"
        return set(found)

    wait_until(lambda: named() == idle, within_s=NAMED_WITHIN_S, every_s=2, what="the four are named", story=demo.story)
    named_s = time.monotonic() - demo.ready_at
    looks, ends = 0, time.monotonic() + THEN_FOR_S

    def is_over() -> bool:
        nonlocal looks
        looks += 1
        assert named() == idle
        return time.monotonic() > ends

    wait_until(is_over, within_s=THEN_FOR_S + 60, every_s=5)
    differences = [_compare_evidence(demo, name, held[name]) for name in sorted(idle)]
    page = demo.page("Olga", "/operators/idle").words()
    assert {name for name in held if name in page} == idle
    say(
        f"{len(idle)} of {len(held)} runs named {named_s:.0f} s after the start, and no other in {looks} looks of "
        f"{THEN_FOR_S} s; mean activity differs by at most {max(differences):.4f} points"
    )


def _last_hour(demo: RunningDemo, held: dict[str, dict[str, Any]]) -> dict[str, OwnMinutes]:
    until = int(time.time()) // MINUTE_S * MINUTE_S
    return {
        name: demo.prometheus.minutes(
            UTILISATION, pods_of(one["namespace"], one["job"]), devices=1, since=until - HOUR_S, until=until
        )
        for name, one in held.items()
    }


def _compare_evidence(demo: RunningDemo, name: str, held: dict[str, Any]) -> float:
    """Returns by how much the mean differs."""
    told = demo.idle_holders()[name]
    asked_at, judged_at = time.time(), datetime.fromisoformat(told["judged_at"]).timestamp()
    admitted = demo.admitted_at(held["namespace"], held["job"])
    assert datetime.fromisoformat(told["idle_since"]).timestamp() == admitted
    assert (told["minutes"], told["units"]) == (60, 1)
    assert 54 <= told["seen_minutes"] <= 60
    price = demo.get("Olga", f"classes/{told['gpu_class']}")["price_per_unit_hour"]
    assert Decimal(told["cost_per_hour"]) == Decimal(price) > 0
    hours = Decimal(asked_at - admitted) / HOUR_S
    assert abs(Decimal(told["cost_since"]) - hours * Decimal(price)) < Decimal("0.02")
    # The mean is that of the hour that is measured now.
    measured = [
        demo.prometheus.minutes(
            UTILISATION, pods_of(held["namespace"], held["job"]), devices=1, since=until - 2 * HOUR_S, until=until
        ).of_hour((until - 1) // HOUR_S * HOUR_S)
        for until in _ends_before(judged_at)
    ]
    means = [one.mean for one in measured if one.mean is not None]
    nearest = min(means, key=lambda mean: abs(told["activity_percent"] - mean))
    assert is_near(told["activity_percent"], nearest), (name, told, means)
    return abs(float(told["activity_percent"]) - nearest)


def _ends_before(judged_at: float) -> list[int]:
    """A verdict is of the minutes that were read then: the last, or the one before."""
    last = int(judged_at) // MINUTE_S * MINUTE_S
    return [last, last - MINUTE_S, last - 2 * MINUTE_S]
