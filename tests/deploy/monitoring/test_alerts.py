"""Each alert fires, clears, and does not fire in a similar case; in all other respects the node is well."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster.controlplane.programs import Programs
from tests.deploy.monitoring.promtool import LAYOUTS, Json, Layout, Series, alerts, run, written

ALERTS = alerts("gpu-alerts.yaml")
GPU = {"hostname": "a100-1", "UUID": "GPU-1", "modelName": "A100"}
POD = {"namespace": "team-a", "pod": "train-1"}
SERVICE = 'kube_pod_labels{namespace="team-a",pod="train-1",label_gpu_portal_kind="service"}'
CAPACITY = 'kube_node_status_capacity{node="a100-1",resource="nvidia_com_gpu"}'


@dataclass(frozen=True)
class Case:
    alert: str
    series: Series
    fires: str
    clears: str
    labels: dict[str, str]
    summary: str


CASES = (
    Case(
        "GpuXidHardware",
        {"DCGM_FI_DEV_XID_ERRORS{HELD}": "0x19 79x100"},
        "22m", "35m", GPU, "GPU GPU-1 on a100-1 reported XID 79.",
    ),
    # The pod ends with the error, so that the code is first seen when no pod holds the GPU.
    Case(
        "GpuXidHardware",
        {"DCGM_FI_DEV_XID_ERRORS{HELD}": "0x19 stale", "DCGM_FI_DEV_XID_ERRORS{FREE}": "_x20 79x100"},
        "25m", "35m", GPU, "GPU GPU-1 on a100-1 reported XID 79.",
    ),
    Case(
        "GpuXidProgram",
        {"DCGM_FI_DEV_XID_ERRORS{HELD}": "0x19 31x100"},
        "22m", "35m", GPU, "A program on GPU GPU-1 of a100-1 failed with XID 31.",
    ),
    Case(
        "GpuEccDoubleBit",
        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{HELD}": "0x19 1x100"},
        "22m", "35m", GPU, "Memory of GPU GPU-1 on a100-1 had errors that ECC cannot correct.",
    ),
    Case(
        "GpuRowRemapFailed",
        {"DCGM_FI_DEV_ROW_REMAP_FAILURE{HELD}": "0x19 1x40 0x60"},
        "22m", "62m", GPU, "GPU GPU-1 on a100-1 cannot replace a faulty row of its memory.",
    ),
    Case(
        "GpuHot",
        {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x19 91x40 60x60"},
        "27m", "62m", GPU, "GPU GPU-1 on a100-1 has 91 °C.",
    ),
    # Nanoseconds: a quarter of each minute.
    Case(
        "GpuThermalThrottling",
        {"DCGM_FI_DEV_THERMAL_VIOLATION{HELD}": "0x19 15000000000+15000000000x40 615000000000x60"},
        "30m", "70m", GPU, "GPU GPU-1 on a100-1 computes slower because it is too hot.",
    ),
    Case(
        "GpuThermalThrottling",
        {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{HELD}": "0x19 72x40 0x60"},
        "30m", "65m", GPU, "GPU GPU-1 on a100-1 computes slower because it is too hot.",
    ),
    Case(
        "GpuNvlinkErrors",
        {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{HELD}": "3x19 4x100"},
        "22m", "35m", {**GPU, "kind": "recovery"}, "NVLink of GPU GPU-1 on a100-1 has recovery errors.",
    ),
    Case(
        "GpuMemoryLow",
        {
            SERVICE: "1x120",
            "DCGM_FI_DEV_FB_USED{HELD}": "79900x40 40000x80",
            "DCGM_FI_DEV_FB_FREE{HELD}": "1500x40 41400x80",
        },
        "15m", "45m", {**GPU, **POD}, "The service team-a/train-1 has only 1.465GiB of GPU memory left.",
    ),
    Case(
        "GpuHeldIdle",
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": "0.01x80 0.9x40"},
        "65m", "85m", {**POD, "node": "a100-1", "resource": "nvidia_com_gpu"},
        "team-a/train-1 holds 1 nvidia_com_gpu and has not computed for an hour.",
    ),
    Case(
        "GpuExporterMissing",
        {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x9 stale _x20 40x80"},
        "22m", "35m", {"node": "a100-1"}, "Node a100-1 has GPUs and no GPU metrics.",
    ),
    Case(
        "GpuRequestsUnknown", {CAPACITY: "4x9 stale _x20 4x80"}, "22m", "35m", {}, "kube-state-metrics has no series."
    ),
    Case(
        "MonitoringTargetDown",
        {'up{job="kube-state-metrics",instance="10.0.0.9:8080"}': "1x9 0x20 1x80"},
        "16m", "35m", {"job": "kube-state-metrics", "instance": "10.0.0.9:8080"},
        "Prometheus cannot read 10.0.0.9:8080 of kube-state-metrics.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Neighbour:
    """A case in which no alert fires, at any minute of those that are asked, up to the last one."""

    alert: str
    what: str
    series: Series
    last: int = 50


NEIGHBOURS = (
    Neighbour("GpuXidHardware", "the code of an old error", {"DCGM_FI_DEV_XID_ERRORS{HELD}": "79x120"}),
    Neighbour(
        "GpuXidHardware",
        "an old code moves from pod to pod",
        {"DCGM_FI_DEV_XID_ERRORS{HELD}": "79x19 stale", "DCGM_FI_DEV_XID_ERRORS{FREE}": "_x20 79x100"},
    ),
    Neighbour("GpuXidHardware", "DCGM starts again", {"DCGM_FI_DEV_XID_ERRORS{HELD}": "79x19 _x2 0x90"}),
    Neighbour("GpuXidHardware", "no series", {"DCGM_FI_DEV_XID_ERRORS{HELD}": None}),
    Neighbour("GpuXidProgram", "the code of an old error", {"DCGM_FI_DEV_XID_ERRORS{HELD}": "31x120"}),
    Neighbour("GpuEccDoubleBit", "errors of before", {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{HELD}": "2x120"}),
    Neighbour("GpuEccDoubleBit", "a driver that starts again", {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{HELD}": "2x19 0x100"}),
    Neighbour(
        "GpuRowRemapFailed", "rows that were remapped", {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{HELD}": "2x120"}
    ),
    Neighbour("GpuHot", "hot for a moment", {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x19 91x3 60x90"}),
    Neighbour("GpuHot", "warm", {"DCGM_FI_DEV_GPU_TEMP{HELD}": "85x120"}),
    Neighbour(
        "GpuThermalThrottling", "was hot before", {"DCGM_FI_DEV_THERMAL_VIOLATION{HELD}": "900000000000x120"}
    ),
    # 4: limited by its power, 1: idle.
    Neighbour(
        "GpuThermalThrottling", "limited by its power", {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{HELD}": "4x20 1x60"}
    ),
    Neighbour("GpuNvlinkErrors", "errors of before", {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{HELD}": "7x120"}),
    Neighbour(
        "GpuNvlinkErrors",
        "flow control, which the link corrects",
        {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL{HELD}": "0+5x120"},
    ),
    Neighbour(
        "GpuMemoryLow",
        "training fills the memory",
        {"DCGM_FI_DEV_FB_USED{HELD}": "79900x120", "DCGM_FI_DEV_FB_FREE{HELD}": "1500x120"},
    ),
    Neighbour(
        "GpuMemoryLow",
        "a small slice that is half empty",
        {SERVICE: "1x120", "DCGM_FI_DEV_FB_USED{HELD}": "900x120", "DCGM_FI_DEV_FB_FREE{HELD}": "1100x120"},
    ),
    Neighbour(
        "GpuHeldIdle",
        "idle, and held by no pod",
        {
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": None,
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{FREE}": "0x120",
        },
        118,
    ),
    Neighbour("GpuHeldIdle", "no metrics", {"DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": None}, 118),
    Neighbour("GpuHeldIdle", "metrics that ended", {"DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": "0.01x40 stale"}, 118),
    Neighbour("GpuHeldIdle", "a short pause", {"DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": "0.9x29 0.01x50 0.9x40"}, 118),
    Neighbour(
        "GpuHeldIdle",
        "the pod has ended",
        {
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": "0.01x120",
            'kube_pod_status_phase{namespace="team-a",pod="train-1",phase="Running"}': "1x40 0x80",
        },
        118,
    ),
    Neighbour(
        "GpuExporterMissing",
        "a node without GPUs",
        {'kube_node_status_capacity{node="cpu-1",resource="cpu"}': "64x120"},
    ),
    Neighbour(
        "GpuExporterMissing",
        "an exporter that starts again",
        {"DCGM_FI_DEV_GPU_TEMP{HELD}": "40x29 stale _x5 40x80"},
    ),
    Neighbour("GpuRequestsUnknown", "kube-state-metrics starts again", {CAPACITY: "4x29 stale _x5 4x80"}),
    Neighbour("MonitoringTargetDown", "a target of others", {'up{job="web-shop",instance="10.1.0.1:80"}': "0x120"}),
    Neighbour(
        "MonitoringTargetDown",
        "a target that is gone",
        {'up{job="kube-state-metrics",instance="10.0.0.9:8080"}': "1x9 0x4 stale"},
    ),
)  # fmt: skip


def expectation(at: str, firing: dict[str, list[Json]]) -> list[Json]:
    """At this moment these alerts of the file fire and no others."""
    return [{"eval_time": at, "alertname": name, "exp_alerts": firing.get(name, [])} for name in ALERTS]


def group(name: str, series: Series, layout: Layout, tests: list[Json]) -> Json:
    return {"interval": "1m", "name": f"{name}, {layout.name}", "input_series": written(series, layout),
            "alert_rule_test": tests}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_and_clears(case: Case, monitoring: Programs, tmp_path: Path) -> None:
    rule = ALERTS[case.alert]
    firing = {
        "exp_labels": {**rule["labels"], **case.labels},
        "exp_annotations": {**rule["annotations"], "summary": case.summary},
    }
    tests = [*expectation("5m", {}), *expectation(case.fires, {case.alert: [firing]}), *expectation(case.clears, {})]

    said = run(monitoring["promtool"], tmp_path, [group(case.alert, case.series, one, tests) for one in LAYOUTS])

    assert said == ""


@pytest.mark.parametrize("case", NEIGHBOURS, ids=lambda case: f"{case.alert}: {case.what}")
def test_an_alert_does_not_fire_in_a_similar_case(case: Neighbour, monitoring: Programs, tmp_path: Path) -> None:
    tests = [one for at in range(10, case.last + 1, 4) for one in expectation(f"{at}m", {})]

    said = run(monitoring["promtool"], tmp_path, [group(case.what, case.series, one, tests) for one in LAYOUTS])

    assert said == ""


def test_every_alert_has_both() -> None:
    assert {case.alert for case in CASES} == {case.alert for case in NEIGHBOURS} == ALERTS.keys()


def test_every_alert_says_what_it_is_and_what_to_do() -> None:
    for rule in ALERTS.values():
        assert rule["annotations"].keys() == {"summary", "description", "action"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert all(text.endswith(".") for text in rule["annotations"].values())
