"""The mirrored kinds, each with its record reader and its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster.client import api_kinds
from cluster.manifests.namespace import PORTAL_NAMESPACE
from cluster.manifests.site import CONFIG_MAP
from cluster.mirror.records import devices, jobs, namespaces, nodes, pods, queues, site
from cluster.mirror.records import types as record_types
from cluster.mirror.records.types import ObservedObject, Raw, RecordContent

# Created once, then written by controllers: a second writer is normal, not drift.
_NEVER_APPLIED = {
    *("Node", "Pod", "Job", "Workload", "Event", "ConfigMap"),
    *("ResourceClaim", "ResourceSlice", "DeviceClass", "Topology", "PersistentVolume", "StorageClass"),
    *("NodePool", "NodeClaim", "ClusterPolicy", "NVIDIADriver"),
}


@dataclass(frozen=True)
class MirroredKind:
    """`table`: node, pod, job, workload, warning or object. `is_everywhere`: all objects are kept; of other kinds only
    our objects and those in our namespaces. `namespace`: the only one that is read, "" for all. `has_bookmarks`: the
    API server serves it from its watch cache. `is_optional`: of a cluster that does not serve it, there are none.
    """

    name: str
    read: Callable[[Raw], RecordContent]
    table: str = "object"
    is_everywhere: bool = False
    namespace: str = ""
    field_selector: str = ""
    has_bookmarks: bool = True
    is_optional: bool = False

    @property
    def is_applied(self) -> bool:
        return self.name not in _NEVER_APPLIED

    @property
    def is_kueue(self) -> bool:
        return api_kinds.is_kueue(self.name)

    @property
    def path(self) -> str:
        """The API path of all objects of the kind that are read."""
        return api_kinds.api_path(self.name, self.namespace)

    def seen(self, raw: Raw) -> ObservedObject:
        return record_types.observed_object(self.name, raw, self.read(raw), is_applied=self.is_applied)


_ALL = (
    # Which namespaces are ours decides which objects of most other kinds are kept.
    MirroredKind("Namespace", namespaces.namespace_record, is_everywhere=True),
    MirroredKind("Node", nodes.node_record, "node", is_everywhere=True),
    MirroredKind("Pod", pods.pod_record, "pod", is_everywhere=True),
    MirroredKind("Job", jobs.job_record, "job"),
    MirroredKind("Workload", jobs.workload_record, "workload"),
    MirroredKind("ClusterQueue", queues.cluster_queue_record, is_everywhere=True),
    MirroredKind("LocalQueue", queues.local_queue_record),
    MirroredKind("Cohort", queues.cohort_record, is_everywhere=True),
    MirroredKind("ResourceFlavor", queues.resource_flavor_record, is_everywhere=True),
    MirroredKind("Topology", queues.topology_record, is_everywhere=True),
    MirroredKind("ResourceClaim", devices.resource_claim_record, is_everywhere=True),
    MirroredKind("ResourceSlice", devices.resource_slice_record, is_everywhere=True),
    MirroredKind("DeviceClass", devices.device_class_record, is_everywhere=True),
    MirroredKind(
        "ConfigMap",
        site.site_record,
        is_everywhere=True,
        namespace=PORTAL_NAMESPACE,
        field_selector=f"metadata.name={CONFIG_MAP}",
    ),
    MirroredKind("ResourceQuota", namespaces.resource_quota_record),
    MirroredKind("LimitRange", namespaces.limit_range_record),
    MirroredKind("ServiceAccount", namespaces.service_account_record),
    MirroredKind("PersistentVolumeClaim", namespaces.volume_claim_record),
    # Where the storage of a claim can be mounted.
    MirroredKind("PersistentVolume", namespaces.volume_record, is_everywhere=True),
    MirroredKind("StorageClass", namespaces.storage_class_record, is_everywhere=True),
    # Karpenter's, where it is installed.
    MirroredKind("NodePool", nodes.node_pool_record, is_everywhere=True, is_optional=True),
    MirroredKind("NodeClaim", nodes.node_claim_record, is_everywhere=True, is_optional=True),
    # Of NVIDIA's GPU Operator, where it is installed.
    MirroredKind("ClusterPolicy", nodes.gpu_operator_record, is_everywhere=True, is_optional=True),
    MirroredKind("NVIDIADriver", nodes.gpu_operator_record, is_everywhere=True, is_optional=True),
    MirroredKind("NetworkPolicy", namespaces.network_policy_record),
    MirroredKind("RoleBinding", namespaces.role_binding_record),
    MirroredKind("Event", namespaces.warning_record, "warning", field_selector="type=Warning", has_bookmarks=False),
)
KINDS = {kind.name: kind for kind in _ALL}


def followed_kinds(*, has_kueue: bool) -> list[str]:
    """Names of the kinds that a cluster serves; those of Kueue only where it is installed."""
    return [kind.name for kind in KINDS.values() if has_kueue or not kind.is_kueue]
