"""A queue waits for slices that no node has: Olga plans a layout and a maintenance in a browser, people are told, work
is moved, the MIG manager cuts the node, and the queue starts.

The portal's own worker, beat and watcher do the rest. Every step is checked by a separate client at the API server.
Time passes by dates set in the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.core.actor import Actor
from accounts.models import Delivery, User
from catalog.classes import actions as catalog
from catalog.models import GpuClass, Pool
from cluster.models import Cluster, MirrorNode
from devcluster.client.kube import Api
from devcluster.client.list_watch import ListWatch
from devcluster.controlplane import hardware
from devcluster.kubelet.mig_manager import MigManager
from operations.models import Maintenance
from portal.core.due import touch
from portal.ui.text import date_and_time
from tenants.models import Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.e2e.journeys.portal_processes import Portal
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import told
from workloads.launch.actions import launch
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]

OWN = "test.example/repartition"  # a label of this test's nodes alone
GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.18gb"
PRODUCT = "NVIDIA-H200"
CAPACITY = {"cpu": 256, "memory": "2Ti", "pods": 110}
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
READY, RUNNING = ("ready", "ready"), ("running", "running")
# Slices of each job in the queue.
SMALL = {"small-1": 7, "small-2": 7, "small-3": 5}
ON_NODE = {"paper", "plots", "train"}
UNTOUCHED = {"cordoned": False, "held": False, "config": "all-disabled", "state": "success", "devices": {GPU: 3}}
LAYOUT = "portal-3gpu_7x1g.18gb"
CUT = {**UNTOUCHED, "config": LAYOUT, "devices": {SLICE: 21}}
# A start of three processes, or a sweep of 5 s and what it finds, on a machine that does much else.
PATIENCE_S = 90.0


@dataclass(frozen=True)
class Site:
    """`first`: the node that is cut, with three GPUs. `second`: with three, added when `first` is full."""

    admin: Api
    portal: Portal
    namespace: str
    first: str
    second: str
    whole: GpuClass
    slices: GpuClass
    config_map: tuple[str, str]

    def add(self, name: str, gpus: int) -> None:
        labels = {
            OWN: self.whole.node_labels[OWN], "nvidia.com/gpu.product": PRODUCT, "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.memory": "143771", "nvidia.com/gpu.replicas": "1", "nvidia.com/mig.capable": "true",
            "nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/mig.strategy": "mixed",
            "nvidia.com/mig.config": "all-disabled", "nvidia.com/mig.config.state": "success",
        }  # fmt: skip
        hardware.add(
            self.admin, hardware.node(name, devices={GPU: gpus}, labels=labels, taints=[TAINT], capacity=CAPACITY)
        )
        self.wait(MirrorNode.objects.filter(name=name, ready=True).exists, f"{name} is seen")

    def nodes(self) -> dict[str, str]:
        """By workload: the node of its pod."""
        return {
            pod["metadata"]["labels"]["gpu-portal/workload"]: pod["spec"].get("nodeName", "")
            for pod in self.admin.list("v1/pods", namespace=self.namespace)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def state(self) -> dict[str, Any]:
        return state_of(self.admin.get("v1/nodes", self.first))

    def on_first(self) -> set[str]:
        """Workloads with a pod on the first node."""
        return {name for name, node in self.nodes().items() if node == self.first}

    def quota(self, resource: str) -> int:
        """Of the team's queue in Kueue."""
        queue = self.admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", self.namespace)
        groups = queue["spec"].get("resourceGroups", []) if queue else []
        cells = [cell for group in groups for flavor in group["flavors"] for cell in flavor["resources"]]
        return sum(int(cell["nominalQuota"]) for cell in cells if cell["name"] == resource)

    def wait(self, holds: Callable[[], object], what: str) -> None:
        story = lambda: f"{told()}\n{self.nodes()}\n{self.state()}\n{self.portal.story()}"  # noqa: E731 - read here
        wait_until(holds, within_s=PATIENCE_S, every_s=0.3, what=what, story=story)


@pytest.fixture
def site(
    admin: Api, cluster: Cluster, portal: Portal, namespace_a: Namespace, team_a: Tenant, unique: str,
    clean_cluster: None,
) -> Iterator[Site]:  # fmt: skip
    common = {"product": PRODUCT, "node_labels": {OWN: unique}, "memory_mib": 143771}
    whole = make.gpu_class(cluster, slug=f"h200-{unique}", name="H200", **common)
    slices = make.gpu_class(
        cluster, slug=f"slice-{unique}", name="H200 slice", partition="1g.18gb", resource=SLICE, **common
    )
    config_map = ("default", f"mig-parted-{unique}")
    found = Site(admin, portal, namespace_a.name, f"first-{unique}", f"second-{unique}", whole, slices, config_map)
    make.grant(team_a, whole, units=3)
    make.grant(team_a, slices, units=21)
    try:
        found.add(found.first, 3)
        catalog.ensure_pool(cluster)
        for model, pk in ((Pool, Pool.objects.get().pk), (Namespace, namespace_a.pk)):
            with transaction.atomic():
                touch(model, pk)
        found.wait(lambda: found.quota(GPU) == 3, "the queue is open")
        yield found
    finally:
        for name in (found.first, found.second):
            if admin.find("v1/nodes", name):
                admin.delete("v1/nodes", name)
        if admin.find("v1/configmaps", config_map[1], namespace=config_map[0]):
            admin.delete("v1/configmaps", config_map[1], namespace=config_map[0])


def state_of(node: dict[str, Any]) -> dict[str, Any]:
    """What a maintenance changes."""
    labels = node["metadata"]["labels"]
    return {
        "cordoned": node["spec"].get("unschedulable", False),
        "held": any(taint["key"] == "gpu-portal/maintenance" for taint in node["spec"].get("taints", [])),
        "config": labels["nvidia.com/mig.config"],
        "state": labels.get("nvidia.com/mig.config.state"),
        "devices": {k: int(v) for k, v in node["status"]["allocatable"].items() if k in (GPU, SLICE) and v != "0"},
    }


@pytest.fixture
def mig_manager(site: Site) -> Iterator[None]:
    with MigManager(site.admin, labels=f"{OWN}={site.whole.node_labels[OWN]}", config_map=site.config_map):
        yield


@pytest.fixture
def states(site: Site) -> Iterator[list[dict[str, Any]]]:
    """Every state of the first node, from now, as the API server tells it."""
    states: list[dict[str, Any]] = []
    nodes = ListWatch(site.admin, "v1/nodes", labels=f"kubernetes.io/hostname={site.first}")

    def follow() -> None:
        for _type, node in nodes:
            if (found := state_of(node)) not in states[-1:]:
                states.append(found)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield states
    finally:
        nodes.stop()
        thread.join()


def mails(who: User) -> list[str]:
    return list(Delivery.objects.filter(user=who).order_by("pk").values_list("subject", flat=True))


def test_a_queue_for_slices_gets_a_node_that_is_cut(
    open_page: Callable[..., Page],
    site: Site,
    mig_manager: None,
    states: list[dict[str, Any]],
    job: LaunchSpec,
    notebook: LaunchSpec,
    alice: User,
    bob: User,
    olga: User,
) -> None:
    # a full node, and a queue that no node can serve
    hers, his = Actor(alice, via="page"), Actor(bob, via="page")
    own = {"gpu_class": site.whole.slug}
    launch("team-a", replace(notebook, name="paper", **own), by=hers)
    site.wait(lambda: told().get("paper") == READY, "the first notebook is ready")
    launch("team-a", replace(notebook, name="plots", **own), by=his)
    site.wait(lambda: told().get("plots") == READY, "the second notebook is ready")
    launch("team-a", replace(job, name="train", **own), by=hers)
    site.wait(lambda: told().get("train") == RUNNING, "the job runs")
    assert site.nodes() == dict.fromkeys(ON_NODE, site.first)
    for name, units in SMALL.items():
        launch("team-a", replace(job, name=name, gpu_class=site.slices.slug, units=units), by=his)
    site.wait(lambda: all(told()[name] == ("queued", "no_units_offered") for name in SMALL), "slices are waited for")
    queued = open_page("/teams/team-a/workloads/small-1", as_user=bob)
    expect(queued.get_by_text("No units of H200 slice are allocatable").first).to_be_visible()
    site.add(site.second, 3)

    # the planner
    desk = open_page(f"/nodes/{site.first}/mig", as_user=olga)
    expect(desk.get_by_text("serves 19 of 19 instances; the present layout serves 0")).to_be_visible()
    look_at(desk)
    parted = yaml.safe_load(desk.locator("#parted").inner_text())
    assert parted["mig-configs"][LAYOUT] == [{"devices": [0, 1, 2], "mig-enabled": True, "mig-devices": {"1g.18gb": 7}}]
    site.admin.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": site.config_map[0], "name": site.config_map[1]},
            "data": {"config.yaml": yaml.safe_dump(parted)},
        }
    )

    # the maintenance, and who is told
    desk.get_by_role("link", name="plan maintenance with this layout").click()
    affected = desk.get_by_role("region", name="Affected workloads")
    for name in ON_NODE:
        expect(affected.get_by_role("link", name=name)).to_be_visible()
    look_at(desk)
    desk.get_by_label("Reason").fill("The queue waits for small slices")
    desk.get_by_role("button", name="Plan and tell everybody affected").click()
    expect(desk.get_by_role("heading", name="The queue waits for small slices")).to_be_visible()
    site.wait(lambda: len(mails(alice)) == 2 and len(mails(bob)) == 1, "everybody on the node is told")
    row = Maintenance.objects.get()
    at = date_and_time(row.starts_at)
    announced = {
        alice: [f"Maintenance at {at}: paper of Team A", f"Maintenance at {at}: train of Team A"],
        bob: [f"Maintenance at {at}: plots of Team A"],
    }
    assert {who: sorted(mails(who)) for who in announced} == announced
    # Nothing new starts from now, as the form proposes; what runs goes on until the start.
    site.wait(lambda: site.state() == {**UNTOUCHED, "held": True}, "the node is held")

    # held, drained, cut, verified, opened
    now = timezone.now()
    Maintenance.objects.update(holds_from=now, starts_at=now, due_at=now)

    def is_over() -> bool:
        assert not site.state()["held"] or site.on_first() <= ON_NODE, "nothing new starts on a held node"
        return Maintenance.objects.filter(outcome="done").exists()

    site.wait(is_over, "the node is open again")
    site.wait(lambda: states[-1] == CUT, "the watch has seen the last change")
    held = {**UNTOUCHED, "held": True}
    closed = {**held, "cordoned": True}
    planned = {**closed, "config": LAYOUT, "state": None}
    assert states == [
        UNTOUCHED,
        held,
        closed,
        planned,
        {**planned, "state": "pending"},
        {**planned, "state": "pending", "devices": {SLICE: 21}},
        {**planned, "state": "success", "devices": {SLICE: 21}},
        CUT,
    ]
    desk.reload()
    expect(desk.get_by_text("done", exact=True).first).to_be_visible()
    for name in ON_NODE:
        expect(desk.get_by_role("listitem").filter(has_text=f"{name} of Team A: moved off the nodes")).to_be_visible()
    look_at(desk)

    # the queue starts
    site.wait(lambda: all(told()[name] == RUNNING for name in SMALL), "the queue starts")
    site.wait(lambda: [told()[one] for one in ("paper", "plots", "train")] == [READY, READY, RUNNING], "the moved run")
    assert site.nodes() == dict.fromkeys(SMALL, site.first) | dict.fromkeys(ON_NODE, site.second)
    for found, free in ((site.slices, "2 of 21 slices"), (site.whole, "0 of 3 GPUs")):
        queued.goto(reverse("class", args=[found.slug]))
        expect(queued.get_by_text(free)).to_be_visible()

    # mails
    site.wait(lambda: not Delivery.objects.filter(sent_at=None).exists(), "every mail has left")
    assert sorted(site.portal.mails(alice)) == sorted(
        [
            *announced[alice],
            "paper of Team A was interrupted",
            "paper of Team A is ready again",
            "train of Team A was interrupted",
        ]
    )
    assert sorted(site.portal.mails(bob)) == sorted(
        [*announced[bob], "plots of Team A was interrupted", "plots of Team A is ready again"]
    )
    assert site.portal.mails(olga) == [f"Maintenance done: {site.first}"]
