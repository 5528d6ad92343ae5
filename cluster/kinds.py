"""What is mirrored: every kind with its path, the reader of its record and the table it is kept in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster import object_records, records
from cluster.records import Content, Raw, Seen

KUEUE = "apis/kueue.x-k8s.io/v1beta2"
# Created once, then written by controllers: a second writer is how they work, not a difference.
_NEVER_APPLIED = {
    *("Node", "Pod", "Job", "Workload", "Event"),
    *("ResourceClaim", "ResourceSlice", "DeviceClass", "Topology"),
}


@dataclass(frozen=True)
class Kind:
    """`table`: node, pod, job, workload, warning or object. `is_everywhere`: kept whoever made it; of other kinds only
    what is ours or lies in a namespace of ours. `has_bookmarks`: the API server serves it from its watch cache.
    """

    name: str
    path: str
    read: Callable[[Raw], Content]
    table: str = "object"
    is_everywhere: bool = False
    field_selector: str = ""
    has_bookmarks: bool = True

    @property
    def is_applied(self) -> bool:
        return self.name not in _NEVER_APPLIED

    @property
    def is_kueue(self) -> bool:
        return self.path.startswith("apis/kueue.x-k8s.io/")

    def seen(self, raw: Raw) -> Seen:
        return records.seen(self.name, raw, self.read(raw), is_applied=self.is_applied)


_ALL = (
    # Which namespaces are ours decides what is kept of most other kinds.
    Kind("Namespace", "api/v1/namespaces", object_records.namespace, is_everywhere=True),
    Kind("Node", "api/v1/nodes", records.node, "node", is_everywhere=True),
    Kind("Pod", "api/v1/pods", records.pod, "pod", is_everywhere=True),
    Kind("Job", "apis/batch/v1/jobs", records.job, "job"),
    Kind("Workload", f"{KUEUE}/workloads", records.workload, "workload"),
    Kind("ClusterQueue", f"{KUEUE}/clusterqueues", object_records.cluster_queue, is_everywhere=True),
    Kind("LocalQueue", f"{KUEUE}/localqueues", object_records.local_queue),
    Kind("Cohort", f"{KUEUE}/cohorts", object_records.cohort, is_everywhere=True),
    Kind("ResourceFlavor", f"{KUEUE}/resourceflavors", object_records.resource_flavor, is_everywhere=True),
    Kind("Topology", f"{KUEUE}/topologies", object_records.topology, is_everywhere=True),
    Kind("ResourceClaim", "apis/resource.k8s.io/v1/resourceclaims", object_records.resource_claim, is_everywhere=True),
    Kind(
        "ResourceSlice",
        "apis/resource.k8s.io/v1/resourceslices",
        object_records.resource_slice,
        is_everywhere=True,
    ),
    Kind("DeviceClass", "apis/resource.k8s.io/v1/deviceclasses", object_records.device_class, is_everywhere=True),
    Kind("ResourceQuota", "api/v1/resourcequotas", object_records.resource_quota),
    Kind("LimitRange", "api/v1/limitranges", object_records.limit_range),
    Kind("ServiceAccount", "api/v1/serviceaccounts", object_records.service_account),
    Kind("PersistentVolumeClaim", "api/v1/persistentvolumeclaims", object_records.volume_claim),
    Kind("NetworkPolicy", "apis/networking.k8s.io/v1/networkpolicies", object_records.network_policy),
    Kind("RoleBinding", "apis/rbac.authorization.k8s.io/v1/rolebindings", object_records.role_binding),
    Kind(
        "Event",
        "api/v1/events",
        object_records.warning,
        "warning",
        field_selector="type=Warning",
        has_bookmarks=False,
    ),
)
KINDS = {kind.name: kind for kind in _ALL}
