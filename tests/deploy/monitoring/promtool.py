"""Series as promtool and Prometheus read them, and what promtool says about rules.

Every case is tried with each way in which the metrics of dcgm-exporter may arrive. In the text of a series, HELD stands
for the labels of a GPU that the pod team-a/train-1 holds, FREE for those of the same GPU without a pod, UP for those of
the exporter's target.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.shipped import DEPLOY

RULES = DEPLOY / "monitoring" / "rules"
Series = Mapping[str, str | None]
Json = dict[str, Any]

_TARGET = 'job="nvidia-dcgm-exporter",instance="10.0.0.7:9400"'
_GPU = 'UUID="GPU-1",gpu="0",device="nvidia0",modelName="A100"'
_OWN = 'namespace="gpu-operator",pod="exporter-1",container="exporter"'
# DCGM 4.6 has other names for the same fields.
NEW_NAMES = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
    "DCGM_FI_DEV_GPU_UTIL": "DCGM_FI_DEV_GPU_UTIL_RATIO",
    "DCGM_FI_DEV_GPU_TEMP": "DCGM_FI_DEV_GPU_TEMP_CELSIUS",
    "DCGM_FI_DEV_POWER_USAGE": "DCGM_FI_DEV_BOARD_POWER_WATTS",
    "DCGM_FI_DEV_XID_ERRORS": "DCGM_FI_DEV_XID_ERROR",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "DCGM_FI_DEV_ROW_REMAP_FAILED",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    **{
        f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL": f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_TOTAL"
        for kind in ("REPLAY", "RECOVERY", "CRC_DATA")
    },
}


@dataclass(frozen=True)
class Layout:
    name: str
    up: str
    held: str
    free: str
    renamed: Mapping[str, str] = field(default_factory=dict)

    def write(self, series: str) -> str:
        name, _, labels = series.partition("{")
        for word, text in (("HELD", self.held), ("FREE", self.free), ("UP", self.up)):
            labels = labels.replace(word, text)
        return self.renamed.get(name, name) + ("{" + labels if labels else "")


LAYOUTS = (
    Layout(
        "a ServiceMonitor",
        up=f"{_TARGET},{_OWN}",
        held=f'{_TARGET},{_OWN},{_GPU},Hostname="a100-1",exported_namespace="team-a",exported_pod="train-1"',
        free=f'{_TARGET},{_OWN},{_GPU},Hostname="a100-1"',
    ),
    Layout(
        "a ServiceMonitor that honours labels",
        up=f"{_TARGET},{_OWN}",
        held=f'{_TARGET},{_GPU},Hostname="a100-1",namespace="team-a",pod="train-1"',
        free=f'{_TARGET},{_OWN},{_GPU},Hostname="a100-1"',
    ),
    Layout(
        "a target without labels, and the names of DCGM 4.6",
        up=_TARGET,
        held=f'{_TARGET},{_GPU},hostname="a100-1",namespace="team-a",pod="train-1"',
        free=f'{_TARGET},{_GPU},hostname="a100-1"',
        renamed=NEW_NAMES,
    ),
)
# A node with one GPU that is well and in use, for two hours.
HEALTHY: Series = {
    "up{UP}": "1x120",
    "DCGM_FI_DEV_GPU_TEMP{HELD}": "40x120",
    "DCGM_FI_DEV_XID_ERRORS{HELD}": "0x120",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE{HELD}": "0x120",
    "DCGM_FI_DEV_FB_USED{HELD}": "40000x120",
    "DCGM_FI_DEV_FB_FREE{HELD}": "40000x120",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE{HELD}": "0.9x120",
    'kube_node_status_capacity{node="a100-1",resource="nvidia_com_gpu"}': "4x120",
    'kube_node_status_allocatable{node="a100-1",resource="nvidia_com_gpu"}': "4x120",
    'kube_pod_status_phase{namespace="team-a",pod="train-1",phase="Running"}': "1x120",
    'kube_pod_container_resource_requests{namespace="team-a",pod="train-1",container="main",node="a100-1",'
    'resource="nvidia_com_gpu",unit="integer"}': "1x120",
}


def written(series: Series, layout: Layout) -> list[Json]:
    """HEALTHY with the series of a case instead of its own; None removes one."""
    merged = {**HEALTHY, **series}
    return [{"series": layout.write(one), "values": values} for one, values in merged.items() if values is not None]


def run(promtool: Path, folder: Path, tests: list[Json]) -> str:
    """Returns what promtool found wrong, or nothing."""
    file = folder / "test.yaml"
    content = {"rule_files": [str(path) for path in sorted(RULES.glob("gpu-*.yaml"))], "evaluation_interval": "1m"}
    file.write_text(yaml.safe_dump({**content, "tests": tests}, sort_keys=False))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr if done.returncode else ""


def alerts(file: str) -> dict[str, Json]:
    groups = yaml.safe_load((RULES / file).read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}
