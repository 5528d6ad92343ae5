"""While the exporter of a node does not answer, its runs are not measured: neither 0 nor idle."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.load.usage.own_figures import HOUR_S, MINUTE_S, UTILISATION, is_near, pods_of
from tests.load.usage.running_demo import RunningDemo
from tests.support.waiting import wait_until

SCENARIO = "waste"
# The figures of a minute are read when it is over, and judged within a minute after that.
UNKNOWN_WITHIN_S, SILENT_FOR_S = 120, 300


def test_runs_of_a_silent_exporter_are_not_measured(demo: RunningDemo, say: Callable[[str], None]) -> None:
    node = "a100-1"
    there = {pod["metadata"]["labels"]["job-name"].rpartition("-")[0]: pod for pod in demo.pods(node)}
    namespaces = {name: pod["metadata"]["namespace"] for name, pod in there.items()}
    elsewhere = demo.held_gpus().keys() - there.keys()
    assert (len(there), len(elsewhere)) == (4, 4)

    def activities() -> dict[str, dict[str, Any]]:
        return {name: demo.activity("Olga", team, name) for name, team in namespaces.items()}

    wait_until(lambda: all(one["now"] for one in activities().values()), within_s=180, every_s=2, what="all measured")
    idle_there = wait_until(lambda: demo.idle_holders().keys() & there.keys(), within_s=300, every_s=2)
    began, began_at = time.monotonic(), time.time()
    demo.annotate_node(node, gpu_exporter="silent")
    told: dict[str, float] = {}  # since when each is told not to be measured, Unix seconds

    def all_unknown() -> bool:
        for name, one in activities().items():
            if one["now"] is None:
                assert one["reason"]
                told.setdefault(name, time.time())
        return told.keys() == there.keys()

    wait_until(all_unknown, within_s=UNKNOWN_WITHIN_S, every_s=1, what="not measured", story=demo.story)
    unknown_s = time.monotonic() - began
    assert {one["metric"]["node"] for one in demo.prometheus.query("up == 0")} == {node}
    before = {name: _since(one, began_at) for name, one in activities().items()}
    looks, unnamed_s = 0, 0.0

    def is_over() -> bool:
        nonlocal looks, unnamed_s
        looks += 1
        for name, one in activities().items():
            # Neither a figure nor a minute of 0 in those of the hour.
            assert one["now"] is None, (name, one)
            assert _since(one, began_at) == before[name]
        still = {name: one for name, one in demo.idle_holders().items() if name in there}
        for name, one in still.items():
            assert datetime.fromisoformat(one["judged_at"]).timestamp() < told[name], "judged idle, and not measured"
        if still or not unnamed_s:
            unnamed_s = time.monotonic() - began
        assert not still or unnamed_s < UNKNOWN_WITHIN_S + MINUTE_S
        return time.monotonic() - began > SILENT_FOR_S

    wait_until(is_over, within_s=SILENT_FOR_S + 60, every_s=3)
    measured = {
        name: _minutes_since(demo.activity("Olga", team, name), began_at) for name, team in _teams(demo).items()
    }
    assert all(measured[name] >= 4 for name in elsewhere), measured
    back = time.monotonic()
    demo.annotate_node(node, gpu_exporter=None)
    wait_until(
        lambda: all(one["now"] for one in activities().values()),
        within_s=UNKNOWN_WITHIN_S + MINUTE_S, every_s=1, what="measured again", story=demo.story,
    )  # fmt: skip
    back_s = time.monotonic() - back
    differences = []
    for name, one in activities().items():
        until = int(datetime.fromisoformat(one["read_until"]).timestamp())
        own = demo.prometheus.minutes(
            UTILISATION, pods_of(namespaces[name], f"{name}-1"), devices=1, since=until - MINUTE_S, until=until
        )
        assert is_near(one["now"]["activity"], own.by_end[until]), (name, one, own)
        differences.append(abs(one["now"]["activity"] - own.by_end[until]))
    say(
        f"4 runs not measured after {unknown_s:.0f} s, no verdict after {unnamed_s:.0f} s ({len(idle_there)} were "
        f"idle), {looks} looks in {SILENT_FOR_S} s; measured again after {back_s:.0f} s, "
        f"differing by at most {max(differences):.4f} points"
    )


def _teams(demo: RunningDemo) -> dict[str, str]:
    return {name: one["namespace"] for name, one in demo.held_gpus().items()}


def _since(activity: dict[str, Any], moment: float) -> list[dict[str, Any]]:
    """The hours since then: earlier ones may still be read."""
    return [one for one in activity["hours"] if datetime.fromisoformat(one["hour"]).timestamp() > moment - HOUR_S]


def _minutes_since(activity: dict[str, Any], moment: float) -> int:
    return sum(int(one["minutes"]) for one in _since(activity, moment))
