"""The pods of one run: how many, how many retries each has, and how workers find each other.

Several workers are an Indexed Job with a headless Service of the run's name: worker 0 is `<run>-0.<run>`. Kueue admits
all of them or none: with a topology only if all fit on nodes at that moment.
"""

from __future__ import annotations

from cluster.manifests.metadata import RUN_LABEL, Manifest, object_meta
from cluster.manifests.run_spec import RunSpec

MASTER_PORT = 29500
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
# Pods that a node refuses are counted together with nothing else while crashes end the Job.
NODE_REFUSALS = 3

_DISRUPTION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
_CRASH = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}


def job_counts(spec: RunSpec) -> Manifest:
    """Counts for the Job's spec. A pod lost with its node or evicted is replaced and not counted. A crash ends the Job
    at once, or after `retries` more tries of the same worker, since one crash mostly crashes the other workers.
    """
    rules = {"podFailurePolicy": {"rules": [_DISRUPTION] if spec.retries else [_DISRUPTION, _CRASH]}}
    pods = {"parallelism": spec.workers, "completions": spec.workers}
    if spec.workers == 1:
        return {**pods, "backoffLimit": spec.retries or NODE_REFUSALS, **rules}
    tries = (
        {"backoffLimitPerIndex": spec.retries, "maxFailedIndexes": 0}
        if spec.retries
        else {"backoffLimit": NODE_REFUSALS}
    )
    return {**pods, "completionMode": "Indexed", **tries, **rules}


def pod_subdomain(spec: RunSpec, name: str) -> Manifest:
    """Part of the pod's spec. The Job controller sets the host name, `<run>-<index>`."""
    return {"subdomain": name} if spec.workers > 1 else {}


def headless_service(spec: RunSpec, name: str, *, job_uid: str) -> Manifest:
    """DNS names for workers before they are ready, because they wait for one another. Owned by its Job."""
    port = {"name": "rendezvous", "protocol": "TCP", "port": MASTER_PORT, "targetPort": MASTER_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            **object_meta(name, owner=spec.owner, namespace=spec.namespace),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job_uid}],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {RUN_LABEL: name},
            "ports": [port],
        },
    }


# Environment of a program about its place in the run; torchrun reads its own options from PET_<OPTION>. The rank is the
# pod's: where a worker has several units, torchrun gives each of its processes its own rank.
SET_FOR_WORKERS = frozenset(
    {
        *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "NODE_RANK"),
        *("PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE"),
    }
)


def rendezvous_environment(spec: RunSpec, name: str) -> list[Manifest]:
    if spec.workers == 1:
        return []
    address, port = f"{name}-0.{name}", str(MASTER_PORT)
    index = {"fieldRef": {"fieldPath": f"metadata.annotations['{COMPLETION_INDEX}']"}}
    processes = 1 if spec.interface == "none" else spec.units
    return [
        {"name": "MASTER_ADDR", "value": address},
        {"name": "MASTER_PORT", "value": port},
        {"name": "WORLD_SIZE", "value": str(spec.workers)},
        {"name": "RANK", "valueFrom": index},
        {"name": "NODE_RANK", "valueFrom": index},
        {"name": "PET_MASTER_ADDR", "value": address},
        {"name": "PET_MASTER_PORT", "value": port},
        {"name": "PET_NNODES", "value": str(spec.workers)},
        {"name": "PET_NODE_RANK", "valueFrom": index},
        {"name": "PET_NPROC_PER_NODE", "value": str(processes)},
    ]
