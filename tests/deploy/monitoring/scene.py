"""Two hours of a small cluster, as Prometheus has stored them: what each exporter says in each minute.

| pod | holds | computes |
|---|---|---|
| team-a/train-1 | GPU-1, a whole GPU of a100-1 | 90 % |
| team-a/nb-1 | GPU-2, a whole GPU of a100-1 | 1 % |
| team-b/svc-1 | slice 7 of GPU-4 of mig-1 | 50 % |
| team-b/svc-2 | slice 8 of GPU-4 of mig-1 | unknown: no metrics |

No pod holds GPU-3 of a100-1. a100-1 is scraped through a ServiceMonitor, mig-1 without labels of a target, and with the
names of DCGM 4.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

MINUTES = 120
MIB = 2**20
# The flavors of two classes: the slug and a hash.
FLAVOR, OTHER_FLAVOR = "{slug}-0a1b2c3d", "{slug}-large-99887766"

Sample = tuple[str, dict[str, str], float]


def dcgm() -> Iterator[Sample]:
    target = {"job": "nvidia-dcgm-exporter", "instance": "10.0.0.7:9400"}
    own = {**target, "namespace": "gpu-operator", "pod": "exporter-1", "container": "exporter"}
    yield "up", own, 1
    held = {"1": ("train-1", 0.9), "2": ("nb-1", 0.01), "3": ("", 0.0)}
    for number, (pod, active) in held.items():
        gpu = {**own, "gpu": number, "UUID": f"GPU-{number}", "modelName": "A100", "Hostname": "a100-1"}
        if pod:
            gpu |= {"exported_namespace": "team-a", "exported_pod": pod, "exported_container": "main"}
        yield "DCGM_FI_PROF_GR_ENGINE_ACTIVE", gpu, active
        yield "DCGM_FI_DEV_FB_USED", gpu, 30_000
        yield "DCGM_FI_DEV_FB_FREE", gpu, 50_000
        yield "DCGM_FI_DEV_POWER_USAGE", gpu, 100 * int(number)
        yield "DCGM_FI_DEV_GPU_TEMP", gpu, 40 + int(number)
    target["instance"] = "10.0.0.8:9400"
    yield "up", target, 1
    gpu = {**target, "gpu": "0", "UUID": "GPU-4", "modelName": "A100", "hostname": "mig-1", "GPU_I_PROFILE": "1g.10gb"}
    one = {**gpu, "GPU_I_ID": "7", "namespace": "team-b", "pod": "svc-1", "container": "main"}
    yield "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", one, 0.5
    for slice_ in (one, {**gpu, "GPU_I_ID": "8"}):
        yield "DCGM_FI_DEV_FB_USED", slice_, 2_000
        yield "DCGM_FI_DEV_FB_FREE", slice_, 8_000
        yield "DCGM_FI_DEV_BOARD_POWER_WATTS", slice_, 250
        yield "DCGM_FI_DEV_GPU_TEMP_CELSIUS", slice_, 60


def kube_state(slug: str) -> Iterator[Sample]:
    yield "kube_node_status_allocatable", {"node": "a100-1", "resource": "nvidia_com_gpu", "unit": "integer"}, 4
    yield "kube_node_status_allocatable", {"node": "mig-1", "resource": "nvidia_com_mig_1g_10gb", "unit": "integer"}, 7
    yield "kube_node_status_allocatable", {"node": "a100-1", "resource": "cpu", "unit": "core"}, 126
    pods = {
        ("team-a", "train-1"): ("a100-1", "nvidia_com_gpu", f"{slug}"),
        ("team-a", "nb-1"): ("a100-1", "nvidia_com_gpu", f"{slug}"),
        ("team-b", "svc-1"): ("mig-1", "nvidia_com_mig_1g_10gb", f"{slug}-large"),
        ("team-b", "svc-2"): ("mig-1", "nvidia_com_mig_1g_10gb", f"{slug}-large"),
    }
    for (namespace, pod), (node, resource, class_slug) in pods.items():
        name = {"namespace": namespace, "pod": pod, "uid": f"uid-{pod}"}
        requested = {**name, "container": "main", "node": node, "resource": resource, "unit": "integer"}
        yield "kube_pod_container_resource_requests", requested, 1
        yield "kube_pod_status_phase", {**name, "phase": "Running"}, 1
        yield "kube_pod_status_phase", {**name, "phase": "Pending"}, 0
        yield "kube_pod_labels", {**name, "label_gpu_portal_class": class_slug}, 1


def kueue(slug: str) -> Iterator[Sample]:
    """With a second manager that is not the leader: its gauges say the same."""
    flavor, other = FLAVOR.format(slug=slug), OTHER_FLAVOR.format(slug=slug)
    for role in ("leader", "follower"):
        more = {"replica_role": role, "instance": role}
        for queue, active, inadmissible, admitted in (("team-a", 2, 1, 2), ("team-b", 0, 3, 2)):
            yield "kueue_pending_workloads", {"cluster_queue": queue, "status": "active", **more}, active
            yield "kueue_pending_workloads", {"cluster_queue": queue, "status": "inadmissible", **more}, inadmissible
            yield "kueue_admitted_active_workloads", {"cluster_queue": queue, **more}, admitted
            for name, resource, used, quota in (
                (flavor, "nvidia.com/gpu", 2, 4),
                (other, "nvidia.com/mig-1g.10gb", 1, 7),
                ("gpu-portal-plain", "gpu-portal/none", 0, 0),
            ):
                cell = {"cohort": "gpu-portal", "cluster_queue": queue, "flavor": name, "resource": resource, **more}
                yield "kueue_cluster_queue_resource_usage", cell, used
                yield "kueue_cluster_queue_nominal_quota", cell, quota


def prometheus() -> Iterator[Sample]:
    labels = {"alertname": "GpuHeldIdle", "severity": "ticket", "namespace": "team-a", "pod": "nb-1"}
    yield "ALERTS", {**labels, "alertstate": "firing"}, 1
    yield "ALERTS", {"alertname": "GpuHot", "severity": "ticket", "alertstate": "pending"}, 1
    yield "ALERTS", {"alertname": "ShopDown", "severity": "page", "alertstate": "firing"}, 1


def portal(exposition: str) -> Iterator[Sample]:
    """What the portal says, from two of its processes."""
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            for process in ("web", "worker"):
                yield sample.name, {**sample.labels, "component": process, "job": "gpu-portal"}, sample.value


def is_counter(name: str) -> bool:
    return name.startswith("portal_") and name.endswith(("_total", "_bucket", "_count", "_sum"))


def openmetrics(samples: Iterator[Sample], *, begin_s: int) -> str:
    """A counter grows each minute by what it was at first; all else stays as it is."""
    lines = []
    for name, labels, value in samples:
        text = ",".join(f'{key}="{one}"' for key, one in labels.items())
        for minute in range(MINUTES):
            now = value * (minute + 1) if is_counter(name) else value
            lines.append(f"{name}{{{text}}} {now} {begin_s + 60 * minute}")
    return "\n".join([*lines, "# EOF\n"])
