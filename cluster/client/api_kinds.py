"""API paths of the kinds that the portal writes, mirrors or reads. Pure."""

from __future__ import annotations

from cluster.manifests.metadata import KUEUE_API

_KUEUE = f"apis/{KUEUE_API}"
_DEVICES = "apis/resource.k8s.io/v1"
_KARPENTER = "apis/karpenter.sh/v1"

# kind → (path prefix, plural)
API_KINDS = {
    "Namespace": ("api/v1", "namespaces"),
    "Node": ("api/v1", "nodes"),
    "Pod": ("api/v1", "pods"),
    "Event": ("api/v1", "events"),
    "ResourceQuota": ("api/v1", "resourcequotas"),
    "LimitRange": ("api/v1", "limitranges"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
    "PersistentVolume": ("api/v1", "persistentvolumes"),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims"),
    "StorageClass": ("apis/storage.k8s.io/v1", "storageclasses"),
    "Service": ("api/v1", "services"),
    "Secret": ("api/v1", "secrets"),
    "ConfigMap": ("api/v1", "configmaps"),
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Job": ("apis/batch/v1", "jobs"),
    "CronJob": ("apis/batch/v1", "cronjobs"),
    "DaemonSet": ("apis/apps/v1", "daemonsets"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "ResourceClaim": (_DEVICES, "resourceclaims"),
    "ResourceClaimTemplate": (_DEVICES, "resourceclaimtemplates"),
    "ResourceSlice": (_DEVICES, "resourceslices"),
    "DeviceClass": (_DEVICES, "deviceclasses"),
    "ClusterQueue": (_KUEUE, "clusterqueues"),
    "LocalQueue": (_KUEUE, "localqueues"),
    "Cohort": (_KUEUE, "cohorts"),
    "ResourceFlavor": (_KUEUE, "resourceflavors"),
    "Topology": (_KUEUE, "topologies"),
    "Workload": (_KUEUE, "workloads"),
    "ClusterPolicy": ("apis/nvidia.com/v1", "clusterpolicies"),
    "NVIDIADriver": ("apis/nvidia.com/v1alpha1", "nvidiadrivers"),
    "NodePool": (_KARPENTER, "nodepools"),
    "NodeClaim": (_KARPENTER, "nodeclaims"),
}


def api_path(kind: str, namespace: str = "", name: str = "") -> str:
    """The path of a collection, or of one object. Without a namespace: of all namespaces."""
    prefix, plural = API_KINDS[kind]
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{prefix}{scope}/{plural}" + (f"/{name}" if name else "")


def is_kueue(kind: str) -> bool:
    return API_KINDS[kind][0] == _KUEUE
