"""A team's namespace as Kubernetes objects: network policies, limits, RBAC, and its queues."""

from __future__ import annotations

from cluster.manifests import names
from cluster.manifests.metadata import KUEUE_API, Manifest, object_meta
from cluster.manifests.site import EgressTarget
from cluster.manifests.specs import OBJECT_COUNTS, NamespaceSpec, QuotaCell

PORTAL_NAMESPACE = "gpu-portal"
SERVICE_ACCOUNT = "gpu-portal"
NOTEBOOK_PORT = 8888
# 5353: the servers of OpenShift. Policies see the port of the pod, not that of its Service.
DNS_PORTS = (53, 5353)
# Defaults for containers without requests: the quota counts cpu and memory, so every container must request them.
CONTAINER_DEFAULT = {"cpu": "1", "memory": "2Gi"}


def namespace_objects(spec: NamespaceSpec) -> list[Manifest]:
    """Returns objects in order of creation. The queue is last: nothing is admitted before quota and policies exist."""
    return [*isolation_objects(spec), *queue_objects(spec)]


def retained_objects(spec: NamespaceSpec) -> list[Manifest]:
    """Of a closed team while its volumes are kept: a ResourceQuota lets nothing run. Existing claims stay, whatever
    their number; a quota below current use only refuses new ones.
    """
    quota = resource_quota(spec)
    nothing = dict.fromkeys(quota["spec"]["hard"], "0")
    return [namespace(spec), {**quota, "spec": {"hard": nothing}}]


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
    # "warn" as well: a Job whose pods would be refused then returns a warning, before any pod exists.
    security = {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": object_meta(spec.name, owner=spec.owner, labels={**spec.site.namespace_labels, **security}),
    }


def limit_range(spec: NamespaceSpec) -> Manifest:
    """Defaults for cpu and memory only: a GPU maximum would give that many to every container that requests none."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": _meta(spec, names.QUOTA),
        "spec": {
            "limits": [{"type": "Container", "default": CONTAINER_DEFAULT, "defaultRequest": CONTAINER_DEFAULT}],
        },
    }


def resource_quota(spec: NamespaceSpec) -> Manifest:
    """Devices only as `requests.` keys and DRA device keys: other spellings are accepted and never enforced."""
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
    """Admits only the namespace's own pods, the gateway, which has authenticated the request, and the worker, which
    reads the activity of notebooks.
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
    """Everything is closed but the pods of the namespace, servers for names, and what the site opens.

    Pods that resolve names are in a namespace of the distribution's choice, so all pods are open on these ports; those
    of teams are closed by their own ingress policies. Pods are named apart from address blocks: several network plugins
    do not match pods by block.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(spec, "gpu-portal-egress"),
        "spec": {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [
                {"to": [{"podSelector": {}}]},
                {"to": [{"namespaceSelector": {}}], "ports": _ports(*DNS_PORTS)},
                *_dns_caches(spec),
                *(_opened(one) for one in spec.site.egress),
            ],
        },
    }


def _ports(*numbers: int) -> list[Manifest]:
    return [{"protocol": protocol, "port": port} for port in numbers for protocol in ("UDP", "TCP")]


def _dns_caches(spec: NamespaceSpec) -> list[Manifest]:
    """DNS caches of the nodes have link-local addresses (NodeLocal DNSCache: 169.254.20.10)."""
    blocks = [{"ipBlock": {"cidr": f"{one}/{128 if ':' in one else 32}"}} for one in spec.site.dns_addresses]
    return [{"to": blocks, "ports": _ports(DNS_PORTS[0])}] if blocks else []


def _opened(target: EgressTarget) -> Manifest:
    blocks = [
        {"ipBlock": {"cidr": cidr, **({"except": list(closed)} if closed else {})}} for cidr, closed in target.blocks
    ]
    return {"to": blocks, **({"ports": [{"protocol": "TCP", "port": target.port}]} if target.port else {})}


def service_account(spec: NamespaceSpec) -> Manifest:
    """The account of workloads. No token: a team's code needs nothing from the API server."""
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
    """The only permission of the doors process in the cluster: follow the logs of this namespace's pods. The worker
    keeps the last log of a run.
    """
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": PORTAL_NAMESPACE} for name in ("doors", "worker")]
    return _role_binding(spec, names.LOGS_ROLE, *subjects)


# A queue whose flavors all have a topology, or that has no flavors, admits no pod without a GPU: the pod waits for a
# topology assignment that Kueue never makes. One flavor without topology in the queue is enough. It is for a resource
# that nobody requests, so its quota number can serve another purpose: Kueue does not requeue when a flavor changes, but
# does when a queue's quota changes.
def plain_resource_group(wakes: int = 0) -> Manifest:
    quota = {"name": names.PLAIN_RESOURCE, "nominalQuota": str(wakes), "borrowingLimit": "0"}
    return {
        "coveredResources": [names.PLAIN_RESOURCE],
        "flavors": [{"name": names.PLAIN_FLAVOR, "resources": [quota]}],
    }


PLAIN_RESOURCE_GROUP = plain_resource_group()


def cluster_queue(spec: NamespaceSpec, cells: tuple[QuotaCell, ...]) -> Manifest:
    """One resource group per resource name. The team's own units are reclaimed from borrowers at once (reclaim:
    Any).
    """
    return {
        "apiVersion": KUEUE_API,
        "kind": "ClusterQueue",
        "metadata": object_meta(spec.name, owner=spec.owner),
        "spec": {
            "cohortName": names.own_cohort(spec.name) if spec.grace else spec.cohort,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": spec.name}},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [*resource_groups(cells), plain_resource_group(spec.wakes)],
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "stopPolicy": "Hold" if spec.is_held else "None",
        },
    }


def grace_cohort(spec: NamespaceSpec) -> list[Manifest]:
    """A Cohort for the namespace's queue alone, between it and the shared Cohort, during the grace period of a grant.

    The queue's own quota is already lower, so nothing new fits in it. What still runs is within this Cohort's quota, so
    other queues do not reclaim it.
    """
    if not spec.grace:
        return []
    groups = resource_groups(spec.grace)
    wanted = {"parentName": spec.cohort, "resourceGroups": groups}
    return [
        {
            "apiVersion": KUEUE_API,
            "kind": "Cohort",
            "metadata": object_meta(names.own_cohort(spec.name), owner=spec.owner),
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
    """Sorts groups by resource name and flavors by name: the same quota gives the same object, in any order of rows."""
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


def _role_binding(spec: NamespaceSpec, role: str, *subjects: Manifest) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _meta(spec, role),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }


def _meta(spec: NamespaceSpec, name: str) -> Manifest:
    return object_meta(name, owner=spec.owner, namespace=spec.name)
