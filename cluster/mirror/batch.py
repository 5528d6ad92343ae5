"""What one transaction of the mirror will write, and the page channels that it affects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cluster.manifests.node_removal.notices import removal_notice
from cluster.mirror.records.types import ObservedObject

# Channel for hints about cluster-wide objects: nodes, capacity, flavors.
CLUSTER_CHANNEL = "cluster"


@dataclass
class KindMark:
    is_listed: bool = False
    is_heard: bool = False
    version: str = ""
    problem: str | None = None


@dataclass
class MirrorBatch:
    upserts: dict[tuple[str, str, str], ObservedObject] = field(default_factory=dict)
    deletes: dict[str, set[str]] = field(default_factory=dict)
    # Pods and Workloads whose deletion was reported, as they were at the end.
    removed: dict[str, ObservedObject] = field(default_factory=dict)
    # Every state of a Workload, oldest first, also those that a later one replaced; True: from a list, so that states
    # before it may have been missed.
    workloads: list[tuple[ObservedObject, bool]] = field(default_factory=list)
    # Uids of a complete list of Workloads.
    listed_workloads: set[str] | None = None
    marks: dict[str, KindMark] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    gone: list[tuple[str, str, str]] = field(default_factory=list)
    differences: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    channels: set[str] = field(default_factory=set)

    def put(self, seen: ObservedObject, *, is_listed: bool) -> None:
        key = (seen.kind, seen.namespace, seen.name)
        other = self.upserts.get(key)
        if other is None or other.resource_version <= seen.resource_version:
            self.upserts[key] = seen
        if seen.kind == "Workload":
            self.workloads.append((seen, is_listed))

    def leaving_nodes(self) -> set[str]:
        """Nodes that are being removed: the runs on them learn of it."""
        nodes = [one for one in self.upserts.values() if one.kind == "Node"]
        return {node.name for node in nodes if removal_notice(taint["key"] for taint in node.record["taints"])}

    @property
    def has_site_news(self) -> bool:
        """A complete list without the ConfigMap counts too: it may have been deleted while nobody watched."""
        is_listed = "ConfigMap" in self.marks and self.marks["ConfigMap"].is_listed
        return is_listed or "ConfigMap" in self.deletes or any(one.kind == "ConfigMap" for one in self.upserts.values())


def page_channels(kind: str, namespace: str, name: str, *, is_ours: bool) -> set[str]:
    """Returns the channels to hint. Our pods use capacity as others do; a ClusterQueue is named like its namespace."""
    if kind in ("Pod", "ResourceClaim"):
        return {CLUSTER_CHANNEL, namespace} if is_ours else {CLUSTER_CHANNEL}
    if kind in ("Namespace", "ClusterQueue"):
        return {name}
    if kind == "ConfigMap":
        return {CLUSTER_CHANNEL}
    return {namespace or CLUSTER_CHANNEL}
