"""Shipped alerts fire in the demo's Prometheus on planted faults, and clear when these are gone."""

from __future__ import annotations

import time
from collections.abc import Callable

import yaml

from tests.load.usage.running_demo import RunningDemo
from tests.support.shipped import DEPLOY
from tests.support.waiting import wait_until

SCENARIO = "waste"
FIRES_WITHIN_S = 120


def test_a_shipped_alert_fires_and_clears(demo: RunningDemo, say: Callable[[str], None]) -> None:
    prometheus, node = demo.prometheus, "a100-2"
    files = sorted((DEPLOY / "monitoring" / "rules").glob("gpu-*.yaml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    shipped = {rule.get("alert") or rule["record"] for group in groups for rule in group["rules"]}
    assert prometheus.rules() == shipped
    # An alert on XID is about a change, so that a recorded value has to come first.
    codes = f'gpu:xid_code:max{{hostname="{node}"}}'
    wait_until(lambda: len(prometheus.query(codes)) == 4, within_s=FIRES_WITHIN_S, what="recorded codes of 4 GPUs")
    cards = {
        one["metric"]["gpu"]: one["metric"]["UUID"]
        for one in prometheus.query(f'DCGM_FI_DEV_XID_ERRORS{{Hostname="{node}"}}')
    }
    expected = {("GpuXidHardware", node, cards["1"]), ("GpuRowRemapFailed", node, cards["3"])}
    assert not prometheus.alerts() & expected

    began = time.monotonic()
    demo.annotate_node(node, gpu_fault="1=xid:79,3=remap")
    wait_until(lambda: _of_node(prometheus.alerts(), node) == expected, within_s=FIRES_WITHIN_S, what="the alerts fire")
    fired_s = time.monotonic() - began
    began = time.monotonic()
    demo.annotate_node(node, gpu_fault=None)
    wait_until(lambda: not _of_node(prometheus.alerts(), node), within_s=FIRES_WITHIN_S, what="the alerts clear")
    cleared_s = time.monotonic() - began
    say(f"{len(shipped)} shipped rules; two alerts fired after {fired_s:.0f} s, cleared after {cleared_s:.0f} s")


def _of_node(alerts: set[tuple[str, str, str]], node: str) -> set[tuple[str, str, str]]:
    return {one for one in alerts if one[1] == node}
