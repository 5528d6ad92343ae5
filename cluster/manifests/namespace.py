"""A team's namespace as Kubernetes objects: network policies, limits, rights, and its queues."""

from __future__ import annotations

from cluster.manifests import names
from cluster.manifests.metadata import KUEUE_API, Manifest, object_meta
from cluster.manifests.specs import OBJECT_COUNTS, NamespaceSpec, QuotaCell

PORTAL_NAMESPACE = "gpu-portal"
SERVICE_ACCOUNT = "gpu-portal"
NOTEBOOK_PORT = 8888
# What a container gets that asks for nothing: the quota counts cpu and memory, so every container has to ask.
CONTAINER_DEFAULT = {"cpu": "1", "memory": "2Gi"}


def namespace_objects(spec: NamespaceSpec) -> list[Manifest]:
    """In the order in which it can exist. The queue comes last: nothing is admitted before its walls stand."""
    return [*isolation_objects(spec), *queue_objects(spec)]


def isolation_objects(spec: NamespaceSpec) -> list[Manifest]:
    return [
        namespace(spec),
        limit_range(spec),
        resource_quota(spec),
        network_ingress(spec),
        network_egress(spec),
        service_account(spec),
        tenant_binding(spec),
        logs_binding(spec),
    ]


def queue_objects(spec: NamespaceSpec) -> list[Manifest]:
    if spec.cells is None:
        return []
    return [*grace_cohort(spec), cluster_queue(spec, spec.cells), local_queue(spec)]


def namespace(spec: NamespaceSpec) -> Manifest:
    # "warn" as well: a Job whose pods would be refused then answers with a warning, before any pod exists.
    security = {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": object_meta(spec.name, owner=spec.owner, labels=security),
    }


def limit_range(spec: NamespaceSpec) -> Manifest:
    """Defaults for cpu and memory only: a maximum for GPUs would hand that many to every container that names none."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": _meta(spec, names.QUOTA),
        "spec": {
            "limits": [{"type": "Container", "default": CONTAINER_DEFAULT, "defaultRequest": CONTAINER_DEFAULT}],
        },
    }


def resource_quota(spec: NamespaceSpec) -> Manifest:
    """Only `requests.` and DRA device keys for devices: other spellings are accepted and never enforced."""
    hard = {
        **{key: str(units) for key, units in spec.quota.devices.items()},
        **{key: str(count) for key, count in OBJECT_COUNTS.items()},
        "requests.cpu": str(spec.quota.cpu),
        "requests.memory": f"{spec.quota.memory_gib}Gi",
    }
    if spec.quota.storage_gib is not None:
        hard["requests.storage"] = f"{spec.quota.storage_gib}Gi"
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": _meta(spec, names.QUOTA),
        "spec": {"hard": dict(sorted(hard.items()))},
    }


def network_ingress(spec: NamespaceSpec) -> Manifest:
    """Nobody comes in but the namespace's own pods, the gateway, which has asked who it is, and the worker, which asks
    notebooks how they are used.
    """
    components = {"key": "app.kubernetes.io/component", "operator": "In", "values": ["gateway", "worker"]}
    portal = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PORTAL_NAMESPACE}},
        "podSelector": {"matchExpressions": [components]},
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(spec, "gpu-portal-ingress"),
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [{"podSelector": {}}]},
                {"from": [portal], "ports": [{"protocol": "TCP", "port": NOTEBOOK_PORT}]},
            ],
        },
    }


def network_egress(spec: NamespaceSpec) -> Manifest:
    """Out to everywhere but link-local addresses: there clouds answer any pod with the node's own credentials.

    Data sets and package indexes live at addresses that we cannot know, so nothing else is closed; other tenants are
    closed by their own ingress policies. Pods are named apart from address blocks: several network plugins do not
    match pods by block.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(spec, "gpu-portal-egress"),
        "spec": {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [
                {"to": [{"namespaceSelector": {}}]},
                {
                    "to": [
                        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}},
                        {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10", "fd00:ec2::254/128"]}},
                    ]
                },
            ],
        },
    }


def service_account(spec: NamespaceSpec) -> Manifest:
    """What workloads run as. No token: code of a tenant has nothing to ask of the API server."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _meta(spec, SERVICE_ACCOUNT),
        "automountServiceAccountToken": False,
    }


def tenant_binding(spec: NamespaceSpec) -> Manifest:
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": spec.group}
    return _role_binding(spec, names.TENANT_ROLE, subject)


def logs_binding(spec: NamespaceSpec) -> Manifest:
    """The one thing that the doors process may do in the cluster: follow the logs of this namespace's pods."""
    subject = {"kind": "ServiceAccount", "name": "doors", "namespace": PORTAL_NAMESPACE}
    return _role_binding(spec, names.LOGS_ROLE, subject)


# A queue all of whose flavors have a topology, or that has none, admits no pod without a GPU: it waits for a topology
# assignment that Kueue never makes. One plain flavor in the queue is enough. Its quota is of nothing, so that its
# number is free for another use: Kueue wakes nobody when a flavor changes, but does when a queue's quota does.
def plain_resource_group(wakes: int = 0) -> Manifest:
    quota = {"name": names.PLAIN_RESOURCE, "nominalQuota": str(wakes), "borrowingLimit": "0"}
    return {
        "coveredResources": [names.PLAIN_RESOURCE],
        "flavors": [{"name": names.PLAIN_FLAVOR, "resources": [quota]}],
    }


PLAIN_RESOURCE_GROUP = plain_resource_group()


def cluster_queue(spec: NamespaceSpec, cells: tuple[QuotaCell, ...]) -> Manifest:
    """One resource group per resource name. Promised units are taken back from borrowers at once (reclaim: Any)."""
    return {
        "apiVersion": KUEUE_API,
        "kind": "ClusterQueue",
        "metadata": object_meta(spec.name, owner=spec.owner),
        "spec": {
            "cohortName": spec.name if spec.grace else spec.cohort,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": spec.name}},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [*resource_groups(cells), plain_resource_group(spec.wakes)],
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "stopPolicy": "Hold" if spec.is_held else "None",
        },
    }


def grace_cohort(spec: NamespaceSpec) -> list[Manifest]:
    """Of the namespace's queue alone, between it and the cohort of all, while a grant is in its grace.

    The queue's own numbers have fallen already: nothing fits in it, whatever ends. What still runs is within its
    cohort's numbers, so nobody outside reclaims it.
    """
    if not spec.grace:
        return []
    groups = resource_groups(spec.grace)
    wanted = {"parentName": spec.cohort, "resourceGroups": groups}
    return [
        {
            "apiVersion": KUEUE_API,
            "kind": "Cohort",
            "metadata": object_meta(spec.name, owner=spec.owner),
            "spec": wanted,
        }
    ]


def local_queue(spec: NamespaceSpec) -> Manifest:
    """Never named `default`: that one would capture pods without a queue label."""
    return {
        "apiVersion": KUEUE_API,
        "kind": "LocalQueue",
        "metadata": _meta(spec, names.LOCAL_QUEUE),
        "spec": {"clusterQueue": spec.name, "stopPolicy": "None"},
    }


def resource_groups(cells: tuple[QuotaCell, ...]) -> list[Manifest]:
    """Groups by resource name, flavors by name: the same quota is always the same object, in any order of rows."""
    by_resource: dict[str, list[QuotaCell]] = {}
    for cell in sorted(cells):
        by_resource.setdefault(cell.resource, []).append(cell)
    return [
        {"coveredResources": [resource], "flavors": [_flavor_quota(cell) for cell in group]}
        for resource, group in by_resource.items()
    ]


def _flavor_quota(cell: QuotaCell) -> Manifest:
    quota = {"name": cell.resource, "nominalQuota": str(cell.nominal)}
    if cell.borrowing_limit is not None:
        quota["borrowingLimit"] = str(cell.borrowing_limit)
    return {"name": cell.flavor, "resources": [quota]}


def _role_binding(spec: NamespaceSpec, role: str, subject: Manifest) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _meta(spec, role),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _meta(spec: NamespaceSpec, name: str) -> Manifest:
    return object_meta(name, owner=spec.owner, namespace=spec.name)
