"""The volumes of runs that wait, as the mirror shows them, and the nodes of their class that can mount them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cluster.reads.labelled_nodes import labels_by_node
from workloads.core.class_nodes import ClassNodes
from workloads.core.observation import ClaimState, Observation
from workloads.models import Run
from workloads.storage.claim_states import claim_states


def with_claims(
    cluster_id: int, namespace: str, seen: Mapping[int, Observation], runs: Mapping[int, Run]
) -> dict[int, Observation]:
    """Returns the observations, with the volume of those that wait in the queue or have a pod without a node. Of a run
    that waits for a node, only the nodes that can mount its volume remain. One query if a run with a volume waits, a
    second if one of them waits for a node and its volume is not everywhere.
    """
    waiting = {
        pk: str(runs[pk].spec["claim"])
        for pk, one in seen.items()
        if pk in runs and runs[pk].spec["claim"] and (_waits_in_queue(one) or _waits_for_node(one))
    }
    claims = claim_states(cluster_id, namespace, set(waiting.values()))
    found = {pk: claims[name] for pk, name in waiting.items() if name in claims}
    tied = {pk: claim for pk, claim in found.items() if claim.place.terms and seen[pk].nodes is not None}
    keys = {key for claim in tied.values() for key in claim.place.keys}
    labels = labels_by_node(cluster_id, [runs[pk].spec["node_labels"] for pk in tied], keys) if tied else {}
    return {
        pk: replace(one, claim=found.get(pk), nodes=_near(one.nodes, tied[pk], labels) if pk in tied else one.nodes)
        for pk, one in seen.items()
    }


def _near(nodes: ClassNodes | None, claim: ClaimState, labels: Mapping[str, Mapping[str, str]]) -> ClassNodes | None:
    if nodes is None:
        return None
    near = tuple(one for one in nodes.nodes if claim.place.admits(one.name, labels.get(one.name, {})))
    return replace(nodes, nodes=near, elsewhere=len(nodes.nodes) - len(near))


def _waits_in_queue(seen: Observation) -> bool:
    return seen.pod is None and seen.queue is not None and not seen.queue.is_true("QuotaReserved")


def _waits_for_node(seen: Observation) -> bool:
    pod = seen.pod
    placed = pod.condition("PodScheduled") if pod is not None and not pod.node else None
    return placed is not None and placed.reason == "Unschedulable"
