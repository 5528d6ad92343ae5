"""The page of one class: what it shows to which user; its queries do not grow with nodes, pods and images."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.classes.proposals import actions as proposal_actions
from catalog.contract.types import Axes
from catalog.discovery import queries as discovery_queries
from catalog.guide.troubleshooting import known_failures
from catalog.models import GpuClass, Image
from cluster.models import Cluster, MirrorNode
from desk.classes import queries as class_queries
from desk.classes.live_status import class_live
from desk.nodes.mig_drawing import SliceState
from tenants.models import ClassAccess, Tenant
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def everything(cluster: Cluster) -> dict[str, GpuClass]:
    """One class for each kind of capacity of the simulated hardware, as discovery proposes it."""
    mirrored.hardware_seen(cluster)
    found = discovery_queries.discover_cluster(cluster)
    assert found is not None
    made = proposal_actions.accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    return {one.slug: one for one in made}


def page_of(user: User, slug: str) -> str:
    response = signed_in(user).get(f"/catalog/{slug}")
    assert response.status_code == 200
    return response.content.decode()


def units(resource: str, count: int) -> dict[str, Any]:
    return {f"nvidia.com/{resource}": count}


def shown_to(user: User, one: GpuClass) -> class_queries.ClassPage:
    by = Actor(user, "page")
    return class_queries.class_page(by, class_queries.visible_class(by, one.slug))


def test_every_kind_of_class_has_its_page(everything: dict[str, GpuClass], team_a: Tenant, alice: User) -> None:
    for slug, one in everything.items():
        text = page_of(alice, slug)
        shown = shown_to(alice, one)
        assert all(promise.reason for promise in shown.contract.promises), slug
        for words in (
            one.name,
            "Guarantees and limits",
            "Known failures",
            "kind: Deployment",
            shown.contract.neighbours,
        ):
            assert words.replace("'", "&#x27;") in text, (slug, words)


def test_figures_are_those_of_the_cluster(everything: dict[str, GpuClass], alice: User) -> None:
    shown = class_live(Actor(alice, "page"), everything["a100-sxm4-80gb"])
    assert (shown.capacity.allocatable, shown.capacity.free, shown.capacity.most_on_one_node) == (16, 16, 4)
    assert [(line.product, line.ready, line.cordoned) for line in shown.products] == [("NVIDIA-A100-SXM4-80GB", 4, 0)]


def test_without_a_mirror_nothing_is_said_to_be_free(a100: GpuClass, alice: User) -> None:
    text = page_of(alice, a100.slug)
    assert "Unknown: The cluster has not been listed yet." in text
    assert "<dt>free now</dt><dd>–</dd>" in text
    assert "The cluster has not been read yet" in text


def test_the_page_fetches_only_what_changes(everything: dict[str, GpuClass], alice: User) -> None:
    client = signed_in(alice)
    text = client.get("/catalog/a100-sxm4-80gb?part=live").content.decode()
    assert 'hx-get="/catalog/a100-sxm4-80gb?part=live"' in text
    assert "<html" not in text
    assert text.strip() in client.get("/catalog/a100-sxm4-80gb").content.decode()


def test_cards_are_drawn_as_slices_with_what_is_yours(
    everything: dict[str, GpuClass], cluster: Cluster, team_a: Tenant, alice: User, charlie: User, unique: str
) -> None:
    slice_ = "a100-sxm4-80gb-2g-20gb"
    mine = mirrored.pod("p", node="a100-mig", namespace=f"team-a-{unique}", gpu_class=slice_, **units("mig-2g.20gb", 1))
    theirs = mirrored.pod("q", node="a100-mig", namespace="strangers-own", **units("mig-1g.10gb", 3))
    mirrored.hardware_seen(cluster, Pod=[mine, theirs])

    drawn = class_live(Actor(alice, "page"), everything[slice_]).mig

    assert drawn is not None
    assert [card.title for card in drawn.cards] == ["GPU 1", "GPU 2", "GPU 3", "GPU 4"]
    boxes = [box.text for card in drawn.cards for box in card.boxes]
    assert (boxes.count("2g.20gb · your team"), boxes.count("2g.20gb · free")) == (1, 3)
    assert (boxes.count("1g.10gb · in use"), boxes.count("1g.10gb · free")) == (3, 4)
    assert boxes.count("1g.10gb.me · free") == 1
    assert "4 × 2g.20gb (1 in use, 1 of your team)" in drawn.listed
    text = page_of(alice, slice_)
    assert "2g.20gb · your team</text>" in text
    assert "strangers-own" not in text
    assert "2g.20gb · your team" not in page_of(charlie, slice_)


def test_slices_count_by_the_layout_that_discovery_saw(everything: dict[str, GpuClass], alice: User) -> None:
    """2 × 1g, 2g and 3g fill each GPU of the node: 2/15, 4/15 and 7/15 of it."""
    for slug, weight in (("1g-10gb", "2/15"), ("2g-20gb", "4/15"), ("3g-40gb", "7/15"), ("1g-10gb-single", "1/7")):
        assert f"{weight} GPU per unit in totals" in page_of(alice, f"a100-sxm4-80gb-{slug}")
    assert "1 GPU per unit in totals" in page_of(alice, "a100-sxm4-80gb")


def test_a_node_of_one_profile_is_drawn_by_what_its_slices_fill(everything: dict[str, GpuClass], alice: User) -> None:
    drawn = class_live(Actor(alice, "page"), everything["a100-sxm4-80gb-1g-10gb-single"]).mig
    assert drawn is not None
    assert [len([box for box in card.boxes if box.state is SliceState.FREE]) for card in drawn.cards] == [7, 7, 7, 7]
    assert drawn.cards[0].boxes[-1].text == "no slice"


def test_a_class_for_named_teams_is_not_there_for_others(
    a100: GpuClass, team_a: Tenant, alice: User, charlie: User
) -> None:
    GpuClass.objects.update(visibility=GpuClass.Visibility.NAMED)
    path = f"/catalog/{a100.slug}"
    assert [signed_in(one).get(path).status_code for one in (alice, charlie)] == [404, 404]
    ClassAccess.objects.create(tenant=team_a, gpu_class=a100)
    assert [signed_in(one).get(path).status_code for one in (alice, charlie)] == [200, 404]
    assert signed_in(charlie).get(f"{path}?part=live").status_code == 404


@pytest.mark.parametrize("life_cycle", [GpuClass.LifeCycle.DRAFT, GpuClass.LifeCycle.RETIRED])
def test_a_class_that_is_not_open_is_not_there(a100: GpuClass, alice: User, life_cycle: str) -> None:
    GpuClass.objects.update(life_cycle=life_cycle)
    assert signed_in(alice).get(f"/catalog/{a100.slug}").status_code == 404


def test_a_retiring_class_names_its_successor_only_to_who_may_know_of_it(
    cluster: Cluster, a100: GpuClass, alice: User
) -> None:
    heir = make.gpu_class(cluster, slug="heir", name="H100 whole card", visibility=GpuClass.Visibility.NAMED)
    until = timezone.now() + timedelta(days=9)
    GpuClass.objects.filter(pk=a100.pk).update(
        life_cycle="retiring", successor=heir, retiring_message="The cards are worn.", runs_until=until
    )
    text = page_of(alice, a100.slug)
    assert "The cards are worn." in text
    assert f"{timezone.localtime(until):%b %Y}" in text
    assert "H100 whole card" not in text

    GpuClass.objects.filter(pk=heir.pk).update(visibility=GpuClass.Visibility.EVERYONE)
    assert '<a href="/catalog/heir">See H100 whole card</a>' in page_of(alice, a100.slug)


def test_a_held_class_says_why_and_until_when(a100: GpuClass, alice: User) -> None:
    now = timezone.now()
    GpuClass.objects.update(held_since=now, held_reason="a driver update", held_until=now + timedelta(hours=2))
    text = page_of(alice, a100.slug)
    assert "Scheduling is paused." in text
    assert "a driver update; expected to resume at" in text


def test_its_topology_and_the_nodes_that_kueue_ignores_are_shown(a100: GpuClass, alice: User) -> None:
    assert signed_in(alice).get(f"/api/v1/classes/{a100.slug}").json()["topology"] is None
    GpuClass.objects.update(topology="gpu-portal-racks")
    assert "gpu-portal-racks; its levels are unknown now" in page_of(alice, a100.slug)
    unknown = signed_in(alice).get(f"/api/v1/classes/{a100.slug}").json()["topology"]
    assert unknown == {
        "name": "gpu-portal-racks",
        "levels": None,
        "nodes": None,
        "without_labels": None,
        "domains": None,
    }

    levels = ["example.org/rack", "kubernetes.io/hostname"]
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    topology = mirrored.with_metadata({"metadata": {"name": "gpu-portal-racks"}, "spec": spec})
    mirrored.hardware_seen(a100.cluster, Topology=[topology])
    said = signed_in(alice).get(f"/api/v1/classes/{a100.slug}").json()["topology"]
    count = said["nodes"]
    assert count > 1
    shown = {"name": "gpu-portal-racks", "levels": levels, "nodes": count, "without_labels": count}
    assert said == {**shown, "domains": []}
    text = page_of(alice, a100.slug)
    assert "gpu-portal-racks: example.org/rack, kubernetes.io/hostname." in text
    assert f"{count} of {count} nodes lack a label of a level: Kueue starts nothing there." in text


def test_what_staff_entered_is_shown_with_its_date_and_version(a100: GpuClass, alice: User) -> None:
    GpuClass.objects.update(
        interconnect="nvlink",
        interconnect_note="600 GB/s between any two, by nccl-tests.",
        interconnect_on=date(2026, 11, 3),
        eligibility="For groups with a project number.",
        terms="Do not mine.",
        terms_version=3,
        price_per_unit_hour="1.5",
    )
    text = page_of(alice, a100.slug)
    for words in (
        "NVLink",
        "600 GB/s between any two, by nccl-tests.",
        "Measured on 3 Nov 2026",
        "For groups with a project number.",
        "Terms, version 3",
        "Do not mine.",
        "1.5 per GPU-hour",
    ):
        assert words in text, words


def test_images_that_do_not_run_here_come_last_with_the_reason(everything: dict[str, GpuClass], alice: User) -> None:
    Image.objects.create(name="rocm", reference="example.org/rocm:1", vendor="amd", position=1)
    Image.objects.create(name="torch", reference="example.org/torch:1", vendor="nvidia", min_cuda="12.4", position=2)
    Image.objects.create(name="tomorrow", reference="example.org/t:1", vendor="nvidia", min_cuda="99.1", position=3)
    shown = shown_to(alice, everything["a100-sxm4-80gb"]).images
    assert [(image.name, bool(image.refusal)) for image in shown] == [
        ("torch", False),
        ("rocm", True),
        ("tomorrow", True),
    ]


def test_buttons_say_why_they_are_off(a100: GpuClass, team_a: Tenant, alice: User, charlie: User) -> None:
    doors = shown_to(alice, a100).doors
    assert (doors.team, doors.request_refusal) == ("Team A: no quota.", None)
    assert doors.launch_refusal is not None
    assert doors.launch_refusal.message.replace("'", "&#x27;") in page_of(alice, a100.slug)
    make.grant(team_a, a100, units=2)
    granted = shown_to(alice, a100).doors
    assert (granted.team, granted.launch_refusal) == ("Team A: quota of 2 GPUs.", None)
    assert "You are not in a team yet" in page_of(charlie, a100.slug)


def test_manifests_are_for_the_persons_own_namespace(a100: GpuClass, team_a: Tenant, alice: User, unique: str) -> None:
    Image.objects.create(name="python", reference="example.org/python:3", digest=f"sha256:{'a' * 64}", kind="job")
    texts = {one.kind: one.text for one in shown_to(alice, a100).samples}
    assert list(texts) == ["job", "pod", "deployment"]
    for text in texts.values():
        assert f"namespace: team-a-{unique}" in text
        assert f"example.org/python:3@sha256:{'a' * 64}" in text


def test_usual_failures_are_those_of_the_tier() -> None:
    def texts(most: int = 8, **fields: Any) -> str:
        values: dict[str, Any] = {
            "vendor": "nvidia",
            "partition": "none",
            "sharing": "none",
            "replicas": 1,
            "memory_mib": 81920,
            "interface": "device-plugin",
            "resource": "nvidia.com/gpu",
        }
        found = known_failures(Axes(**{**values, **fields}), units_per_workload=most)
        return " ".join(f"{one.text} {one.action}" for one in found)

    whole, turns = texts(), texts(sharing="time-slicing", replicas=4, resource="nvidia.com/gpu.shared")
    assert "Insufficient nvidia.com/gpu" in whole
    assert "exceeded quota: gpu-portal, requested: requests.nvidia.com/gpu=" in whole
    assert "maximum request size" not in whole
    assert "Insufficient nvidia.com/gpu.shared" in turns
    assert "maximum request size for shared resources is 1; found 2" in turns
    assert "cannot allocate all claims" in texts(interface="dra", resource="dra.portal/h100")
    assert "MPS server" in texts(sharing="mps", replicas=4)
    assert "device_count() is 1" in texts(partition="1g.10gb", resource="nvidia.com/mig-1g.10gb")
    assert "CUDA" not in texts(vendor="amd", resource="amd.com/gpu")
    assert "flavors" not in texts(interface="none", resource="")
    for fields in ({}, {"interface": "dra"}, {"interface": "none"}):
        assert "request fewer" in texts(**fields)
        assert "request more units" in texts(**fields)
        assert "request fewer" not in texts(most=1, **fields)
        assert "request more units" not in texts(most=1, **fields)


@pytest.mark.parametrize("part", ["", "?part=live"])
def test_queries_do_not_grow(
    part: str, everything: dict[str, GpuClass], cluster: Cluster, team_a: Tenant, alice: User
) -> None:
    path = f"/catalog/a100-sxm4-80gb-1g-10gb{part}"
    client = signed_in(alice)
    client.get(path)
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        counts.append(len(captured))
        pods = [
            mirrored.pod(f"p{index}", node="a100-mig", namespace="x", **units("mig-1g.10gb", 1)) for index in range(5)
        ]
        mirrored.hardware_seen(cluster, Pod=pods)
        for index in range(5):
            Image.objects.create(name=f"i{number}-{index}", reference="example.org/i:1")
            make.gpu_class(cluster, slug=f"c{number}-{index}")
    assert counts[0] == counts[1]
    assert counts[0] <= (20 if part else 45)


def test_units_on_cordoned_nodes_are_told_with_who_cordoned_them(
    everything: dict[str, GpuClass], cluster: Cluster, alice: User
) -> None:
    path = "/catalog/a100-sxm4-80gb?part=live"
    client = signed_in(alice)
    assert "are on nodes that are cordoned" not in client.get(path).content.decode()
    node = MirrorNode.objects.get(name="a100-1")
    node.schedulable = False
    node.record = {**node.record, "cordon": {"manager": "kubectl", "at": "2026-11-27T14:02:00Z"}}
    node.save()
    sentence = "on nodes that are cordoned: a100-1 (cordoned with kubectl since 27 Nov 2026, 14:02)."
    assert f"4 of 16 GPUs are {sentence}" in client.get(path).content.decode()
