"""Claims pods for the scripted kubelet: while a claim lasts, a MutatingAdmissionPolicy annotates them."""

from __future__ import annotations

import time
import uuid

from devcluster.client.annotations import SCRIPTED
from devcluster.client.kube import Api
from devcluster.client.types import Json

# The namespace of the trial pod, which is only created as a dry run. No policy of the portal applies there.
PROBE_NAMESPACE = "default"


def selector_of(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def bind(api: Api, namespace: str, labels: dict[str, str]) -> str:
    """Makes the API server annotate the pods of the claim from now on, and annotates those that exist. Returns the name
    of the policy.

    Each claim has its own policy, and the policy adds an annotation with its own name. So the dry run shows that this
    policy is in effect, not the policy of another claim, which may end at the same time.
    """
    name = f"devcluster-scripted-{uuid.uuid4().hex[:8]}"
    api.create(_policy(name, when=_CREATED if labels else _BOUND))
    api.create(_binding(name, namespace, labels))
    try:
        _await_uptake(api, labels, name)
    except BaseException:
        unbind(api, name)
        raise
    for pod in api.list("v1/pods", namespace=namespace, labels=selector_of(labels)):
        body = {"metadata": {"annotations": {SCRIPTED: "true"}}}
        api.patch("v1/pods", pod["metadata"]["name"], body, namespace=namespace)
    return name


def _await_uptake(api: Api, labels: dict[str, str], name: str) -> None:
    trial = _trial_pod(labels, name)
    deadline = time.monotonic() + 15
    path = f"/api/v1/namespaces/{PROBE_NAMESPACE}/pods"
    while time.monotonic() < deadline:
        tried = api.request("POST", path, trial, params={"dryRun": "All"})
        if _claim_annotation(name) in tried["metadata"].get("annotations", {}):
            return
        time.sleep(0.05)
    raise TimeoutError("The API server did not take up the claim's admission policy within 15 s.")


def unbind(api: Api, name: str) -> None:
    for kind in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
        api.delete(f"admissionregistration.k8s.io/v1/{kind}", name)


def _claim_annotation(name: str) -> str:
    return f"devcluster/{name}"


# When a policy applies. Without labels: when a pod is bound, because annotations of a Binding are copied to its pod;
# and to the trial pod, which is never bound. With labels: when a pod is created.
_BOUND = f"has(request.subResource) && request.subResource == 'binding' || request.namespace == '{PROBE_NAMESPACE}'"
_CREATED = "!has(request.subResource) || request.subResource == ''"


def _policy(name: str, *, when: str) -> Json:
    annotations = f'{{"{SCRIPTED}": "true", "{_claim_annotation(name)}": "true"}}'
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "pods/binding"], "operations": ["CREATE"]}
    expression = f"Object{{metadata: Object.metadata{{annotations: {annotations}}}}}"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [pods]},
            "matchConditions": [{"name": "when", "expression": when}],
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}},
            ],
        },
    }


def _binding(name: str, namespace: str, labels: dict[str, str]) -> Json:
    namespaces = [namespace, PROBE_NAMESPACE]
    where = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
    matching: Json = {"namespaceSelector": {"matchExpressions": [where]}}
    if labels:
        matching["objectSelector"] = {"matchLabels": labels}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "matchResources": matching},
    }


def _trial_pod(labels: dict[str, str], name: str) -> Json:
    """The trial pod: created only as a dry run, to see whether the policy is in effect."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": PROBE_NAMESPACE, "labels": labels},
        "spec": {"containers": [{"name": "none", "image": "none"}]},
    }
