"""Every standing check on the real control plane: on the health page within 5 s of the change, and gone within 5 s of
its repair, as a median: a busy machine may take longer once. Beside it stands a neighbour that must not be reported.

All nodes are cordoned, so that no other pods are scheduled to them, and have products of their own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.checks import suite
from catalog.classes import queries
from catalog.models import DeviceTrial, GpuClass
from catalog.trials.types import DeviceRequest
from cluster.models import Cluster
from cluster.reads import queries as mirror
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

GPU = "nvidia.com/gpu"
QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
WITHIN_S = 5.0
PATIENCE_S = 30.0
Change = Callable[[], object]


@dataclass(frozen=True)
class Stage:
    """A check that finds nothing until `break_it`. `about`: words of its finding. `neighbour`: words that a finding
    about the healthy neighbour would have.
    """

    about: str
    neighbour: str
    break_it: Change
    mend: Change


class Site:
    """Nodes, classes and queues; each name begins with that of its stage and ends in the test's own characters."""

    def __init__(self, admin: Api, cluster: Cluster, unique: str) -> None:
        self.admin = admin
        self.cluster = cluster
        self.unique = unique
        self.nodes: list[str] = []
        self.device_classes: list[str] = []

    def name(self, stage: str) -> str:
        return f"check-{stage}-{self.unique}"

    def node(self, stage: str, devices: dict[str, int] | None = None, /, **labels: str) -> str:
        """Four whole GPUs by default. `labels`: GPU labels, with `__` for a dot."""
        name = self.name(stage)
        named = {"gpu__product": name, "gpu__sharing_strategy": "none", "gpu__replicas": "1", "gpu__memory": "81920"}
        has = {GPU: 4} if devices is None else devices
        node = hardware.node(name, devices=has, labels=_gpu_labels({**named, **labels}), taints=[TAINT])
        node["spec"]["unschedulable"] = True
        self.nodes.append(name)
        hardware.add(self.admin, node)
        return name

    def device_class(self) -> str:
        name = f"uncounted-{self.unique}.example"
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        self.device_classes.append(name)
        self.admin.create({**kind, "metadata": {"name": name}, "spec": {}})
        return name

    def remove(self) -> None:
        for name in self.nodes:
            self.admin.delete("v1/nodes", name)
        for name in self.device_classes:
            self.admin.delete("resource.k8s.io/v1/deviceclasses", name)

    def label(self, node: str, **labels: str | None) -> Change:
        return partial(self.admin.patch, "v1/nodes", node, {"metadata": {"labels": _gpu_labels(labels)}})

    def advertise(self, node: str, capacity: dict[str, str | None], allocatable: dict[str, str | None]) -> Change:
        sizes = {"capacity": capacity, "allocatable": allocatable}
        return partial(self.admin.patch_status, "v1/nodes", node, sizes)

    def offer(self, stage: str, **fields: Any) -> GpuClass:
        """A class for that node's product."""
        name = self.name(stage)
        values = {"name": name, "product": name, "node_labels": {"nvidia.com/gpu.product": name}, **fields}
        return make.gpu_class(self.cluster, slug=f"{stage}-{self.unique}"[:40], **values)

    def edit(self, gpu_class: GpuClass, **fields: Any) -> Change:
        return partial(GpuClass.objects.filter(pk=gpu_class.pk).update, **fields)

    def queue(self, stage: str, gpu_class: GpuClass) -> str:
        """A ClusterQueue of the portal that covers the class."""
        name = self.name(stage)
        labels = {"app.kubernetes.io/managed-by": "gpu-portal", "gpu-portal/owner": "tenants.namespace.0"}
        spec = {"cohortName": self.cluster.cohort, **covering(gpu_class, GPU)}
        kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue"}
        self.admin.apply({**kind, "metadata": {"name": name, "labels": labels}, "spec": spec})
        return name


def covering(gpu_class: GpuClass, resource: str) -> dict[str, Any]:
    quota = {"name": resource, "nominalQuota": "0", "borrowingLimit": "0"}
    flavor = {"name": queries.flavor_name(gpu_class), "resources": [quota]}
    return {"resourceGroups": [{"coveredResources": [resource], "flavors": [flavor]}]}


def _gpu_labels(labels: dict[str, str | None]) -> dict[str, str | None]:
    """Keyword arguments → labels: `gpu__sharing_strategy` is nvidia.com/gpu.sharing-strategy."""
    return {f"nvidia.com/{name.replace('__', '.').replace('_', '-')}": value for name, value in labels.items()}


# ---- classes and nodes -------------------------------------------------------------------------------------------


def class_without_nodes(site: Site) -> Stage:
    node = site.node("gone")
    site.offer("gone")
    site.node("there")
    site.offer("there")
    mend = site.label(node, gpu__product=node)
    return Stage(
        f"No node provides class {node}:", site.name("there"), site.label(node, gpu__product=f"{node}-else"), mend
    )


def resource_not_offered(site: Site) -> Stage:
    node, other = site.node("unsold", {GPU: 0}), site.node("sold")
    site.offer("sold")
    break_it, mend = site.advertise(node, {GPU: "8"}, {GPU: "8"}), site.advertise(node, {GPU: "0"}, {GPU: "0"})
    return Stage(f"Node {node} No class offers 8 units of nvidia.com/gpu", other, break_it, mend)


def slices_not_offered(site: Site) -> Stage:
    node, other = site.node("unused-slices"), site.node("used-slices", {GPU: 0, "nvidia.com/mig-1g.10gb": 7})
    site.offer("unused-slices")
    site.offer("used-slices", resource="nvidia.com/mig-1g.10gb", partition="1g.10gb", memory_mib=None)
    more, less = {"nvidia.com/mig-1g.10gb": "7"}, {"nvidia.com/mig-1g.10gb": None}
    break_it, mend = site.advertise(node, dict(more), dict(more)), site.advertise(node, dict(less), dict(less))
    return Stage(node, other, break_it, mend)


def label_contradicts_class(site: Site) -> Stage:
    node, other = site.node("lies"), site.node("true")
    site.offer("lies")
    site.offer("true")
    about = f"Class {node} states memory 81920 MiB, but the labels of {node} state 40960 MiB."
    return Stage(about, other, site.label(node, gpu__memory="40960"), site.label(node, gpu__memory="81920"))


def exclusive_on_shared(site: Site) -> Stage:
    node, other = site.node("sliced"), site.node("alone", gpu__sharing_strategy="time-slicing", gpu__replicas="4")
    site.offer("sliced")
    alone = {"nvidia.com/gpu.product": other, "nvidia.com/gpu.sharing-strategy": "none"}
    site.offer("alone", node_labels=alone)
    break_it = site.label(node, gpu__sharing_strategy="time-slicing", gpu__replicas="4")
    mend = site.label(node, gpu__sharing_strategy="none", gpu__replicas="1")
    return Stage(f"each GPU of {node} is shared among 4 by time-slicing", other, break_it, mend)


def many_time_slices(site: Site) -> Stage:
    node, other = site.node("turns-many"), site.node("turns-few")
    sliced = {"sharing": "time-slicing", "replicas": 4, "units_per_workload": 1}
    many = site.offer("turns-many", **sliced)
    site.offer("turns-few", **sliced)
    return Stage(
        f"Class {node} is time-sliced ×5 on one GPU",
        other,
        site.edit(many, replicas=5),
        site.edit(many, replicas=4),
    )


def unlike_products(site: Site) -> Stage:
    stages = ("mixed", "pure")
    for stage in stages:
        for number in ("1", "2"):
            site.node(f"{stage}-{number}", gpu__product=site.name(stage), **{f"test__{stage}": site.unique})
        site.offer(stage, node_labels={f"nvidia.com/test.{stage}": site.unique})
    node = site.name("mixed-2")
    break_it, mend = site.label(node, gpu__product=node), site.label(node, gpu__product=site.name("mixed"))
    return Stage(f"Class {site.name('mixed')} mixes 2 products: ", site.name("pure"), break_it, mend)


def unlike_interconnects(site: Site) -> Stage:
    for stage in ("patched", "wired"):
        for number in ("1", "2"):
            site.node(f"{stage}-{number}", gpu__product=site.name(stage), gpu__machine="DGX", gpu__clique=f"c.{number}")
        site.offer(stage)
    node = site.name("patched-2")
    break_it, mend = site.label(node, gpu__machine="box"), site.label(node, gpu__machine="DGX")
    return Stage(f"Class {site.name('patched')} mixes 2 machines", site.name("wired"), break_it, mend)


def same_capacity(site: Site) -> Stage:
    node, other = site.node("twice", test__left=site.unique), site.node("once", test__up=site.unique)
    for stage, label in (("twice", "left"), ("twice-b", "right"), ("once", "up"), ("once-b", "down")):
        site.offer(stage, product="", node_labels={f"nvidia.com/test.{label}": site.unique})
    about = f"on {node}: the capacity is counted twice."
    return Stage(about, f"on {other}", site.label(node, test__right=site.unique), site.label(node, test__right=None))


def selector_is_part(site: Site) -> Stage:
    product = site.node("part", test__zone="a")
    wide = {"nvidia.com/gpu.product": product, "nvidia.com/test.zone": "a"}
    offer = site.offer("part", node_labels=wide)
    site.offer("whole", node_labels={**wide, "nvidia.com/test.zone": "b"})
    break_it = site.edit(offer, node_labels={"nvidia.com/gpu.product": product})
    return Stage(
        f"Class {product} selects nvidia.com/gpu.product={product}, which is only part",
        f"Class {site.name('whole')} selects",
        break_it,
        site.edit(offer, node_labels=wide),
    )


# ---- queues ------------------------------------------------------------------------------------------------------


def resource_not_covered(site: Site) -> Stage:
    site.node("uncovered")
    offer = site.offer("uncovered")
    queue, other = site.queue("uncovered", offer), site.queue("covered", offer)
    break_it = partial(site.admin.patch, QUEUES, queue, {"spec": covering(offer, "nvidia.com/other")})
    mend = partial(site.admin.patch, QUEUES, queue, {"spec": covering(offer, GPU)})
    return Stage(f"which queue {queue} neither covers", other, break_it, mend)


DRA: dict[str, Any] = {"interface": "dra", "device_selector": "true", "resource": "dra.portal/h100"}


def device_class_not_mapped(site: Site) -> Stage:
    offer = site.offer("unmapped", device_class="gpu.nvidia.com", **DRA)
    site.offer("mapped", device_class="gpu.nvidia.com", **DRA)
    uncounted = site.device_class()
    mirrored.device_classes_tried(site.cluster, **{uncounted: ""})
    break_it = site.edit(offer, device_class=uncounted)
    return Stage(offer.name, site.name("mapped"), break_it, site.edit(offer, device_class="gpu.nvidia.com"))


def device_class_missing(site: Site) -> Stage:
    offer = site.offer("nodriver", device_class="gpu.nvidia.com", **DRA)
    site.offer("driver", device_class="gpu.nvidia.com", **DRA)
    break_it = site.edit(offer, device_class=f"{site.unique}.example")
    about = f"Class {offer.name} requests device class {site.unique}.example"
    return Stage(about, site.name("driver"), break_it, site.edit(offer, device_class="gpu.nvidia.com"))


def selector_refused(site: Site) -> Stage:
    return _tried(site, "badcel", "goodcel", DeviceTrial.Verdict.REFUSED, "The API server refuses the CEL selector of")


def no_device_matches(site: Site) -> Stage:
    return _tried(site, "nomatch", "match", DeviceTrial.Verdict.NO_DEVICE, "matches the CEL selector of")


def _tried(site: Site, stage: str, other: str, verdict: DeviceTrial.Verdict, words: str) -> Stage:
    offer = site.offer(stage, device_class="gpu.nvidia.com", **DRA)
    site.offer(other, device_class="gpu.nvidia.com", **DRA)
    selector = f"device.driver == '{site.name(stage)}'"
    asked = DeviceRequest("gpu.nvidia.com", selector)
    found = {"device_class": asked.device_class, "selector": selector, "verdict": verdict, "tried_at": timezone.now()}
    DeviceTrial.objects.create(cluster=site.cluster, key=asked.key, **found)
    break_it = site.edit(offer, device_selector=selector)
    return Stage(f"{words} class {offer.name}", site.name(other), break_it, site.edit(offer, device_selector="true"))


def queue_limit(site: Site) -> Stage:
    """64 classes may share one resource name; the 65th is one too many. The neighbour has one label too few."""
    resource, product = f"{site.unique}.example.com/gpu", site.node("many")
    labels = {"nvidia.com/gpu.product": product}
    GpuClass.objects.bulk_create(
        GpuClass(cluster=site.cluster, slug=f"z-{n}", name=f"z {n}", resource=resource, node_labels=labels)
        for n in range(65)
    )
    site.offer("few", node_labels={f"nvidia.com/test.{n}": site.unique for n in range(8)})
    rows = GpuClass.objects.filter(resource=resource)
    break_it = partial(rows.update, life_cycle=GpuClass.LifeCycle.ACTIVE)
    mend = partial(rows.filter(slug="z-64").update, life_cycle=GpuClass.LifeCycle.DRAFT)
    return Stage(f"65 classes use {resource}", site.name("few"), break_it, mend)


# ---- nodes -------------------------------------------------------------------------------------------------------


def layout_not_named(site: Site) -> Stage:
    cut = {GPU: 0, "nvidia.com/mig-1g.10gb": 7}
    node = site.node("layout", cut, mig__config="all-1g.10gb")
    other = site.node("named", {**cut, GPU: 3}, mig__config="one-cut-three-whole")
    break_it, mend = site.advertise(node, {GPU: "3"}, {GPU: "3"}), site.advertise(node, {GPU: "0"}, {GPU: "0"})
    return Stage(f"Node {node} has 3 whole and slices 1g.10gb", other, break_it, mend)


def mig_invalid(site: Site) -> Stage:
    node, other = site.node("invalid"), site.node("single", gpu__product=f"{site.name('single')}-MIG-1g.10gb")
    break_it, mend = site.label(node, gpu__product=f"{node}-MIG-INVALID"), site.label(node, gpu__product=node)
    return Stage(f"Node {node} reports {node}-MIG-INVALID", other, break_it, mend)


def mig_state(site: Site) -> Stage:
    labels = {"mig__config": "all-disabled", "mig__config__state": "success"}
    node, other = site.node("pending", **labels), site.node("success", **labels)
    break_it, mend = site.label(node, mig__config__state="pending"), site.label(node, mig__config__state="success")
    return Stage(f"since at least <!> Node {node} is being set", other, break_it, mend)


def unhealthy_devices(site: Site) -> Stage:
    node, other = site.node("ill", {GPU: 8}), site.node("healthy", {GPU: 8})
    break_it, mend = site.advertise(node, {}, {GPU: "5"}), site.advertise(node, {}, {GPU: "8"})
    return Stage(f"3 of 8 nvidia.com/gpu on node {node} are not healthy", other, break_it, mend)


def no_devices_left(site: Site) -> Stage:
    node, other = site.node("gone", {GPU: 8}), site.node("here", {GPU: 8})
    break_it, mend = site.advertise(node, {}, {GPU: "0"}), site.advertise(node, {}, {GPU: "8"})
    return Stage(f"None of the 8 nvidia.com/gpu of node {node} is allocatable", other, break_it, mend)


def plugin_advertises_none(site: Site) -> Stage:
    node, other = site.node("none"), site.node("cut", {GPU: 0, "nvidia.com/mig-1g.10gb": 7})
    break_it, mend = site.advertise(node, {GPU: "0"}, {GPU: "0"}), site.advertise(node, {GPU: "4"}, {GPU: "4"})
    return Stage(f"The device plugin of node {node} advertises 0 nvidia.com/gpu.", other, break_it, mend)


def nothing_advertised(site: Site) -> Stage:
    node, other = site.node("silent", gpu__present="true"), site.node("absent", {}, gpu__present="false")
    break_it, mend = site.advertise(node, {GPU: None}, {GPU: None}), site.advertise(node, {GPU: "4"}, {GPU: "4"})
    return Stage(f"The labels of node {node} state GPUs of nvidia.com", other, break_it, mend)


def no_taint(site: Site) -> Stage:
    node, other = site.node("bare"), site.node("tainted")
    break_it = partial(site.admin.patch, "v1/nodes", node, {"spec": {"taints": []}})
    mend = partial(site.admin.patch, "v1/nodes", node, {"spec": {"taints": [TAINT]}})
    return Stage(f"GPU node {node} has no NoSchedule taint", other, break_it, mend)


def too_many_profiles(site: Site) -> Stage:
    three: dict[str, int] = {GPU: 0, **{f"nvidia.com/mig-{name}": 1 for name in ("1g.10gb", "2g.20gb", "3g.40gb")}}
    node, other = site.node("four", three), site.node("three", three)
    more, less = {"nvidia.com/mig-1g.20gb": "1"}, {"nvidia.com/mig-1g.20gb": None}
    break_it, mend = site.advertise(node, dict(more), dict(more)), site.advertise(node, dict(less), dict(less))
    return Stage(f"{node} has 4 MIG profiles", other, break_it, mend)


def site_profile(site: Site) -> Stage:
    key = f"test-{site.unique}"

    def write(value: str | None) -> None:
        site.admin.patch("v1/configmaps", "site", {"data": {key: value}}, namespace="gpu-portal")

    return Stage(f"unknown key {key}", "dns-addresses of", partial(write, "x"), partial(write, None))


STAGES: tuple[Callable[[Site], Stage], ...] = (
    class_without_nodes,
    resource_not_offered,
    slices_not_offered,
    label_contradicts_class,
    exclusive_on_shared,
    many_time_slices,
    unlike_products,
    unlike_interconnects,
    same_capacity,
    selector_is_part,
    resource_not_covered,
    device_class_not_mapped,
    device_class_missing,
    selector_refused,
    no_device_matches,
    layout_not_named,
    mig_invalid,
    mig_state,
    unhealthy_devices,
    no_devices_left,
    plugin_advertises_none,
    nothing_advertised,
    no_taint,
    too_many_profiles,
    site_profile,
    queue_limit,  # last: it leaves a long list behind
)


# With another storage class in the site profile, new volumes of all other tests would get it. What was measured is in
# rows that operators write: nothing of it comes from the cluster.
NOT_STAGED = {"storage_class_missing", "unlike_links", "slow_links", "old_measurement"}


def test_every_check_is_staged() -> None:
    staged = {stage.__name__ for stage in STAGES} | NOT_STAGED
    assert staged == {name if (name := one.__name__) != "queue_limits" else "queue_limit" for one in suite.CHECKS}


@pytest.fixture
def site(admin: Api, cluster: Cluster, unique: str, clean_cluster: None) -> Iterator[Site]:
    found = Site(admin, cluster, unique)
    try:
        yield found
    finally:
        found.remove()


@pytest.fixture
def shown(olga: User) -> Callable[[str], list[str]]:
    """Reads the findings of one check from the health page: text without tags, times as `<!>`."""
    client = Client()
    client.force_login(olga)

    def read(code: str) -> list[str]:
        page = client.get("/health?part=catalog").content.decode()
        entries = re.findall(rf'<li data-check="{code}">(.*?)</li>', page, re.DOTALL)
        return [text_of(entry) for entry in entries]

    return read


def text_of(html: str) -> str:
    without_time = re.sub(r"<time .*?</time>( on <time .*?</time>)?", "<!>", html, flags=re.DOTALL)
    bare = re.sub(r"<(?!!>)[^>]*>", "", without_time)
    return " ".join(bare.replace("Warning", "").replace("Error", "").replace("Hint", "").split())


@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("cordons_alone")
def test_every_check_shows_and_goes_within_five_seconds(
    site: Site, watcher: None, shown: Callable[[str], list[str]], subtests: pytest.Subtests
) -> None:
    stages = {build.__name__: build(site) for build in STAGES}
    known = {"Node", "ResourceSlice", "DeviceClass", "ClusterQueue"}
    wait_until(lambda: known <= mirror.known_kinds(site.cluster.pk), what="the mirror is known")
    wait_until(lambda: set(site.nodes) <= {one.name for one in mirror.nodes(site.cluster.pk) if one.ready})
    slowest: dict[str, float] = {}
    for code, stage in stages.items():
        with subtests.test(code):
            slowest[code] = show_and_go(partial(shown, code), stage)
    assert median(slowest.values()) < WITHIN_S, slowest


def show_and_go(read: Callable[[], list[str]], stage: Stage) -> float:
    """Returns the longer of the two waits, each measured from the write."""

    def shows() -> bool:
        return any(stage.about in one for one in read())

    assert not shows(), read()
    started_at = time.monotonic()
    stage.break_it()
    wait_until(shows, within_s=PATIENCE_S, what=f"“{stage.about}”", story=lambda: "\n".join(read()))
    shown_s = time.monotonic() - started_at
    beside = [one for one in read() if stage.neighbour in one]
    started_at = time.monotonic()
    stage.mend()
    wait_until(lambda: not shows(), within_s=PATIENCE_S, what=f"“{stage.about}” is gone")
    assert beside == []
    return max(shown_s, time.monotonic() - started_at)
