"""Sample Pod, Job and Deployment of a class, as text to copy: complete, commented, and accepted by a team's namespace.

`sample_objects` builds them, `sample_yaml` writes them as text. The portal itself starts only Jobs (`run.py`); the
other two are not queued; a team's namespace accepts them, and templates of claims, from operators only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cluster.manifests import names
from cluster.manifests.metadata import CLASS_LABEL, Manifest
from cluster.manifests.namespace import SERVICE_ACCOUNT
from cluster.manifests.run import (
    ANY_NODE_ANNOTATION,
    NO_DEVICES,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    container_devices,
    container_sizes,
    device_claim_spec,
    pod_identity,
    pod_placement,
)
from cluster.manifests.run_spec import PodSpec
from cluster.manifests.site import DEFAULT, SiteProfile

POD, JOB, DEPLOYMENT = "pod", "job", "deployment"
CLAIM = "devices"
APP_LABEL = "app.kubernetes.io/name"
# A word that YAML parses as text; everything else is quoted.
PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z/][A-Za-z0-9_./-]*", re.IGNORECASE)

# By path; "*" matches any element. Each comment is written once.
COMMENTS: Mapping[str, str] = {
    f"metadata.labels.{QUEUE_LABEL}": "The LocalQueue. The namespace rejects Jobs and pods without it.",
    f"metadata.labels.{CLASS_LABEL}": "The class. The Job counts against the team's quota of it.",
    f"metadata.labels.{PRIORITY_LABEL}": "Priority within the team: production, interactive or batch.",
    f"annotations.{ANY_NODE_ANNOTATION}": "Any node that fits; the queue admits only workloads that fit on a node.",
    "serviceAccountName": "No permissions and no token: workloads of a team have no access to the Kubernetes API.",
    "priorityClassName": "The only priority class that the namespace allows; it does not preempt other pods.",
    "nodeSelector": "The nodes of this class: other nodes may use the same resource name for another kind of GPU.",
    "affinity": "Avoids nodes with GPUs: their cores are for GPU workloads.",
    "tolerations": "Tolerations for the taints of the class and of its nodes. The selector chooses the nodes.",
    "securityContext.runAsNonRoot": "Required by the Pod Security level restricted, here and below.",
    "resourceClaims": "Created from the template above when the pod starts, and deleted with it.",
    "env": "No GPU without a request: images of CUDA ask for all GPUs of a node otherwise.",
    "command": "Your program.",
    "limits": "Devices under limits only: the cluster sets an equal request.",
    "strategy": "Deletes the old pod first: a rolling update would need twice the units.",
    "backoffLimit": "No retries: a failure is reported.",
}


def sample_yaml(spec: PodSpec, site: SiteProfile = DEFAULT) -> dict[str, str]:
    """Returns commented YAML for "pod", "job" and "deployment"; several documents where a claim template is needed."""
    return {kind: _documents(_HEADS[kind], found) for kind, found in sample_objects(spec, site).items()}


def sample_objects(spec: PodSpec, site: SiteProfile = DEFAULT) -> dict[str, list[Manifest]]:
    """Returns the same as objects, in the order of creation; without a namespace if `spec.namespace` is ""."""
    return {
        POD: [*_claim_templates(spec, POD), _pod(spec, site)],
        JOB: [*_claim_templates(spec, JOB), _job(spec, site)],
        DEPLOYMENT: [*_claim_templates(spec, DEPLOYMENT), _deployment(spec, site)],
    }


_HEADS: Mapping[str, tuple[str, ...]] = {
    POD: (
        "Not queued: the queue of this cluster accepts Jobs only. A team's namespace accepts this",
        "pod from operators only; others use the Job. The pod starts as soon as a",
        "node has room, and is Pending until then. It counts against the namespace's",
        "ResourceQuota, not against the team's queue quota.",
    ),
    JOB: (
        "Queued: created suspended, started when quota and a node are available.",
        "The portal creates Jobs of this form.",
    ),
    DEPLOYMENT: (
        "Not queued: the queue of this cluster accepts Jobs only. A team's namespace accepts this",
        "Deployment from operators only; others use the Job. Its pod starts as soon as a",
        "node has room and keeps its devices until the Deployment is deleted. It counts",
        "against the namespace's ResourceQuota, not against the team's queue quota.",
    ),
}


def _pod(spec: PodSpec, site: SiteProfile) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(spec, POD, _labels(spec)),
        "spec": _pod_spec(spec, POD, site, restart="Never"),
    }


def _job(spec: PodSpec, site: SiteProfile) -> Manifest:
    annotations = {ANY_NODE_ANNOTATION: "true"} if spec.interface == "device-plugin" else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(spec, JOB, {**_labels(spec), PRIORITY_LABEL: "batch"}),
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": _labels(spec), **({"annotations": annotations} if annotations else {})},
                "spec": _pod_spec(spec, JOB, site, restart="Never"),
            },
        },
    }


def _deployment(spec: PodSpec, site: SiteProfile) -> Manifest:
    name = _name(spec, DEPLOYMENT)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(spec, DEPLOYMENT, _labels(spec)),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {APP_LABEL: name}},
            "template": {
                "metadata": {"labels": {APP_LABEL: name, **_labels(spec)}},
                "spec": _pod_spec(spec, DEPLOYMENT, site, restart="Always"),
            },
        },
    }


def _claim_templates(spec: PodSpec, kind: str) -> list[Manifest]:
    if spec.interface != "dra":
        return []
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": _metadata(spec, kind, {}),
            "spec": device_claim_spec(spec),
        }
    ]


def _pod_spec(spec: PodSpec, kind: str, site: SiteProfile, *, restart: str) -> Manifest:
    is_dra = spec.interface == "dra"
    return {
        "restartPolicy": restart,
        "priorityClassName": site.priority_class,
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        **pod_placement(spec, site),
        **({"resourceClaims": [{"name": CLAIM, "resourceClaimTemplateName": _name(spec, kind)}]} if is_dra else {}),
        **(
            {"imagePullSecrets": [{"name": name} for name in site.named_pull_secrets]}
            if site.named_pull_secrets
            else {}
        ),
        "securityContext": {**pod_identity(site), "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "main",
                "image": spec.image,
                "command": ["sleep", "infinity" if kind == DEPLOYMENT else "600"],
                **({"env": [NO_DEVICES]} if spec.interface == "none" else {}),
                "resources": _resources(spec, site),
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    }


def _resources(spec: PodSpec, site: SiteProfile) -> Manifest:
    return {
        "limits": {**container_sizes(spec, site), **container_devices(spec, site)},
        **({"claims": [{"name": CLAIM}]} if spec.interface == "dra" else {}),
    }


def _labels(spec: PodSpec) -> dict[str, str]:
    return {QUEUE_LABEL: names.LOCAL_QUEUE, CLASS_LABEL: spec.gpu_class}


def _metadata(spec: PodSpec, kind: str, labels: Mapping[str, str]) -> Manifest:
    return {
        "name": _name(spec, kind),
        **({"namespace": spec.namespace} if spec.namespace else {}),
        **({"labels": dict(labels)} if labels else {}),
    }


def _name(spec: PodSpec, kind: str) -> str:
    return names.dns_label(f"my-{kind}-on-{spec.gpu_class}")


# ---- objects to text ---------------------------------------------------------------------------------------------


def _documents(head: Iterable[str], manifests: Iterable[Manifest]) -> str:
    said: set[str] = set()
    bodies = ["\n".join(_mapping(manifest, "", 0, said)) + "\n" for manifest in manifests]
    return "".join(f"# {line}\n" for line in head) + "---\n".join(bodies)


def _mapping(value: Mapping[str, Any], path: str, indent: int, said: set[str]) -> Iterator[str]:
    pad = " " * indent
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        comment = next((text for end, text in COMMENTS.items() if here == end or here.endswith(f".{end}")), "")
        if comment and comment not in said:
            said.add(comment)
            yield f"{pad}# {comment}"
        if isinstance(inner, Mapping) and inner:
            yield f"{pad}{_scalar(key)}:"
            yield from _mapping(inner, here, indent + 2, said)
        elif isinstance(inner, list) and any(isinstance(one, Mapping) for one in inner):
            yield f"{pad}{_scalar(key)}:"
            for one in inner:
                first, *rest = _mapping(one, here, indent + 2, said)
                yield f"{pad}- {first.strip()}"
                yield from rest
        else:
            yield f"{pad}{_scalar(key)}: {_scalar(inner)}"


def _scalar(value: Any) -> str:
    """Writes words unquoted, numeric text in quotes, and lists and the rest as JSON, which is valid YAML."""
    return value if isinstance(value, str) and PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
