"""Compares capacity with an independent sum over the API server's lists, while nodes and pods come, change and go.

Both are compared at one version: the lists are equal before and after the mirror is read, object by object with its
resourceVersion, and in between the mirror has shown a change that was made after the first list. So the mirror was read
at exactly that state. If the cluster changes by itself meanwhile, the comparison is repeated.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.classes.capacity import queries
from cluster.models import Cluster, MirrorNode, MirrorObject, MirrorPod
from devcluster.client.kube import Api, ApiError
from tests.load.capacity.independent_count import Figures, Lists, Raw, counted, is_kept_off, told
from tests.support.rows import make
from tests.support.waiting import wait_until

NODES, PODS = 8, 30
CLASS_LABEL = "test.example/class"
ATTEMPTS = 20
DEVICES = "resource.k8s.io/v1"
DEVICE_CLASSES, SLICES, CLAIMS = (f"{DEVICES}/{name}" for name in ("deviceclasses", "resourceslices", "resourceclaims"))
PRODUCTS = ("big", "small")
# The request of a claim. A claim with admin access, as a monitor makes it, holds no device.
TEMPLATES: dict[str, Raw] = {
    "one": {},
    "two": {"count": 2},
    "big": {},
    "look": {"allocationMode": "All", "adminAccess": True},
}
OWN = "test.example/own"
OWN_TAINTS = [{"key": OWN, "value": "yes", "effect": "NoSchedule"}]
# A taint that no class tolerates.
AWAY_TAINTS = [{"key": "test.example/repair", "effect": "NoExecute"}]
TOLERATIONS = [{"key": OWN, "operator": "Exists"}]
READY = {"type": "Ready", "reason": "Test", "message": ""}


@dataclass
class Churn:
    """Nodes, pods and devices with names of the test's own, and resources that no other node has."""

    admin: Api
    cluster: Cluster
    unique: str
    dice: random.Random
    nodes: dict[str, Raw] = field(default_factory=dict)
    pods: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    count: int = 0
    marks: int = 1

    def __post_init__(self) -> None:
        self.namespace = f"churn-{self.unique}"
        self.card, self.slice = f"{self.unique}.example/gpu", f"{self.unique}.example/mig-1g"
        self.marker = f"churn-{self.unique}-marker"
        self.driver = f"{self.unique}.example"
        by_amount = [
            make.gpu_class(
                self.cluster,
                slug=f"{word}-{self.unique}",
                resource=resource,
                node_labels=labels,
                tolerations=TOLERATIONS,
            )
            for word, resource, labels in (
                ("fast", self.card, {CLASS_LABEL: f"fast-{self.unique}"}),
                ("slow", self.card, {CLASS_LABEL: f"slow-{self.unique}"}),
                ("both", self.card, {}),
                ("slice", self.slice, {CLASS_LABEL: f"fast-{self.unique}"}),
            )
        ]
        taken = {
            "big": (f'device.attributes["{self.driver}"].productName == "big"', {}),
            "": (f'device.driver == "{self.driver}"', {OWN: self.unique}),
        }
        # Devices that each DeviceClass selects: of one product, or of all.
        self.products = {
            make.gpu_class(
                self.cluster,
                slug=f"{product or 'any'}-device-{self.unique}",
                interface="dra",
                resource=f"{self.unique}.example/{product or 'any'}-device",
                device_class=self.driver,
                device_selector=selector,
                node_labels=labels,
                tolerations=TOLERATIONS,
            ): product
            for product, (selector, labels) in taken.items()
        }
        cores = make.gpu_class(
            self.cluster,
            slug=f"cores-{self.unique}",
            interface="none",
            resource="",
            vendor="",
            product="",
            node_labels={},
            tolerations=[],
            cpu_per_unit=3,
        )
        self.classes = [*by_amount, *self.products, cores]

    # ---- random changes of nodes and pods ----------------------------------------------------------------------

    def happen(self) -> None:
        """Makes some changes, in an order that only the seed determines."""
        for _ in range(self.dice.randint(1, 8)):
            self.dice.choice(self._possible())()
        self._beat()

    def _possible(self) -> list[Any]:
        found: list[Any] = []
        if len(self.nodes) < NODES:
            found += [self._add_node] * 2 + [self._add_cores]
        if self.nodes:
            found += [self._remove_node, self._cordon, self._break, self._lose_device, self._taint]
            found += [self._add_pod] * (6 if len(self.pods) < PODS else 0)
        if self._with_cards():
            found += [self._move, *[self._lose_device] * 2, *[self._publish] * 2]
            found += [self._add_pod_with_claim] * (3 if len(self.pods) < PODS else 0)
        if self.pods:
            found += [self._advance] * 3 + [self._remove_pod] * 2
        return found

    def _add_node(self) -> None:
        """Adds a node with GPUs that the kubelet counts, and perhaps with devices of ResourceSlices."""
        cards = self.dice.choice([0, 1, 4, 8])
        devices = {self.card: str(cards), self.slice: str(self.dice.choice([0, 7, 14]))}
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", **devices}
        labels = {CLASS_LABEL: self.dice.choice([f"fast-{self.unique}", f"slow-{self.unique}"]), OWN: self.unique}
        name = self._put_node(amounts, amounts, labels, is_own=True)
        if self.dice.random() < 0.7:
            self._publish(name)

    def _add_cores(self) -> None:
        """Adds a node for work without a GPU: only that the kubelet takes no pods keeps others away."""
        cores = self.dice.choice([4, 8, 16])
        capacity = {"cpu": str(cores), "memory": "16Gi", "pods": "0"}
        self._put_node(capacity, capacity | {"cpu": f"{cores * 1000 - 90}m"}, {}, is_own=False)

    def _put_node(self, capacity: Raw, allocatable: Raw, labels: dict[str, str], *, is_own: bool) -> str:
        """Adds a new node, or an earlier one again: its pods and ResourceSlices may still exist."""
        self.count += 1
        name = f"churn-{self.unique}-{self.count}"
        if self.gone and self.dice.random() < 0.5:
            name = self.gone.pop()
        made = self.admin.create(_node(name, labels, is_own=is_own))
        self.admin.patch_status("v1/nodes", name, {"capacity": capacity, "allocatable": allocatable})
        self.nodes[name] = {"capacity": capacity, "ready": True, "uid": made["metadata"]["uid"]}
        return name

    def _remove_node(self) -> None:
        name = self._some_node()
        self.admin.delete("v1/nodes", name)
        del self.nodes[name]
        self.gone.append(name)

    def _cordon(self) -> None:
        is_cordoned = self.dice.random() < 0.5
        self.admin.patch("v1/nodes", self._some_node(), {"spec": {"unschedulable": is_cordoned}})

    def _break(self) -> None:
        self.nodes[self._some_node()]["ready"] = self.dice.random() < 0.7

    def _taint(self) -> None:
        """Taints a node for a group or for repair, or removes the taint. Nodes with GPUs keep the test's own taint."""
        name = self._some_node()
        is_kept = self._has_cards(name) or self.dice.random() < 0.5
        taints = [*(OWN_TAINTS if is_kept else ()), *(AWAY_TAINTS if self.dice.random() < 0.3 else ())]
        self.admin.patch("v1/nodes", name, {"spec": {"taints": taints}})

    def _lose_device(self) -> None:
        """Makes a device unhealthy or healthy again, or removes its resource."""
        name = self._some_node()
        resource = self.dice.choice([self.card, self.slice]) if self._has_cards(name) else "cpu"
        whole = int(self.nodes[name]["capacity"][resource])
        left = self.dice.choice([str(max(0, whole - 1)), str(whole), None])
        self.admin.patch_status("v1/nodes", name, {"allocatable": {resource: left}})

    def _move(self) -> None:
        other = self.dice.choice([f"fast-{self.unique}", f"slow-{self.unique}", None])
        name = self.dice.choice(self._with_cards())
        self.admin.patch("v1/nodes", name, {"metadata": {"labels": {CLASS_LABEL: other}}})

    def _publish(self, name: str = "") -> None:
        """Publishes a new generation of a node's pool, in one ResourceSlice or two; an old slice may stay a while."""
        name = name or self.dice.choice(self._with_cards())
        self.count += 1
        devices = [self._device(number) for number in range(self.dice.randint(1, 5))]
        cut = self.dice.choice([0, 0, len(devices) // 2, len(devices)])
        parts = {letter: part for letter, part in (("a", devices[:cut]), ("b", devices[cut:])) if part}
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self.nodes[name]["uid"]}
        pool = {"name": name, "generation": self.count, "resourceSliceCount": len(parts)}
        for letter in "ab":
            slice_name = f"{name}-{letter}"
            if letter in parts:
                spec = {"driver": self.driver, "nodeName": name, "pool": pool, "devices": parts[letter]}
                self.admin.apply(_slice(slice_name, spec, owners=[owner]))
            elif self.dice.random() < 0.5:
                self.admin.delete(SLICES, slice_name)

    def _device(self, number: int) -> Raw:
        attributes = {
            "productName": {"string": self.dice.choice(PRODUCTS)},
            "uuid": {"string": f"{self.count}-{number}"},
        }
        effect = self.dice.choice(["NoSchedule", "NoExecute", "None"])
        is_tainted = self.dice.random() < 0.3
        taints = [{"key": "test.example/broken", "effect": effect}] if is_tainted else []
        return {"name": f"device-{number}", "attributes": attributes, "taints": taints}

    def _add_pod(self) -> None:
        """Adds a pod that is already bound, as by the scheduler; it may exceed the capacity, since a node can lose
        devices.
        """
        node = "" if self.dice.random() < 0.15 else self._some_node()
        is_cores = node != "" and not self._has_cards(node)
        resource = "cpu" if is_cores else self.dice.choice([self.card, self.slice, "cpu"])
        amounts = ["1", "2500m", "700m"] if resource == "cpu" else ["1", "1", "2", "4"]
        containers = [_container("main", {resource: self.dice.choice(amounts)})]
        if self.dice.random() < 0.3:
            containers.append(_container("more", {resource: "1"}))
        first = [_container("first", {resource: "3"})] if self.dice.random() < 0.2 else []
        bound = {"nodeName": node} if node else {"nodeSelector": {CLASS_LABEL: "nowhere"}}
        self._create_pod({**bound, "initContainers": first, "containers": containers})

    def _add_pod_with_claim(self) -> None:
        """The scheduler allocates its devices and a node, or leaves it pending."""
        template = self.dice.choice(sorted(TEMPLATES))
        container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "devices"}]}}
        claims = [{"name": "devices", "resourceClaimTemplateName": template}]
        self._create_pod({"nodeSelector": {OWN: self.unique}, "containers": [container], "resourceClaims": claims})

    def _create_pod(self, spec: Raw) -> None:
        self.count += 1
        name = f"pod-{self.count}"
        self.admin.create(_pod(name, self.namespace, {**spec, "tolerations": [{"operator": "Exists"}]}))
        self.pods[name] = "Pending"

    def _advance(self) -> None:
        name = self.dice.choice(sorted(self.pods))
        phase = {"Pending": "Running", "Running": self.dice.choice(["Succeeded", "Failed"])}.get(self.pods[name])
        if phase is None:
            return
        try:
            self.admin.patch_status("v1/pods", name, {"phase": phase}, namespace=self.namespace)
        except ApiError as error:
            if error.status != 404:
                raise
        # Kubernetes removes pods whose node is gone.
        self.pods[name] = phase

    def _remove_pod(self) -> None:
        name = self.dice.choice(sorted(self.pods))
        self.admin.delete("v1/pods", name, namespace=self.namespace, grace_s=0)
        del self.pods[name]

    def _some_node(self) -> str:
        return self.dice.choice(sorted(self.nodes))

    def _with_cards(self) -> list[str]:
        return [name for name in sorted(self.nodes) if self._has_cards(name)]

    def _has_cards(self, name: str) -> bool:
        return self.card in self.nodes[name]["capacity"]

    def _beat(self) -> None:
        """Renews the nodes' heartbeats: they have no kubelet and would become unknown after a while."""
        for name, node in self.nodes.items():
            condition = {**READY, "status": "True" if node["ready"] else "False"}
            self.admin.patch_status("v1/nodes", name, {"conditions": [condition]})

    # ---- comparison of mirror and cluster ----------------------------------------------------------------------

    def compare(self) -> tuple[dict[str, Figures], dict[str, Figures]]:
        """(the portal's figures, the lists' figures) by slug, at the same version of every object."""
        before = self._listed()
        for _ in range(ATTEMPTS):
            self._mark()
            found = queries.capacities(self.cluster, self.classes, with_nodes=True)
            plain = queries.capacities(self.cluster, self.classes)
            after = self._listed()
            if before.versions() == after.versions():
                ours = {one.slug: told(found[one.pk]) for one in self.classes}
                for one in self.classes:
                    assert told(plain[one.pk]) == replace(ours[one.slug], by_node={})
                return ours, {
                    one.slug: counted(one, after, driver=self.driver, product=self.products.get(one, ""))
                    for one in self.classes
                }
            before = after
        raise AssertionError(f"the cluster did not stand still for a moment in {ATTEMPTS} attempts")

    def _listed(self) -> Lists:
        """Lists the test's nodes and the common ones, their pods and the test's devices, without the markers."""
        nodes = [
            one
            for one in self.admin.list("v1/nodes")
            if one["metadata"]["name"] != self.marker
            and (one["metadata"]["name"].startswith(f"churn-{self.unique}-") or not is_kept_off(one))
        ]
        names = {one["metadata"]["name"] for one in nodes}
        return Lists(
            nodes,
            [one for one in self.admin.list("v1/pods") if one["spec"].get("nodeName") in names],
            [one for one in self.admin.list(SLICES) if one["spec"]["driver"] == self.driver],
            [one for one in self.admin.list(CLAIMS, namespace=self.namespace) if one["metadata"]["name"] != "marker"],
        )

    def _mark(self) -> None:
        """Changes the markers and waits for it: everything that happened before is then in the mirror."""
        # Not `count`: the number of repetitions must not influence the next random changes.
        self.marks += 1
        text = str(self.marks)
        label = {"metadata": {"labels": {CLASS_LABEL: text, "gpu-portal/run": text}}}
        note = {"metadata": {"annotations": {"resource.kubernetes.io/pod-claim-name": f"marker-{text}"}}}
        generation = {"spec": {"pool": {"generation": self.marks}}}
        named = {"cluster_id": self.cluster.pk, "namespace": self.namespace, "name": "marker"}
        objects, nowhere = MirrorObject.objects, {"cluster_id": self.cluster.pk, "name": self.marker}
        rows = (
            (MirrorNode.objects.filter(**nowhere), self.admin.patch("v1/nodes", self.marker, label)),
            (MirrorPod.objects.filter(**named), self.admin.patch("v1/pods", "marker", label, namespace=self.namespace)),
            (objects.filter(kind="ResourceSlice", **nowhere), self.admin.patch(SLICES, self.marker, generation)),
            (
                objects.filter(kind="ResourceClaim", **named),
                self.admin.patch(CLAIMS, "marker", note, namespace=self.namespace),
            ),
        )
        for found, raw in rows:
            version = int(raw["metadata"]["resourceVersion"])
            wait_until(found.filter(resource_version__gte=version).exists, every_s=0.01, what=f"version {version}")


@contextmanager
def churning(admin: Api, cluster: Cluster, unique: str, *, seed: int) -> Iterator[Churn]:
    found = Churn(admin, cluster, unique, random.Random(seed))
    metadata = {"name": found.namespace, "labels": {"resource.kubernetes.io/admin-access": "true"}}
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    try:
        wait_until(
            lambda: admin.find("v1/serviceaccounts", "default", namespace=found.namespace), what="the service account"
        )
        admin.create(_node(found.marker, {}, is_own=True))
        spec = {"nodeSelector": {CLASS_LABEL: "nowhere"}, "containers": [{"name": "main", "image": "none"}]}
        admin.create(_pod("marker", found.namespace, spec))
        _put_devices(found)
        yield found
    finally:
        for one in admin.list(SLICES):
            if found.unique in one["spec"]["driver"]:
                admin.delete(SLICES, one["metadata"]["name"])
        admin.delete(DEVICE_CLASSES, found.driver)
        for name in [*found.nodes, found.marker]:
            admin.delete("v1/nodes", name)
        for pod in admin.list("v1/pods", namespace=found.namespace):
            admin.delete("v1/pods", pod["metadata"]["name"], namespace=found.namespace, grace_s=0)
        admin.delete("v1/namespaces", found.namespace)


def _put_devices(churn: Churn) -> None:
    """Creates a DeviceClass, ResourceClaimTemplates, and the markers of ResourceSlices and claims."""
    selector = {"cel": {"expression": f"device.driver == '{churn.driver}'"}}
    device_class = {"metadata": {"name": churn.driver}, "spec": {"selectors": [selector]}}
    churn.admin.create({"apiVersion": DEVICES, "kind": "DeviceClass", **device_class})
    for name, more in TEMPLATES.items():
        exactly = {"deviceClassName": churn.driver, **more}
        if name == "big":
            product = f"device.attributes['{churn.driver}'].productName == 'big'"
            exactly["selectors"] = [{"cel": {"expression": product}}]
        spec = {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}
        metadata = {"name": name, "namespace": churn.namespace}
        template = {"apiVersion": DEVICES, "kind": "ResourceClaimTemplate", "metadata": metadata}
        churn.admin.create({**template, "spec": {"spec": spec}})
    request = {"name": "device", "exactly": {"deviceClassName": churn.driver}}
    metadata = {"name": "marker", "namespace": churn.namespace}
    churn.admin.create(
        {
            "apiVersion": DEVICES,
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": {"devices": {"requests": [request]}},
        }
    )
    pool = {"name": churn.marker, "generation": 1, "resourceSliceCount": 1}
    marker = {"driver": f"marker.{churn.driver}", "nodeName": churn.marker, "pool": pool, "devices": []}
    churn.admin.create(_slice(churn.marker, marker, owners=[]))


def _slice(name: str, spec: Raw, *, owners: list[Raw]) -> Raw:
    metadata = {"name": name, "ownerReferences": owners}
    return {"apiVersion": DEVICES, "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def _node(name: str, labels: dict[str, str], *, is_own: bool) -> Raw:
    """`is_own`: only the test's pods go there."""
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": OWN_TAINTS if is_own else []}}


def _container(name: str, amounts: dict[str, str]) -> Raw:
    resources = {"requests": amounts} if "cpu" in amounts else {"limits": amounts}
    return {"name": name, "image": "none", "resources": resources}


def _pod(name: str, namespace: str, spec: Raw) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
