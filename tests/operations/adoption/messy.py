"""Namespaces as they are found on clusters that people have shared without a portal."""

from __future__ import annotations

from typing import Any

from devcluster.client.kube import Api

GPU = "nvidia.com/gpu"
KINDS = (
    "v1/resourcequotas",
    "v1/limitranges",
    "v1/services",
    "v1/serviceaccounts",
    "v1/persistentvolumeclaims",
    "v1/pods",
    "v1/secrets",
    "v1/configmaps",
    "apps/v1/deployments",
    "apps/v1/replicasets",
    "apps/v1/statefulsets",
    "batch/v1/cronjobs",
    "batch/v1/jobs",
    "networking.k8s.io/v1/networkpolicies",
    "rbac.authorization.k8s.io/v1/rolebindings",
    "kueue.x-k8s.io/v1beta2/localqueues",
    "kueue.x-k8s.io/v1beta2/workloads",
)
Json = dict[str, Any]


def pod_spec(*, gpus: int = 0) -> Json:
    devices = {"limits": {GPU: str(gpus)}} if gpus else {}
    return {
        "terminationGracePeriodSeconds": 0,
        # On no node: these are about what the API server stores.
        "nodeSelector": {"test.example/nowhere": "true"},
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "main",
                "image": "docker.io/library/python:3.14-slim",
                "resources": devices,
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    }


def _template(**labels: str) -> Json:
    return {"metadata": {"labels": labels}, "spec": pod_spec()}


def _made(kind: str, name: str, *, api: str = "v1", labels: Json | None = None, **fields: Any) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": labels or {}}, **fields}


def things(foreign_queue: str) -> list[Json]:
    """Every kind of thing that a namespace may have; a namespace has some of them."""
    rbac, storage = "rbac.authorization.k8s.io", {"requests": {"storage": "5Gi"}}
    person = {"apiGroup": rbac, "kind": "User", "name": "mallory@example.org"}
    return [
        _made("ResourceQuota", "team-quota", spec={"hard": {f"requests.{GPU}": "4", "pods": "50"}}),
        _made(
            "LimitRange",
            "defaults",
            spec={"limits": [{"type": "Container", "default": {"memory": "64Mi"}, "max": {"memory": "512Gi"}}]},
        ),
        _made("Pod", "bare", labels={"own": "yes"}, spec=pod_spec(gpus=2)),
        _made(
            "Deployment",
            "web",
            api="apps/v1",
            spec={"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": _template(app="web")},
        ),
        _made("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
        _made("LocalQueue", "research", api="kueue.x-k8s.io/v1beta2", spec={"clusterQueue": foreign_queue}),
        _made(
            "Job",
            "queued",
            api="batch/v1",
            labels={"kueue.x-k8s.io/queue-name": "research"},
            spec={"suspend": True, "template": {"spec": {**pod_spec(gpus=1), "restartPolicy": "Never"}}},
        ),
        _made(
            "RoleBinding",
            "editors",
            api=f"{rbac}/v1",
            roleRef={"apiGroup": rbac, "kind": "ClusterRole", "name": "edit"},
            subjects=[person],
        ),
        _made("NetworkPolicy", "open", api="networking.k8s.io/v1", spec={"podSelector": {}, "ingress": [{}]}),
        _made("PersistentVolumeClaim", "home", spec={"accessModes": ["ReadWriteOnce"], "resources": storage}),
        _made("ServiceAccount", "robot"),
        _made("Secret", "token", stringData={"password": "not for the portal"}),
        _made("ConfigMap", "settings", data={"key": "value"}),
        _made(
            "CronJob",
            "nightly",
            api="batch/v1",
            spec={
                "schedule": "0 3 * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**pod_spec(), "restartPolicy": "Never"}}}},
            },
        ),
        _made(
            "StatefulSet",
            "database",
            api="apps/v1",
            spec={
                "serviceName": "web",
                "selector": {"matchLabels": {"app": "db"}},
                "template": _template(app="db"),
            },
        ),
    ]


LABELS: tuple[Json, ...] = (
    {},
    {"pod-security.kubernetes.io/enforce": "privileged", "owner": "physics"},
    {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/audit-version": "v1.30"},
    {"pod-security.kubernetes.io/enforce": "restricted", "istio-injection": "enabled", "empty": ""},
)


def thing(kind: str) -> Json:
    return next(one for one in things("none") if one["kind"] == kind)


def create(admin: Api, name: str, number: int, foreign_queue: str) -> None:
    """Each thing is in about half of the namespaces, by the bits of their number; the first has all of them."""
    metadata = {"name": name, "labels": LABELS[number % len(LABELS)], "annotations": {"note": f"kept {number}"}}
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for place, thing in enumerate(things(foreign_queue)):
        if number == 0 or (number * 2654435761 >> (place + 7)) & 1:
            admin.create(thing, namespace=name)


def content_of(admin: Api, name: str) -> dict[str, Json]:
    """Everything in the namespace and the namespace itself, without what the API server and controllers keep up to
    date.
    """
    bodies = {f"{kind}/{item['metadata']['name']}": item for kind in KINDS for item in admin.list(kind, namespace=name)}
    return {key: _stable(body) for key, body in {**bodies, "namespace": admin.get("v1/namespaces", name)}.items()}


def _stable(body: Json) -> Json:
    dropped = ("managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in body["metadata"].items() if key not in dropped}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}
