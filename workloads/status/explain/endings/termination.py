"""Why a pod ended, from what the cluster reports about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cluster.manifests.run import CLONE_CONTAINER
from cluster.reads.observed import Pod
from workloads.status.explain.devices import explain_device_fault
from workloads.status.explain.endings.clone import clone_failed
from workloads.status.explain.endings.disruption import ended_by_cluster
from workloads.status.explain.endings.exit_code import NEVER_STARTED, by_code
from workloads.status.explain.endings.log_text import by_log
from workloads.status.explain.endings.pod_termination import CHANGE, PodTermination, limit, pod_termination, with_memory
from workloads.status.explain.types import Explanation


def termination_explanation(pod: Pod) -> Explanation:
    return explain_termination(pod_termination(pod))


def explain_termination(ended: PodTermination) -> Explanation:
    found = ended_by_cluster(ended) if ended.comes_back else _by_itself(ended)
    parts = [
        f"{ended.pod_reason}: {ended.pod_message}" if ended.pod_reason else "",
        f"{ended.disruption}: {ended.disruption_message}" if ended.disruption and not ended.pod_reason else "",
        f"{ended.state_reason}, exit code {ended.exit_code}" if ended.exit_code is not None else ended.state_reason,
        ended.message,
    ]
    raw = "\n".join(part for part in parts if part)
    return replace(found, raw=raw, raw_from="the kubelet" if not ended.disruption else "the cluster")


def _by_itself(ended: PodTermination) -> Explanation:
    if ended.container == CLONE_CONTAINER:
        return clone_failed(ended)
    code = ended.exit_code
    facts: Mapping[str, Any] = {} if code is None else {"exit_code": code}
    if ended.state_reason == "OOMKilled":
        return Explanation(
            "out_of_memory",
            f"It exceeded {limit(ended)} and was killed (OOMKilled). This is not GPU memory.",
            "Use less memory, or request more memory or a class with more memory per unit.",
            actions=CHANGE,
            facts=with_memory(facts, ended),
        )
    if ended.state_reason in NEVER_STARTED and (found := explain_device_fault(ended.message, ended.node)):
        return replace(found, facts={**facts, **found.facts, **({"node": ended.node} if ended.node else {})})
    reason, sentence, remedy, actions = by_log(ended) or by_code(ended)
    return Explanation(reason, sentence, remedy, actions=actions, facts=facts)
