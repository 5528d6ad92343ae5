"""The objects of a namespace in the cluster."""

from __future__ import annotations

from typing import Any

from devcluster.client.kube import Api
from portal.core.due import owner_label
from tenants.models import Namespace

KINDS = {
    "Namespace": "v1/namespaces",
    "ResourceQuota": "v1/resourcequotas",
    "LimitRange": "v1/limitranges",
    "ServiceAccount": "v1/serviceaccounts",
    "NetworkPolicy": "networking.k8s.io/v1/networkpolicies",
    "RoleBinding": "rbac.authorization.k8s.io/v1/rolebindings",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2/clusterqueues",
    "LocalQueue": "kueue.x-k8s.io/v1beta2/localqueues",
}


def objects_of(admin: Api, namespace: Namespace) -> list[dict[str, Any]]:
    """Returns all objects with this namespace and its row's owner label; other databases also count from 1."""
    found = [item | {"kind": kind} for kind, path in KINDS.items() for item in admin.list(path)]
    return [
        item
        for item in found
        if item["metadata"].get("labels", {}).get("gpu-portal/owner") == owner_label(namespace)
        and item["metadata"].get("namespace", item["metadata"]["name"]) == namespace.name
    ]


def queue_of(admin: Api, namespace: Namespace) -> dict[str, Any]:
    return admin.get(KINDS["ClusterQueue"], namespace.name)


def stop_policy(admin: Api, namespace: Namespace) -> str:
    return str(queue_of(admin, namespace)["spec"]["stopPolicy"])
