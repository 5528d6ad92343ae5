"""Capacity against an independent sum over the API server's own lists, while nodes and pods come, change and go.

Compared at one version: what the lists said before the mirror was read they still say after it, object by object with
its resourceVersion, and in between the mirror has shown a change that was made after the first list. So the mirror was
read at exactly that state. A moment in which the cluster moved by itself is looked at again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from catalog import queries
from catalog.models import GpuClass
from catalog.queries import Capacity
from cluster.models import Cluster, MirrorNode, MirrorPod
from devcluster.api import Api
from tests import make
from tests.waiting import wait_until

Raw = dict[str, Any]
NODES, PODS = 6, 24
CLASS_LABEL = "test.example/class"
ATTEMPTS = 20
READY = {"type": "Ready", "reason": "Test", "message": ""}


@dataclass(frozen=True)
class Figures:
    """Counted by this module or taken from the portal: one shape, so that they compare."""

    allocatable: int | None
    used: int | None
    free: int | None
    most_on_one_node: int | None
    largest_node: int | None
    unhealthy: int | None
    cordoned: int | None
    by_node: Mapping[str, tuple[int, int]]


@dataclass
class Churn:
    """Nodes and pods under names of the test's own, with resources that nobody else's nodes have."""

    admin: Api
    cluster: Cluster
    unique: str
    dice: random.Random
    nodes: dict[str, Raw] = field(default_factory=dict)
    pods: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.namespace = f"churn-{self.unique}"
        self.card, self.slice = f"{self.unique}.example/gpu", f"{self.unique}.example/mig-1g"
        self.marker = f"churn-{self.unique}-marker"
        self.classes = [
            make.gpu_class(self.cluster, slug=f"{word}-{self.unique}", resource=resource, node_labels=labels)
            for word, resource, labels in (
                ("fast", self.card, {CLASS_LABEL: f"fast-{self.unique}"}),
                ("slow", self.card, {CLASS_LABEL: f"slow-{self.unique}"}),
                ("both", self.card, {}),
                ("slice", self.slice, {CLASS_LABEL: f"fast-{self.unique}"}),
            )
        ]

    # ---- what happens ------------------------------------------------------------------------------------------

    def happen(self) -> None:
        """Some changes, in an order that the seed alone decides."""
        for _ in range(self.dice.randint(1, 8)):
            self.dice.choice(self._possible())()
        self._beat()

    def _possible(self) -> list[Any]:
        found: list[Any] = []
        if len(self.nodes) < NODES:
            found += [self._add_node] * 3
        if self.nodes:
            found += [self._remove_node, self._cordon, self._break, self._move, *[self._lose_device] * 3]
            found += [self._add_pod] * (6 if len(self.pods) < PODS else 0)
        if self.pods:
            found += [self._advance] * 3 + [self._remove_pod] * 2
        return found

    def _add_node(self) -> None:
        self.count += 1
        name = f"churn-{self.unique}-{self.count}"
        cards = self.dice.choice([0, 1, 4, 8])
        devices = {self.card: str(cards), self.slice: str(self.dice.choice([0, 7, 14]))}
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", **devices}
        labels = {CLASS_LABEL: self.dice.choice([f"fast-{self.unique}", f"slow-{self.unique}"])}
        self.admin.create(_node(name, labels))
        self.admin.patch_status("v1/nodes", name, {"capacity": amounts, "allocatable": amounts})
        self.nodes[name] = {"capacity": amounts, "ready": True}

    def _remove_node(self) -> None:
        name = self._some_node()
        self.admin.delete("v1/nodes", name)
        del self.nodes[name]

    def _cordon(self) -> None:
        is_cordoned = self.dice.random() < 0.5
        self.admin.patch("v1/nodes", self._some_node(), {"spec": {"unschedulable": is_cordoned}})

    def _break(self) -> None:
        self.nodes[self._some_node()]["ready"] = self.dice.random() < 0.7

    def _lose_device(self) -> None:
        """A device is unhealthy, or well again, or its resource is gone altogether."""
        name = self._some_node()
        resource = self.dice.choice([self.card, self.slice])
        whole = int(self.nodes[name]["capacity"][resource])
        left = self.dice.choice([str(max(0, whole - 1)), str(whole), None])
        self.admin.patch_status("v1/nodes", name, {"allocatable": {resource: left}})

    def _move(self) -> None:
        other = self.dice.choice([f"fast-{self.unique}", f"slow-{self.unique}", None])
        self.admin.patch("v1/nodes", self._some_node(), {"metadata": {"labels": {CLASS_LABEL: other}}})

    def _add_pod(self) -> None:
        """Bound from the start, as the scheduler would; more than there is, too: a node can lose what it had."""
        self.count += 1
        name = f"pod-{self.count}"
        resource = self.dice.choice([self.card, self.slice, "cpu"])
        node = "" if self.dice.random() < 0.15 else self._some_node()
        first = {"limits": {resource: str(self.dice.choice([1, 1, 2, 4]))}}
        containers = [{"name": "main", "image": "none", "resources": first}]
        if self.dice.random() < 0.3:
            containers.append({"name": "more", "image": "none", "resources": {"limits": {self.card: "1"}}})
        bound = {"nodeName": node} if node else {"nodeSelector": {CLASS_LABEL: "nowhere"}}
        spec = {**bound, "containers": containers, "tolerations": [{"operator": "Exists"}]}
        self.admin.create(_pod(name, self.namespace, spec))
        self.pods[name] = "Pending"

    def _advance(self) -> None:
        name = self.dice.choice(sorted(self.pods))
        phase = {"Pending": "Running", "Running": self.dice.choice(["Succeeded", "Failed"])}.get(self.pods[name])
        if phase and self.admin.find("v1/pods", name, namespace=self.namespace):
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
            self.admin.request("PATCH", path, {"status": {"phase": phase}}, content_type="application/merge-patch+json")
            self.pods[name] = phase

    def _remove_pod(self) -> None:
        name = self.dice.choice(sorted(self.pods))
        self.admin.delete("v1/pods", name, namespace=self.namespace, grace_s=0)
        del self.pods[name]

    def _some_node(self) -> str:
        return self.dice.choice(sorted(self.nodes))

    def _beat(self) -> None:
        """Nobody is the kubelet of these nodes: without a sign of life they would all be unknown after a while."""
        for name, node in self.nodes.items():
            condition = {**READY, "status": "True" if node["ready"] else "False"}
            self.admin.patch_status("v1/nodes", name, {"conditions": [condition]})

    # ---- two views of one moment -------------------------------------------------------------------------------

    def compare(self) -> tuple[dict[str, Figures], dict[str, Figures]]:
        """(what the portal says, what the lists say) by slug, at the same version of every object."""
        before = self._listed()
        for _ in range(ATTEMPTS):
            self._mark()
            found = queries.capacities(self.cluster, self.classes, with_nodes=True)
            plain = queries.capacities(self.cluster, self.classes)
            after = self._listed()
            if _versions(before) == _versions(after):
                ours = {one.slug: _told(found[one.pk]) for one in self.classes}
                for one in self.classes:
                    assert _told(plain[one.pk]) == _without_nodes(ours[one.slug])
                return ours, {one.slug: counted(one, *after) for one in self.classes}
            before = after
        raise AssertionError(f"the cluster did not stand still for a moment in {ATTEMPTS} attempts")

    def _listed(self) -> tuple[list[Raw], list[Raw]]:
        """Our nodes and the pods on them, the markers left out."""
        nodes = [
            one for one in self.admin.list("v1/nodes") if one["metadata"]["name"].startswith(f"churn-{self.unique}-")
        ]
        nodes = [one for one in nodes if one["metadata"]["name"] != self.marker]
        names = {one["metadata"]["name"] for one in nodes}
        return nodes, [one for one in self.admin.list("v1/pods") if one["spec"].get("nodeName") in names]

    def _mark(self) -> None:
        """What happened before a change of the markers is in the mirror as soon as that change is."""
        self.count += 1
        label = {"metadata": {"labels": {CLASS_LABEL: str(self.count), "gpu-portal/run": str(self.count)}}}
        node = self.admin.patch("v1/nodes", self.marker, label)
        pod = self.admin.patch("v1/pods", "marker", label, namespace=self.namespace)
        rows = (
            (MirrorNode.objects.filter(cluster_id=self.cluster.pk, name=self.marker), node),
            (MirrorPod.objects.filter(cluster_id=self.cluster.pk, namespace=self.namespace, name="marker"), pod),
        )
        for found, raw in rows:
            version = int(raw["metadata"]["resourceVersion"])
            wait_until(found.filter(resource_version__gte=version).exists, every_s=0.01, what=f"version {version}")


@contextmanager
def churning(admin: Api, cluster: Cluster, unique: str, *, seed: int) -> Iterator[Churn]:
    found = Churn(admin, cluster, unique, random.Random(seed))
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.namespace}})
    try:
        wait_until(
            lambda: admin.find("v1/serviceaccounts", "default", namespace=found.namespace), what="the service account"
        )
        admin.create(_node(found.marker, {}))
        spec = {"nodeSelector": {CLASS_LABEL: "nowhere"}, "containers": [{"name": "main", "image": "none"}]}
        admin.create(_pod("marker", found.namespace, spec))
        yield found
    finally:
        for name in [*found.nodes, found.marker]:
            admin.delete("v1/nodes", name)
        for pod in admin.list("v1/pods", namespace=found.namespace):
            admin.delete("v1/pods", pod["metadata"]["name"], namespace=found.namespace, grace_s=0)
        admin.delete("v1/namespaces", found.namespace)


# ---- the independent sum ---------------------------------------------------------------------------------------------


def counted(one: GpuClass, nodes: list[Raw], pods: list[Raw]) -> Figures:
    """From raw objects, without a line of the portal's own arithmetic."""
    total = dict.fromkeys(("allocatable", "used", "free", "most", "largest", "unhealthy", "cordoned"), 0)
    by_node: dict[str, tuple[int, int]] = {}
    for node in nodes:
        labels = node["metadata"].get("labels", {})
        if any(labels.get(key) != value for key, value in one.node_labels.items()):
            continue
        name, status = node["metadata"]["name"], node["status"]
        has, offers = (int(status.get(which, {}).get(one.resource, 0)) for which in ("capacity", "allocatable"))
        busy = sum(_asked(pod, one.resource) for pod in pods if pod["spec"].get("nodeName") == name)
        total["used"] += busy
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])):
            continue
        total["allocatable"] += offers
        total["unhealthy"] += has - offers
        total["largest"] = max(total["largest"], offers)
        if node["spec"].get("unschedulable"):
            total["cordoned"] += offers
            continue
        left = max(0, offers - busy)
        total["free"] += left
        total["most"] = max(total["most"], left)
        by_node[name] = (offers, busy)
    return Figures(*total.values(), by_node={name: both for name, both in by_node.items() if both != (0, 0)})


def _asked(pod: Raw, resource: str) -> int:
    if pod["status"]["phase"] in ("Succeeded", "Failed"):
        return 0
    return sum(int(c["resources"].get("limits", {}).get(resource, 0)) for c in pod["spec"]["containers"])


def _told(found: Capacity) -> Figures:
    return Figures(
        found.allocatable,
        found.used,
        found.free,
        found.most_on_one_node,
        found.largest_node,
        found.unhealthy,
        found.cordoned,
        {node.name: (node.allocatable, node.used) for node in found.nodes if (node.allocatable, node.used) != (0, 0)},
    )


def _without_nodes(figures: Figures) -> Figures:
    return Figures(**{**vars(figures), "by_node": {}})


def _versions(listed: tuple[list[Raw], list[Raw]]) -> set[tuple[str, str]]:
    return {(one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for objects in listed for one in objects}


def _node(name: str, labels: dict[str, str]) -> Raw:
    """Nobody else's pods go there."""
    taints = [{"key": "test.example/own", "value": "yes", "effect": "NoSchedule"}]
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}}


def _pod(name: str, namespace: str, spec: Raw) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
