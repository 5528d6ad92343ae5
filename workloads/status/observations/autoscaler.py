"""What Karpenter does for the runs whose pod waits for a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cluster.manifests.metadata import CLASS_LABEL
from cluster.reads.autoscaler.pools import PodNeed, autoscaler_for
from cluster.reads.autoscaler.queries import pools_and_claims
from workloads.core.observation import Observation
from workloads.models import Run
from workloads.status.explain.quantities import GIB


def with_autoscaler(
    cluster_id: int, seen: Mapping[int, Observation], runs: Mapping[int, Run]
) -> dict[int, Observation]:
    """Returns the observations, with the autoscaler for runs of autoscaled classes that wait for a node. Two queries if
    one does.
    """
    waiting = {pk for pk, one in seen.items() if pk in runs and _waits(one) and runs[pk].spec.get("is_autoscaled")}
    found = pools_and_claims(cluster_id) if waiting else None
    if found is None:
        return dict(seen)
    return {
        pk: replace(one, autoscaler=autoscaler_for(pod_need(runs[pk]), *found)) if pk in waiting else one
        for pk, one in seen.items()
    }


def pod_need(run: Run) -> PodNeed:
    spec = run.spec
    own = {"key": CLASS_LABEL, "operator": "Equal", "value": spec["gpu_class"], "effect": "NoSchedule"}
    resource = spec["resource"] if spec["interface"] == "device-plugin" else "cpu"
    requests = {"cpu": spec["cpu"] * 1000, "memory": spec["memory_gib"] * GIB}
    if resource != "cpu":
        requests[resource] = spec["units"]
    return PodNeed(spec["node_labels"], (own, *spec["tolerations"]), requests, resource)


def _waits(seen: Observation) -> bool:
    pod = seen.pod
    placed = pod.condition("PodScheduled") if pod is not None and not pod.node else None
    return placed is not None and placed.reason == "Unschedulable"
