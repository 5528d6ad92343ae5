"""Removes what a test left in the cluster, with a fifth of the requests that Kubernetes itself sends.

The namespace controller empties and lists every kind, some ninety requests for each namespace: almost half of all
requests of a run. It begins five seconds after a namespace is deleted. Before that, this module has deleted what tests
create in a namespace and removed its finalizer. Nothing can be created in it meanwhile.
"""

from __future__ import annotations

from typing import Any

from devcluster.client.kube import Api, ApiError, path_of
from tests.plugin import read_services

CLUSTER_SCOPED = (
    "kueue.x-k8s.io/v1beta2/clusterqueues",
    "kueue.x-k8s.io/v1beta2/cohorts",
    "kueue.x-k8s.io/v1beta2/resourceflavors",
)
# Owners come before the objects that they would create again.
KINDS = (
    "batch/v1/jobs",
    "v1/pods",
    "kueue.x-k8s.io/v1beta2/workloads",
    "kueue.x-k8s.io/v1beta2/localqueues",
    "resource.k8s.io/v1/resourceclaims",
    "resource.k8s.io/v1/resourceclaimtemplates",
    "networking.k8s.io/v1/networkpolicies",
    "rbac.authorization.k8s.io/v1/rolebindings",
    "v1/persistentvolumeclaims",
    "v1/services",
    "v1/secrets",
    "v1/resourcequotas",
    "v1/limitranges",
    "v1/serviceaccounts",
    "v1/configmaps",
    "v1/events",
)
# No grace period: no test reads these pods any more.
DELETION = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "gracePeriodSeconds": 0}


def remove_from_cluster(admin: Api, unique: str) -> None:
    """Removes namespaces, queues, flavors and cohorts whose names contain a test's own eight characters."""
    for item in admin.list("v1/namespaces"):
        if unique in item["metadata"]["name"]:
            remove_namespace(admin, item)
    for resource in CLUSTER_SCOPED:
        for item in admin.list(resource):
            if unique in item["metadata"]["name"]:
                admin.delete(resource, item["metadata"]["name"])


def remove_namespace(admin: Api, namespace: dict[str, Any]) -> None:
    """Removes it with all kinds that tests create. A developer's own cluster may have more kinds; there Kubernetes does
    it.
    """
    name = namespace["metadata"]["name"]
    if "deletionTimestamp" in namespace["metadata"]:
        return  # the controller has already begun
    admin.delete("v1/namespaces", name)
    if not read_services()["kubelet_url"]:
        return
    for resource in KINDS:
        admin.request("DELETE", path_of(resource, namespace=name), DELETION)
    released = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
    try:
        admin.request("PUT", path_of("v1/namespaces", name, subresource="finalize"), released)
    except ApiError as error:
        if error.status not in (404, 409):
            raise
