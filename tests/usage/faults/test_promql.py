"""The queries of the portal and the rules of Prometheus agree at each minute, on the samples with which the rules are
tested.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster.reads.xid import PROGRAM_XIDS
from devcluster.controlplane import programs
from devcluster.controlplane.programs import Programs
from devcluster.processes.supervisor import Supervisor
from tests.deploy.monitoring.promtool import LAYOUTS, Json, Layout, Series, alerts, run, written
from tests.deploy.monitoring.test_alerts import CASES, NEIGHBOURS
from usage.faults import promql
from usage.faults.policy import meaning_of
from usage.faults.types import FaultKind

RULES = {
    FaultKind.XID: ("GpuXidHardware", "GpuXidProgram"),
    FaultKind.ECC: ("GpuEccDoubleBit",),
    FaultKind.ROW_REMAP: ("GpuRowRemapFailed",),
    FaultKind.HOT: ("GpuHot",),
    FaultKind.THROTTLED: ("GpuThermalThrottling",),
    FaultKind.NVLINK: ("GpuNvlinkErrors",),
}
NAMES = {name for names in RULES.values() for name in names}
FIRING = " or ".join(
    f'label_replace(max by (UUID) (ALERTS{{alertname=~"{"|".join(names)}", alertstate="firing"}}),'
    f' "{promql.KIND_LABEL}", "{kind}", "", "")'
    for kind, names in RULES.items()
)
SAME = f"on (UUID, {promql.KIND_LABEL})"
MINUTES = range(15, 75)


@pytest.fixture(scope="session")
def monitoring(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    with Supervisor(tmp_path_factory.mktemp("monitoring")) as supervisor:
        return programs.find_or_build(supervisor, programs.MONITORING)


def group(series: Series, layout: Layout, tests: list[Json]) -> Json:
    return {"interval": "1m", "name": layout.name, "input_series": written(series, layout), "promql_expr_test": tests}


def empty(query: str, minute: int) -> Json:
    return {"expr": query, "eval_time": f"{minute}m", "exp_samples": []}


SCENES = [
    *((f"{one.alert}: fires", one.series) for one in CASES if one.alert in NAMES),
    *((f"{one.alert}: {one.what}", one.series) for one in NEIGHBOURS if one.alert in NAMES),
    ("one code after another", {"DCGM_FI_DEV_XID_ERRORS{HELD}": "0x19 79x4 31x4 94x90"}),
    ("hot, with a gap", {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x19 91x4 stale _x2 91x9 60x90"}),
    ("hot for five minutes", {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x19 91x5 60x90"}),
    ("a little too hot", {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x19 86x40 60x60"}),
    ("slow for a tenth of the time", {"DCGM_FI_DEV_THERMAL_VIOLATION{HELD}": "0x19 6600000000+6600000000x60"}),
    ("slow for less", {"DCGM_FI_DEV_THERMAL_VIOLATION{HELD}": "0x19 5400000000+5400000000x60"}),
    ("slow by software", {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{HELD}": "0x19 32x40 0x60"}),
    ("slow by hardware", {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{HELD}": "0x19 64x20 128x20 0x60"}),
    ("hot for four minutes", {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x19 91x4 60x90"}),
]


@pytest.mark.parametrize("series", [pytest.param(series, id=name) for name, series in SCENES])
def test_portal_and_rules_agree_at_each_minute(series: Series, monitoring: Programs, tmp_path: Path) -> None:
    """A rule may read what was recorded a minute before: Prometheus evaluates groups of rules one after another."""
    both = f"({promql.firing()})[61s:1m]"
    tests = []
    for minute in MINUTES:
        tests.append(empty(f"({FIRING}) unless {SAME} last_over_time({both})", minute))
        tests.append(empty(f"(count_over_time({both}) > 1) unless {SAME} ({FIRING})", minute))

    said = run(monitoring["promtool"], tmp_path, [group(series, one, tests) for one in LAYOUTS])

    assert said == ""


@pytest.mark.parametrize("alert", RULES[FaultKind.XID])
def test_codes_of_programs_are_those_of_the_rules(alert: str) -> None:
    expression = alerts("gpu-alerts.yaml")[alert]["expr"]
    assert {int(code) for code in re.findall(r"== (\d+)", expression)} == PROGRAM_XIDS
    assert {code for code in range(1, 200) if meaning_of(FaultKind.XID, code).is_program} == PROGRAM_XIDS


def test_a_list_of_devices_that_is_too_long_is_left_out() -> None:
    few, many = {"GPU-1", "GPU-2"}, {f"GPU-{number}" for number in range(promql.DEVICES_MOST + 1)}
    assert 'DCGM_FI_DEV_FB_USED{UUID=~"GPU-1|GPU-2"}' in promql.holders(few)
    assert "UUID=~" not in promql.holders(many)
    assert "UUID=~" not in promql.measured(many)
