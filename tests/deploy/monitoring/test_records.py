"""Recording rules give one series for each device and holder, whatever the exporter's version and labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster.controlplane.programs import Programs
from tests.deploy.monitoring.promtool import LAYOUTS, Json, Series, run, written

GPU = 'hostname="a100-1", UUID="GPU-1", modelName="A100"'
HELD = f'{GPU}, namespace="team-a", pod="train-1"'
SLICE = 'HELD,GPU_I_ID="7",GPU_I_PROFILE="1g.10gb"'


@dataclass(frozen=True)
class Case:
    what: str
    series: Series
    record: str
    samples: dict[str, float]
    at: str = "20m"


CASES = (
    Case("the holder", {}, "gpu:active:avg5m", {HELD: 0.9}),
    Case(
        "a device without a pod has no holder",
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": None, "DCGM_FI_PROF_GR_ENGINE_ACTIVE{FREE}": "0.5x120"},
        "gpu:active:avg5m",
        {},
    ),
    Case(
        "without profiling metrics: those of a whole GPU, in percent",
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": None, "DCGM_FI_DEV_GPU_UTIL{HELD}": "40x120"},
        "gpu:active:avg5m",
        {HELD: 0.4},
    ),
    Case(
        "a slice is not what the whole GPU reports",
        {
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": None,
            f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{SLICE}}}": "0.8x120",
            "DCGM_FI_DEV_GPU_UTIL{HELD}": "0x120",
        },
        "gpu:active:avg5m",
        {f'{HELD}, GPU_I_ID="7", GPU_I_PROFILE="1g.10gb"': 0.8},
    ),
    Case("memory in bytes", {}, "gpu:memory_used_bytes:max", {HELD: 40000 * 2**20}),
    Case("memory in bytes", {}, "gpu:memory_free_bytes:max", {HELD: 40000 * 2**20}),
    # With a series for each replica of a time-sliced GPU, all say the same of the GPU.
    Case(
        "power of a GPU counts once",
        {f'DCGM_FI_DEV_POWER_USAGE{{HELD,vgpu="{number}"}}': "300x120" for number in range(4)},
        "gpu:power_watts:max",
        {GPU: 300},
    ),
    Case("temperature", {}, "gpu:temperature_celsius:max", {GPU: 40}),
    Case("nanoseconds", {"DCGM_FI_DEV_THERMAL_VIOLATION{HELD}": "3000000000x120"}, "gpu:thermal_violation_seconds:max",
         {GPU: 3}),
    Case(
        "errors of both spellings and each kind",
        {
            "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{HELD}": "1x120",
            "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{HELD}": "2x120",
            "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL{HELD}": "3x120",
        },
        "gpu:nvlink_errors:max",
        {f'{GPU}, kind="replay"': 1, f'{GPU}, kind="recovery"': 2, f'{GPU}, kind="data CRC"': 3},
    ),
    Case("units of nodes", {}, "node:gpus_allocatable:sum", {'node="a100-1", resource="nvidia_com_gpu"': 4}),
    Case(
        "containers of a pod, and no other resources",
        {
            'kube_pod_container_resource_requests{namespace="team-a",pod="train-1",container="side",node="a100-1",'
            'resource="nvidia_com_gpu",unit="integer"}': "2x120",
            'kube_pod_container_resource_requests{namespace="team-a",pod="train-1",container="side",node="a100-1",'
            'resource="cpu",unit="core"}': "8x120",
        },
        "namespace:gpus_held:sum",
        {'namespace="team-a", resource="nvidia_com_gpu"': 3},
    ),
    Case(
        "a queued pod holds nothing, one that is starting does",
        {
            'kube_pod_status_phase{namespace="team-a",pod="train-1",phase="Running"}': "0x120",
            'kube_pod_status_phase{namespace="team-a",pod="train-1",phase="Pending"}': "1x120",
            'kube_pod_status_phase{namespace="team-a",pod="queued",phase="Pending"}': "1x120",
            'kube_pod_container_resource_requests{namespace="team-a",pod="queued",container="main",'
            'resource="nvidia_com_gpu",unit="integer"}': "2x120",
        },
        "namespace:gpus_held:sum",
        {'namespace="team-a", resource="nvidia_com_gpu"': 1},
    ),
    Case(
        "a pod that has ended holds nothing",
        {
            'kube_pod_status_phase{namespace="team-a",pod="train-1",phase="Running"}': "0x120",
            'kube_pod_status_phase{namespace="team-a",pod="train-1",phase="Succeeded"}': "1x120",
        },
        "namespace:gpus_held:sum",
        {},
    ),
    Case("before it is known for 30 minutes", {}, "pod:gpu_active:max_avg30m", {}, at="29m"),
    Case("a mean of 30 minutes", {}, "pod:gpu_active:max_avg30m", {'namespace="team-a", pod="train-1"': 0.9}, at="36m"),
    Case(
        "the busiest of its devices",
        {
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": "0x120",
            f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{SLICE}}}": "0.4x120",
        },
        "pod:gpu_active:max_avg30m",
        {'namespace="team-a", pod="train-1"': 0.4},
        at="60m",
    ),
    Case(
        "an idle pod, with what it holds",
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": "0.01x120"},
        "pod:gpus_idle:sum",
        {'namespace="team-a", pod="train-1", node="a100-1", resource="nvidia_com_gpu"': 1},
        at="60m",
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.record}: {case.what}")
def test_a_record_has_these_samples_and_no_others(case: Case, monitoring: Programs, tmp_path: Path) -> None:
    samples = [{"labels": f"{case.record}{{{labels}}}", "value": value} for labels, value in case.samples.items()]
    asked = [{"expr": case.record, "eval_time": case.at, "exp_samples": samples}]
    tests: list[Json] = [
        {"interval": "1m", "name": one.name, "input_series": written(case.series, one), "promql_expr_test": asked}
        for one in LAYOUTS
    ]

    assert run(monitoring["promtool"], tmp_path, tests) == ""
