"""The queries for what devices did in each minute, one per field whatever the number of pods. Pure.

A series of an answer is one device of one pod, with the labels namespace, pod, UUID and, of a MIG slice, GPU_I_ID. A
scrape by ServiceMonitor renames the pod's labels to exported_namespace and exported_pod; they are renamed back. Series
of devices that no pod holds then carry the exporter's own namespace and pod, which are of no run.

Two copies of a series, as of a pair of Prometheus servers behind Thanos, are averaged. `and`: what ends within the
minute, because its scrape failed or its pod ended, does not count as a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEVICE = ("namespace", "pod", "UUID", "GPU_I_ID")


@dataclass(frozen=True)
class Metric:
    """`factor` makes the unit of its field. `device`: the label that names the device."""

    name: str
    factor: int = 1
    device: str = "UUID"
    selector: str = ""


# Activity in percent, memory in MiB, power in watts. Names of DCGM up to 4.5, of 4.6, and of AMD's exporter. DCGM has
# no utilisation of MIG instances; what it reports there is not theirs.
_NO_SLICE = 'GPU_I_ID=""'
METRICS: Mapping[str, tuple[Metric, ...]] = {
    "utilisation": (
        Metric("DCGM_FI_DEV_GPU_UTIL", selector=_NO_SLICE),
        Metric("DCGM_FI_DEV_GPU_UTIL_RATIO", 100, selector=_NO_SLICE),
        Metric("gpu_gfx_activity", device="gpu_id"),
    ),
    "engine": (Metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 100), Metric("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 100)),
    "memory_used": (Metric("DCGM_FI_DEV_FB_USED"), Metric("gpu_used_vram", device="gpu_id")),
    "memory_free": (Metric("DCGM_FI_DEV_FB_FREE"), Metric("gpu_free_vram", device="gpu_id")),
    "power": (
        Metric("DCGM_FI_DEV_POWER_USAGE", selector=_NO_SLICE),
        Metric("DCGM_FI_DEV_BOARD_POWER_WATTS", selector=_NO_SLICE),
        Metric("gpu_package_power", device="gpu_id"),
    ),
}


def queries(own: Mapping[str, str]) -> dict[str, str]:
    """Field → query. `own`: the site's names, in the unit of the first known one."""
    return {name: _query(_named(own[name], known) if name in own else known) for name, known in METRICS.items()}


def _named(name: str, known: tuple[Metric, ...]) -> tuple[Metric, ...]:
    first = known[0]
    return (Metric(name, first.factor, first.device, first.selector),)


def _query(metrics: tuple[Metric, ...]) -> str:
    return " or ".join(_of_device(one) for one in metrics)


def _of_device(metric: Metric) -> str:
    selected = f"{metric.name}{{{', '.join(filter(None, [metric.selector, _POD]))}}}"
    found = f"avg_over_time({selected}[1m]) and {selected}"
    for name, source in (("namespace", "exported_namespace"), ("pod", "exported_pod"), ("UUID", metric.device)):
        if name != source:
            found = f'label_replace({found}, "{name}", "$1", "{source}", "(.+)")'
    times = f"{metric.factor} * " if metric.factor != 1 else ""
    return f"{times}avg by ({', '.join(DEVICE)}) ({found})"


_POD = 'pod!=""'
