"""Whether policies and webhooks of the cluster accept what the portal creates, and what they change in a pod. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from desk.health.preflight.types import (
    ClusterFacts,
    PreflightFinding,
    Raw,
    Trial,
    TrialResult,
    failure,
    listed,
    passed,
    warning,
)

# What the pod fence (deploy/base/fence-pods.yaml) admits without a site profile: prefixes and whole names.
ALLOWED_ANNOTATIONS = (
    "kueue.x-k8s.io/",
    "gpu-portal/",
    "batch.kubernetes.io/",
    "kubectl.kubernetes.io/",
    "kubernetes.io/limit-ranger",
    "karpenter.sh/do-not-disrupt",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
)
# Tolerations that Kubernetes itself adds.
OWN_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
    "nvidia.com/",
    "amd.com/",
    "gpu.intel.com/",
    "habana.ai/",
)
FIXED = ("runtimeClassName", "schedulerName", "nodeName")
UNCHANGED = {"schedulerName": "default-scheduler"}


def check_trials(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    refused = [one for one in facts.trials if one.result is TrialResult.REFUSED]
    untried = [one for one in facts.trials if one.result is TrialResult.UNTRIED]
    for one in refused:
        told = f"The cluster refuses a {one.kind} like the portal's: {one.text}"
        yield failure("admission", told, "Exempt the namespaces of teams and gpu-portal from that policy or webhook.")
    for one in untried:
        told = f"Whether a {one.kind} like the portal's is accepted could not be tried: {one.text}"
        yield warning("admission", told, "Use a kubeconfig that may create it, after Kueue is installed.")
    if not refused and not untried:
        kinds = sorted({one.kind for one in facts.trials})
        yield passed("admission", f"Objects like the portal's are accepted, tried as dry runs: {', '.join(kinds)}.")


def check_changes(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    """What is added to a pod must be in the site profile, or the fence refuses the pod."""
    pods = [one for one in facts.trials if one.kind == "Pod" and one.answer is not None]
    found = [line for one in pods for line in _changes(one, one.answer or {})]
    if pods:
        yield from found or [passed("pod-changes", "Nothing is added to pods that the portal's policy would refuse.")]


def _changes(trial: Trial, answer: Raw) -> Iterator[PreflightFinding]:
    annotations = {*(answer["metadata"].get("annotations") or {})} - {
        *(trial.sent["metadata"].get("annotations") or {})
    }
    if foreign := sorted(key for key in annotations if not key.startswith(ALLOWED_ANNOTATIONS)):
        told = f"The cluster annotates pods: {listed(foreign)}."
        yield warning("pod-annotations", told, "List them in pod-annotations of the site profile, or use its preset.")
    sent, stored = trial.sent["spec"], answer["spec"]
    if added := sorted(_container_names(stored) - _container_names(sent)):
        told = f"The cluster adds containers to pods: {listed(added)}."
        yield warning("pod-containers", told, "Turn injection off for teams by namespace-labels of the site profile.")
    keys = {one.get("key", "") for one in stored.get("tolerations") or []}
    keys -= {one.get("key", "") for one in sent.get("tolerations") or []}
    if foreign := sorted(key or "(all)" for key in keys if not key.startswith(OWN_TAINTS)):
        told = f"The cluster adds tolerations to pods: {listed(foreign)}."
        yield warning("pod-tolerations", told, "List those of GPU nodes in gpu-taints of the site profile.")
    for name in FIXED:
        value = stored.get(name, UNCHANGED.get(name))
        if value not in (sent.get(name), UNCHANGED.get(name)):
            told = f"The cluster sets {name} of pods to {value}, which the portal's policy refuses."
            yield failure("pod-fields", told, "Exempt the namespaces of teams from that webhook or policy.")


def _container_names(spec: Raw) -> set[str]:
    return {one["name"] for one in [*spec["containers"], *(spec.get("initContainers") or [])]}
