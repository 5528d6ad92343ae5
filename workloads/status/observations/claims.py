"""The volumes of runs that wait, as the mirror shows them, and the nodes of their class that can mount them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cluster.reads.labelled_nodes import labels_by_node
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
    tied = {
        pk: dict(runs[pk].spec["node_labels"])
        for pk, claim in found.items()
        if claim.place.terms and (seen[pk].nodes is not None or _waits_for_node(seen[pk]))
    }
    keys = {key for pk, class_labels in tied.items() for key in (*found[pk].place.keys, *class_labels)}
    labels = labels_by_node(cluster_id, list(tied.values()), keys) if tied else {}
    return {
        pk: _placed(one, found[pk], tied[pk], labels) if pk in tied else replace(one, claim=found.get(pk))
        for pk, one in seen.items()
    }


def _placed(
    seen: Observation, claim: ClaimState, class_labels: Mapping[str, str], labels: Mapping[str, Mapping[str, str]]
) -> Observation:
    if (nodes := seen.nodes) is not None:
        near = tuple(one for one in nodes.nodes if claim.place.admits(one.name, labels.get(one.name, {})))
        return replace(seen, claim=claim, nodes=replace(nodes, nodes=near, elsewhere=len(nodes.nodes) - len(near)))
    of_class = (name for name, found in labels.items() if class_labels.items() <= found.items())
    is_away = not any(claim.place.admits(name, labels[name]) for name in of_class)
    return replace(seen, claim=replace(claim, is_out_of_reach=is_away))


def _waits_in_queue(seen: Observation) -> bool:
    return seen.pod is None and seen.queue is not None and not seen.queue.is_true("QuotaReserved")


def _waits_for_node(seen: Observation) -> bool:
    """Also while the scheduler reports nothing: it may have chosen a node where the volume is not provisioned yet."""
    return seen.pod is not None and not seen.pod.node and not seen.pod.gates
