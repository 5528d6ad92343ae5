"""Problems caused by nodes, on the real control plane: reported as written, and the result of the first step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from django.test import Client

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.metadata import OWNER_LABEL
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster import queued
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import told
from tests.workloads.cases.situations_nodes import BESIDE, ON_NODES
from tests.workloads.cases.staged import until_as_written
from tests.workloads.cases.steps_followed import by_hand, follow
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# A fixture of another module, by name.
__all__ = ["by_hand"]

CARDS = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"
TAINT = {"key": CARDS, "value": "present", "effect": "NoSchedule"}
SERVICE = {"key": "example.org/service", "value": "on", "effect": "NoSchedule"}
SLICES = "resource.k8s.io/v1/resourceslices"
SMALL = Options(checkpoints=True)
KINDS = (
    "tainted", "elsewhere", "closed", "down", "spread", "ending", "nodra", "uncounted", "driverless", "dra", "zero",
    "unwell", "outside",
)  # fmt: skip


# Additional findings about the nodes.
NOT_OURS = "started in the portal. The portal does not stop them. Contact the person who created them, or an operator."
FINDINGS = {
    "closed": ("2 GPUs of Closed are on nodes that are cordoned or reserved for other workloads.",),
    "tainted": ("2 GPUs of Tainted are on nodes that are cordoned or reserved for other workloads.",),
    "zero": (
        "No node has allocatable GPUs of Zero.",
        "2 of the 2 GPUs of Zero are unhealthy and not allocatable.",
    ),
    "unwell": ("1 of the 2 GPUs of Unwell is unhealthy and not allocatable.",),
    "outside": (f"2 GPUs of Outside are in use by pods of your team that were not {NOT_OURS}",),
    "spread": (),
}


@dataclass(frozen=True)
class Scene:
    """Each kind of problem has its own class, and nodes that no other pods request."""

    admin: Api
    unique: str
    classes: dict[str, GpuClass]

    def node(self, kind: str, number: int = 1, **changes: Json) -> None:
        """Creates a node with two GPUs. `changes`: to its spec, capacity and allocatable."""
        labels = {CARDS: {"product": f"{kind}-{self.unique}", "present": True}}
        node = hardware.node(self.name(kind, number), devices={CARDS: 2}, labels=labels, taints=[TAINT])
        node["spec"] |= changes.get("spec", {})
        for part in ("capacity", "allocatable"):
            node["status"][part] |= changes.get(part, {})
        hardware.add(self.admin, node)

    def name(self, kind: str, number: int = 1) -> str:
        return f"{kind}-{number}-{self.unique}"

    def patch(self, kind: str, body: Json, *, subresource: str = "") -> None:
        self.admin.patch("v1/nodes", self.name(kind), body, subresource=subresource)

    def lose(self, kind: str) -> None:
        """The node stops responding, and the control plane has noticed it."""
        name = self.name(kind)

        def is_ready() -> bool:
            conditions = self.admin.get("v1/nodes", name)["status"].get("conditions", ())
            return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

        def is_given_up() -> bool:
            taints = self.admin.get("v1/nodes", name)["spec"].get("taints", ())
            return any(one["key"] == "node.kubernetes.io/unreachable" for one in taints)

        wait_until(is_ready)
        ScriptedKubelet(self.admin).node_lost(name)
        wait_until(is_given_up)

    def devices(self, kind: str) -> str:
        """Creates two devices in an own ResourceSlice and returns its name."""
        driver, node = "gpu.nvidia.com", self.name(kind)
        attributes = {"type": {"string": "gpu"}, "productName": {"string": f"{kind}-{self.unique}"}}
        made = self.admin.create(
            {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{driver}"},
                "spec": {
                    "driver": driver, "nodeName": node,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"gpu-{one}", "attributes": attributes} for one in (0, 1)],
                },
            }
        )  # fmt: skip
        return str(made["metadata"]["name"])


@pytest.fixture
def scene(
    admin: Api, cluster: Cluster, unique: str, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube,
    clean_cluster: None,
) -> Iterator[Scene]:  # fmt: skip
    classes = {kind: of_kind(cluster, kind, unique) for kind in (*KINDS, "cores", "memory")}
    for one in classes.values():
        make.grant(team_a, one, units=4)
    found = Scene(admin, unique, classes)
    one_card = {"capacity": {CARDS: "1"}, "allocatable": {CARDS: "1"}}
    found.node("tainted", spec={"taints": [TAINT, SERVICE]})
    found.node("closed", spec={"unschedulable": True})
    found.node("spread")
    found.node("spread", 2, **one_card)
    found.node("spread", 3, **one_card)
    found.node("ending")
    found.node("cores", allocatable={"cpu": "4"})
    found.node("memory", allocatable={"memory": "8Gi"})
    found.node("down")
    found.node("nodra")
    found.node("uncounted")
    found.node("dra")
    found.node("zero", allocatable={CARDS: "0"})
    found.node("unwell", allocatable={CARDS: "1"})
    found.node("outside")
    found.node("driverless")
    slices = [found.devices(kind) for kind in ("dra", "uncounted")]
    uncounted = {"metadata": {"name": f"uncounted-{unique}"}, "spec": {}}
    admin.create({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **uncounted})
    provision(namespace_a, kube_worker)
    yield found
    for name in slices:
        admin.delete(SLICES, name)
    admin.delete("resource.k8s.io/v1/deviceclasses", f"uncounted-{unique}")
    for node in admin.list("v1/nodes"):
        if node["metadata"]["name"].endswith(unique):
            admin.delete("v1/nodes", node["metadata"]["name"])


def of_kind(cluster: Cluster, kind: str, unique: str) -> GpuClass:
    """A unit has one core and one GiB; more in the classes that lack cores or memory, so that no other class fits."""
    sizes = {"cores": {"cpu_per_unit": 4}, "memory": {"memory_gib_per_unit": 8}}.get(kind, {})
    product = f"{kind}-{unique}"
    selector = f"device.attributes['gpu.nvidia.com'].productName == '{product}'"
    devices = {
        "dra": {"resource": "dra.portal/h100", "device_class": "gpu.nvidia.com"},
        "nodra": {"resource": "dra.portal/none", "device_class": f"none-{unique}"},
        "driverless": {"resource": "dra.portal/h100", "device_class": "gpu.nvidia.com"},
        "uncounted": {"resource": "dra.portal/uncounted", "device_class": f"uncounted-{unique}"},
    }.get(kind)
    through = {**devices, "interface": "dra", "device_selector": selector} if devices else {}
    return make.gpu_class(
        cluster, slug=product, name=kind.title(), node_labels={PRODUCT: product},
        **{"cpu_per_unit": 1, "memory_gib_per_unit": 1, **sizes, **through},
    )  # fmt: skip


@pytest.fixture
def ask(scene: Scene, job: LaunchSpec, by_alice: Actor) -> Callable[..., None]:
    def launch(kind: str, name: str = "", *, units: int = 2, options: Options = SMALL) -> None:
        wanted = replace(job, name=name or kind, gpu_class=scene.classes[kind].slug, units=units, options=options)
        actions.launch("team-a", wanted, by=by_alice)

    return launch


def test_what_nodes_hold_up(
    scene: Scene, ask: Callable[..., None], by_alice: Actor, by_hand: Client, worker: Worker, admin: Api,
    namespace_a: Namespace,
) -> None:  # fmt: skip
    scene.lose("down")
    ask("cores", "holds-cores", units=1, options=replace(SMALL, cpu=3))
    ask("memory", "holds-memory", units=1, options=replace(SMALL, memory_gib=5))
    ask("dra", "holds-dra", units=1)
    ask("spread", "holds-spread")
    ask("ending", "before")
    made = by_kubectl(admin, scene.classes["outside"], namespace_a)
    worker(lambda: on_node(admin, namespace_a.name, made))
    worker(lambda: all(phase == "running" for phase, _ in told().values()))
    stuck = keep(admin, namespace_a.name, "before")
    actions.stop("team-a", "before", by=by_alice)

    ask("cores", units=1, options=replace(SMALL, cpu=3))
    ask("memory", units=1, options=replace(SMALL, memory_gib=6))
    for kind in KINDS:
        ask(kind)
    written = {
        "tainted": ON_NODES["untolerated taint"],
        "elsewhere": ON_NODES["wrong selector"],
        "closed": ON_NODES["cordoned"],
        "down": ON_NODES["nodes down"],
        "spread": ON_NODES["contiguity"],
        "ending": ON_NODES["predecessor still ending"],
        "cores": ON_NODES["cpu short"],
        "memory": ON_NODES["memory short"],
        "nodra": ON_NODES["DRA class missing"],
        "uncounted": ON_NODES["DRA class not counted"],
        "driverless": ON_NODES["no devices through DRA"],
        "dra": ON_NODES["DRA devices short"],
        "zero": BESIDE["resource advertises 0"],
        "unwell": BESIDE["units not healthy"],
        "outside": BESIDE["held by work not started here"],
    }
    first = until_as_written(worker, by_alice, written)
    assert {name: first[name].findings for name in FINDINGS} == FINDINGS

    for name in ("cores", "memory", "spread", "dra", "unwell"):
        follow(by_hand, first[name].steps[0].href)
    kubelet = ScriptedKubelet(admin)
    kubelet.deleted(stuck)
    kubelet.node_back(scene.name("down"))
    admin.delete("batch/v1/jobs", made, namespace=namespace_a.name)
    # Operators follow the advice.
    scene.patch("tainted", {"spec": {"taints": [TAINT]}})
    scene.patch("closed", {"spec": {"unschedulable": False}})
    scene.patch("zero", {"status": {"allocatable": {CARDS: "2"}}}, subresource="status")
    scene.node("elsewhere")
    expected = written.keys() - {"nodra", "uncounted", "driverless"}
    worker(lambda: all(told()[name] == ("running", "running") for name in expected), within_s=120)
    assert told()["nodra"][1] == "device_class_missing"
    assert told()["uncounted"][1] == "device_class_not_counted"


def by_kubectl(admin: Api, gpu_class: GpuClass, namespace: Namespace) -> str:
    """Creates a Job of two GPUs in the team's queue that the portal does not know; returns its name."""
    made = manifests.job(queued.spec(gpu_class, namespace, name="kubectl", units=2))
    for labels in (made["metadata"]["labels"], made["spec"]["template"]["metadata"]["labels"]):
        del labels[OWNER_LABEL]
    admin.create(made)
    return str(made["metadata"]["name"])


def on_node(admin: Api, namespace: str, job: str) -> bool:
    pods = admin.list("v1/pods", namespace=namespace, labels=f"batch.kubernetes.io/job-name={job}")
    return any(pod["spec"].get("nodeName") for pod in pods)


def keep(admin: Api, namespace: str, name: str) -> Json:
    """Returns the workload's pod; from now on only the test ends it."""
    [pod] = admin.list("v1/pods", namespace=namespace, labels=f"gpu-portal/workload={name}")
    scripted = {"metadata": {"annotations": {"devcluster/scripted": "true"}}}
    return admin.patch("v1/pods", pod["metadata"]["name"], scripted, namespace=namespace)
