"""The catalog page: cards, the three questions with one answer, all filters, and the comparison."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.guide.requirements import BATCH, DECODE, ENCODE, INTERCONNECT, Requirements
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorObject
from cluster.reads.top_nodes import TopNode, TopNodes
from desk.catalog.cards import CatalogOverview, ClassCard, catalog_overview, money
from desk.catalog.forms import RequirementsForm
from desk.catalog.queries import catalog_data
from desk.catalog.unit_grid import unit_grid
from devcluster.controlplane import hardware
from tenants.models import Grant, Membership, Namespace, Tenant
from tests.support.rows import make, mirrored, running
from workloads.status.explain.admission import NAMESPACE_ENDING

pytestmark = pytest.mark.django_db

A100 = "NVIDIA-A100-SXM4-80GB"
TURNS = {"nvidia.com/gpu.sharing-strategy": "time-slicing"}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def seen_by(user: User, only: str = "") -> CatalogOverview:
    return catalog_overview(catalog_data(Actor(user=user, via="page")), only=only)


def card(user: User, slug: str) -> ClassCard:
    return next(one for one in seen_by(user).cards if one.slug == slug)


def page(user: User, path: str, **headers: str) -> str:
    response = signed_in(user).get(path, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def cards(units: int) -> dict[str, Any]:
    return {"nvidia.com/gpu": units}


@pytest.fixture
def turns(cluster: Cluster) -> GpuClass:
    return make.gpu_class(
        cluster,
        slug="turns",
        name="A100 in turns",
        sharing="time-slicing",
        replicas=4,
        units_per_workload=1,
        weight="0.25",
        resource="nvidia.com/gpu.shared",
        node_labels=TURNS,
    )


@pytest.fixture
def slice_class(cluster: Cluster) -> GpuClass:
    return make.gpu_class(
        cluster,
        slug="a100-1g",
        name="A100 1g.10gb",
        partition="1g.10gb",
        resource="nvidia.com/mig-1g.10gb",
        memory_mib=9856,
        price_per_unit_hour="0.38",
        node_labels={"nvidia.com/mig.strategy": "mixed"},
    )


@pytest.fixture
def stocked(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, slice_class: GpuClass, turns: GpuClass, cluster: Cluster
) -> Tenant:
    """The team has 4 GPUs and uses 2 of them on a100-1, where other teams use 1; it has 3 slices and no shares."""
    make.grant(team_a, a100, units=4)
    make.grant(team_a, slice_class, units=3)
    own = mirrored.pod("own", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, **cards(2))
    other = mirrored.pod("other", node="a100-1", namespace="elsewhere", **cards(1))
    mirrored.hardware_seen(cluster, Pod=[own, other])
    return team_a


# ---- class cards -----------------------------------------------------------------------------------------------------


def test_a_card_tells_what_is_free_and_what_the_team_has(stocked: Tenant, alice: User, a100: GpuClass) -> None:
    found = card(alice, a100.slug)
    assert (found.free, found.allocatable, found.one_node) == (13, 16, 4)
    assert found.tags == ("exclusive",)
    assert found.promised == "Allocated to teams: 4 of 16."
    assert found.team == "Team A: 2 of 4 used."
    assert [promise.topic for promise in found.contract.promises[:3]] == ["Memory", "Compute", "Fault isolation"]
    assert found.href == f"/catalog/{a100.slug}"


def test_cells_tell_the_teams_own_units_from_those_of_others(stocked: Tenant, alice: User, a100: GpuClass) -> None:
    found = card(alice, a100.slug).nodes
    assert found
    assert [row.name for row in found.rows] == ["a100-1", "a100-2", "a100-3", "a100-4"]
    assert [cell.look for cell in found.rows[0].cells] == ["mine", "mine", "other", "free"]
    assert found.text.startswith(
        "a100-1: 4 GPUs, 2 used by your team, 1 used by others, 1 free; a100-2: 4 GPUs, 0 used by others,"
    )
    assert found.text in page(alice, "/catalog")


def test_a_time_sliced_share_is_no_fraction_of_a_gpu(stocked: Tenant, alice: User, a100: GpuClass) -> None:
    assert card(alice, a100.slug).counted_as == "Counted in GPUs."
    assert card(alice, "turns").counted_as == "Up to 4 shares on one GPU, time-sliced; not added to GPU totals."
    assert "0.25" not in page(alice, "/catalog")


def test_slices_are_shown_as_gpus_too(stocked: Tenant, alice: User, slice_class: GpuClass) -> None:
    GpuClass.objects.filter(pk=slice_class.pk).update(weight="0.1429")
    text = "1 slice = 1/7 GPU; 35 free (= 5.0 GPU)."
    assert card(alice, slice_class.slug).counted_as == text


def test_nothing_is_said_to_be_free_while_the_cluster_is_not_read(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    make.grant(team_a, a100, units=4)
    found = card(alice, a100.slug)
    assert (found.free, found.one_node, found.nodes, found.promised) == (None, None, None, "")
    assert found.team == "Team A: quota of 4, usage unknown."
    assert (found.launch_label, found.at_once) == ("Launch", False)
    text = page(alice, "/catalog")
    assert "– <small>unknown</small>" in text
    assert "The cluster has not been read yet" in text
    assert "Start time unknown: the cluster has not been read." in text
    assert "unknown" in page(alice, "/catalog/compare")


def test_nothing_starts_now_in_a_namespace_that_is_being_deleted(
    stocked: Tenant, namespace_a: Namespace, alice: User, slice_class: GpuClass
) -> None:
    MirrorObject.objects.filter(kind="Namespace", name=namespace_a.name).delete()
    MirrorObject.objects.create(
        cluster_id=namespace_a.cluster_id, kind="Namespace", name=namespace_a.name, uid="namespace", resource_version=1,
        created_at=timezone.now(), deleting_since=timezone.now(), record={"phase": "Terminating", "conditions": []},
    )  # fmt: skip
    found = card(alice, slice_class.slug)
    assert (found.launch_label, found.at_once) == ("Launch (will be queued)", False)
    assert f"{NAMESPACE_ENDING} New workloads wait." in unescape(page(alice, "/catalog"))


def test_the_launch_button_says_what_is_met(
    stocked: Tenant, namespace_a: Namespace, alice: User, a100: GpuClass, slice_class: GpuClass, turns: GpuClass
) -> None:
    assert (card(alice, slice_class.slug).launch_label, card(alice, slice_class.slug).at_once) == (
        "Launch (starts now)",
        True,
    )
    refusal = card(alice, turns.slug).launch_refusal
    assert refusal
    assert refusal.code == "not_granted"
    GpuClass.objects.filter(pk=turns.pk).update(borrowing_limit=1)
    assert card(alice, turns.slug).launch_label == "Launch (borrowed share)"
    for number in range(3):
        running.workload(namespace_a, slice_class, name=f"waits-{number}", by=alice)
    assert card(alice, slice_class.slug).launch_label == "Launch (will be queued)"
    assert card(alice, slice_class.slug).team == "Team A: 0 of 3 used, 3 queued."


def test_a_held_class_shows_reason_and_end_and_still_queues(stocked: Tenant, alice: User, a100: GpuClass) -> None:
    now = timezone.now()
    GpuClass.objects.filter(pk=a100.pk).update(
        held_since=now, held_until=now + timedelta(hours=2), held_reason="a driver update"
    )
    found = card(alice, a100.slug)
    assert (found.state, found.launch_label, found.launch_refusal) == (
        "Scheduling paused",
        "Launch (scheduling paused)",
        None,
    )
    assert "for a driver update; expected to resume at" in found.notes[0]
    text = page(alice, "/catalog?mem=80&iso=own&how=interactive")
    assert "GPUs free, paused" in text
    assert text.count("for a driver update; expected to resume at") == 2  # on the card, and in the answer


def test_a_retiring_class_takes_nothing_new(stocked: Tenant, alice: User, a100: GpuClass, turns: GpuClass) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="retiring", successor=turns, retiring_message="Old.")
    found = card(alice, a100.slug)
    assert (found.state, found.notes) == (
        "Retiring",
        (f"{a100.name} is being retired. Running workloads continue. Its successor is A100 in turns. Old.",),
    )
    assert found.launch_refusal
    assert found.request_refusal
    assert (found.launch_refusal.code, found.request_refusal.code) == ("class_not_active", "class_retiring")


def test_a_member_is_told_who_may_request(stocked: Tenant, bob: User, a100: GpuClass) -> None:
    refusal = card(bob, a100.slug).request_refusal
    assert refusal
    assert refusal.message in page(bob, "/catalog").replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("price", "text"), [("0", ""), ("2.4", "2.40"), ("12", "12.00"), ("0.125", "0.125"), ("0.0001", "0.0001")]
)
def test_a_price_has_two_decimals_at_least(price: str, text: str) -> None:
    assert money(Decimal(price)) == text


# ---- filters ---------------------------------------------------------------------------------------------------------


def test_filters_count_and_keep_the_answers(stocked: Tenant, alice: User, a100: GpuClass) -> None:
    labels = [(one.label, one.count) for one in seen_by(alice).filters]
    assert labels == [("All", None), ("Exclusive", 2), ("Shared", 1), ("Available to my team", 2)]
    assert {one.slug for one in seen_by(alice, "exclusive").cards} == {a100.slug, "a100-1g"}
    assert {one.slug for one in seen_by(alice, "shared").cards} == {"turns"}
    assert {one.slug for one in seen_by(alice, "team").cards} == {a100.slug, "a100-1g"}
    text = page(alice, "/catalog?only=shared&mem=40")
    assert '<a href="?only=exclusive&amp;mem=40&amp;iso=own&amp;how=interactive">Exclusive (2)</a>' in text
    assert '<input type="hidden" name="only" value="shared">' in text
    assert len(seen_by(alice, "nonsense").cards) == 3


def test_none_match_is_not_none_there(team_a: Tenant, a100: GpuClass, alice: User, cluster: Cluster) -> None:
    assert "No class matches" in page(alice, "/catalog?only=shared")
    GpuClass.objects.all().delete()
    for path in ("/catalog", "/catalog/compare"):
        assert "The catalog is empty" in page(alice, path), path
    assert "No class with a GPU is active yet. Contact an operator." in page(alice, "/catalog/choose")


def test_a_class_for_named_teams_is_not_there_for_others(stocked: Tenant, alice: User, olga: User) -> None:
    GpuClass.objects.filter(slug="turns").update(visibility="named")
    assert "turns" not in {one.slug for one in seen_by(alice).every}
    assert "turns" in {one.slug for one in seen_by(olga).every}
    for path in ("/catalog", "/catalog/choose", "/catalog/compare?class=turns"):
        assert "A100 in turns" not in page(alice, path), path


# ---- users without a team --------------------------------------------------------------------------------------------


def test_a_person_without_a_team_sees_the_catalog_and_how_to_get_one(
    stocked: Tenant, charlie: User, a100: GpuClass
) -> None:
    found = card(charlie, a100.slug)
    assert (found.free, found.team, found.launch_href, found.request_href) == (13, "", "", "")
    assert [one.key for one in seen_by(charlie).filters] == ["", "exclusive", "shared"]
    assert found.nodes
    assert {cell.look for row in found.nodes.rows for cell in row.cells} == {"other", "free"}
    text = page(charlie, "/catalog?mem=10&iso=own&how=interactive")
    assert "You are not in a team; launching needs a team." in text
    assert 'href="/start"' in text
    assert "your team" not in text


def test_staff_without_a_team_see_the_catalog(stocked: Tenant, olga: User, a100: GpuClass) -> None:
    text = page(olga, "/catalog")
    assert a100.name in text
    assert 'href="/start"' not in text
    assert page(olga, "/catalog/choose")
    assert page(olga, "/catalog/compare")


def test_a_viewer_is_told_why_nothing_can_be_launched(stocked: Tenant, charlie: User, a100: GpuClass) -> None:
    make.member(stocked, charlie, Membership.Role.VIEWER)
    text = page(charlie, "/catalog?mem=10&iso=own&how=interactive")
    assert "Only members of Team A may launch. Viewers and staff can only read." in text
    assert "Launch on" not in text


# ---- recommendation --------------------------------------------------------------------------------------------------


def test_three_questions_have_one_answer(stocked: Tenant, alice: User) -> None:
    text = page(alice, "/catalog?mem=10&iso=own&how=interactive")
    for words in (
        "A100 1g.10gb, 1 slice",
        "9.6 GiB of GPU memory: your peak of 9.3 GiB (10 GB) fits, with 0.3 GiB to spare.",
        "Starts now: 35 free, 3 left in your team&#x27;s quota. 0.38 per hour.",
        "Launch on A100 1g.10gb",
        "Recommended",
        'href="/catalog/choose?mem=10&amp;iso=own&amp;how=interactive"',
    ):
        assert words in text, words
    assert "No question is answered yet" not in text
    assert "No question is answered yet" in page(alice, "/catalog")


def test_htmx_gets_the_answer_and_the_classes_alone(stocked: Tenant, alice: User) -> None:
    path = "/catalog?mem=80&iso=own&how=interactive"
    response = signed_in(alice).get(path, headers={"HX-Request": "true"})
    text = response.content.decode()
    assert "<html" not in text
    assert 'id="classes" aria-labelledby="all-classes" hx-swap-oob="true"' in text
    assert "A100 80GB whole card, 1 GPU" in text
    assert "HX-Request" in response["Vary"]
    restored = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<html" in page(alice, path, **restored)
    assert "hx-swap-oob" not in page(alice, path)
    assert "<html" not in page(alice, "/catalog/choose", **{"HX-Request": "true"})


def test_an_answer_that_is_none_is_told(stocked: Tenant, alice: User) -> None:
    text = page(alice, "/catalog?mem=lots")
    assert "Invalid answer" in text
    assert "lots is not one of the available choices" in text
    assert "at least 2" not in text
    text = page(alice, "/catalog/choose?cards=node&units=1&mem_gib=ten")
    assert "greater than or equal to 2" in text
    assert "Enter a number." in text


def test_the_answer_sends_to_a_request_where_the_team_has_none(stocked: Tenant, alice: User, turns: GpuClass) -> None:
    text = page(alice, "/catalog/choose?mem=80&iso=own&how=batch&fp8=on&vendor=nvidia")
    assert "No class fits" in text
    make.gpu_class(
        turns.cluster,
        slug="h100",
        name="H100",
        product="NVIDIA-H100-80GB-HBM3",
        resource="example.org/h100",
        memory_mib=81559,
        node_labels={"nvidia.com/gpu.product": A100},
    )
    GpuClass.objects.filter(slug="h100").update(resource="nvidia.com/gpu")
    text = page(alice, "/catalog/choose?mem=80&iso=own&how=batch&fp8=on&vendor=nvidia")
    assert "Request quota first: your team has no quota, and borrowing is off." in text
    assert "Request H100" in text


def test_all_reasons_and_why_not_the_others(stocked: Tenant, alice: User) -> None:
    text = page(alice, "/catalog/choose?mem=10&iso=own&how=batch&cards=node&units=2")
    for words in (
        "A100 80GB whole card</a>, 2 GPUs",
        "Why not the others",
        "There is no traffic between slices (NCCL, peer to peer)",
        "It is shared with up to 3 other pods, which can slow your workload down or terminate it.",
    ):
        assert words in text, words


def test_gpus_of_several_nodes_are_launched_as_workers(stocked: Tenant, alice: User, a100: GpuClass) -> None:
    make.grant(stocked, a100, units=12, kind=Grant.Kind.BOOST)
    text = page(alice, "/catalog/choose?mem=80&iso=own&how=several&cards=nodes&units=16")
    assert "A100 80GB whole card</a>, 4 workers of 4 GPUs" in text
    assert "16 GPUs as 4 workers of 4 GPUs, each on one node" in text
    (href,) = re.findall(rf'href="(/teams/team-a/launch\?gpu_class={a100.slug}[^"]+)"', text)
    form = signed_in(alice).get(unescape(href)).context["form"]
    assert [str(form[name].value()) for name in ("gpu_class", "units", "workers")] == [a100.slug, "4", "4"]
    assert form.is_job
    one = page(alice, "/catalog/choose?mem=80&iso=own&how=batch&cards=node&units=16")
    assert "or let the job use several nodes: 4 workers of 4 GPUs." in one


def test_optional_questions_are_open_only_where_one_is_answered(stocked: Tenant, alice: User) -> None:
    assert '<details class="ask">' in page(alice, "/catalog/choose?mem=10&iso=alone")
    assert '<details class="ask" open>' in page(alice, "/catalog/choose?mem=10&resume=no")


def test_no_class_fits(stocked: Tenant, alice: User, slice_class: GpuClass) -> None:
    text = page(alice, "/catalog/choose?mem_gib=200")
    assert "No class fits" in text
    assert "No class has 200 GiB on one GPU" in text
    text = page(alice, "/catalog/choose?iso=shared&mem=unknown")
    assert "Shared classes do not fit. A100 in turns: Its memory is not isolated and your peak is unknown" in text


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ("", Requirements()),
        ("mem=10", Requirements(9537)),
        ("mem=more", Requirements(81920, or_more=True)),
        ("mem=10&mem_gib=0.5", Requirements(512)),
        ("mem_gib=9.625", Requirements(9856)),
        ("mem_gib=9.63", Requirements(9862)),
        ("how=several", Requirements(work=BATCH, cards=2)),
        ("how=several&units=8&sensitive=interconnect", Requirements(work=BATCH, cards=8, sensitive=INTERCONNECT)),
        # A notebook runs on one node.
        ("cards=nodes&units=16&hours=days", Requirements(cards=16, several_nodes=True, long=True, work=BATCH)),
        ("iso=alone&resume=no&video=encode&prefer=time",
         Requirements(alone=True, resumes=False, video=ENCODE, soon=True)),
        ("iso=own&resume=yes&video=decode&prefer=price", Requirements(resumes=True, video=DECODE)),
        ("units=4", Requirements()),
        ("iso=shared&small=yes&vendor=amd&fp8=on&dra=on",
         Requirements(own_part=False, small_processes=True, vendor="amd", fp8=True, dra=True)),
    ],
)  # fmt: skip
def test_answers_are_understood(query: str, needs: Requirements) -> None:
    form = RequirementsForm.asked(QueryDict(query))
    assert form.is_valid(), form.errors
    assert form.needs() == needs


# ---- comparison of classes -------------------------------------------------------------------------------------------


def test_classes_are_compared_side_by_side(stocked: Tenant, alice: User, a100: GpuClass) -> None:
    text = page(alice, "/catalog/compare")
    for words in ("13 of 16 GPUs", "35 of 35 slices", "Team A: 2 of 4 used.", "Time-sliced:", "0.38 per slice-hour"):
        assert words in text, words
    two = page(alice, "/catalog/compare?class=turns&class=a100-1g")
    assert two.count('<th scope="col"><a') == 2
    assert f'<th scope="col"><a href="/catalog/{a100.slug}">' not in two
    assert page(alice, "/catalog/compare?class=nobody").count('<th scope="col"><a') == 3


# ---- drawings --------------------------------------------------------------------------------------------------------


def cards_of_a100(count: int) -> list[mirrored.Raw]:
    """Nodes with 4 whole GPUs each, named node-00 and so on."""
    base = next(node for node in hardware.read("mixed").nodes if node["metadata"]["name"] == "a100-1")
    names = [f"node-{number:02}" for number in range(count)]
    return [mirrored.ready({**base, "metadata": {**base["metadata"], "name": name}}) for name in names]


def test_of_many_nodes_six_are_drawn_those_of_the_team_first(
    team_a: Tenant, alice: User, namespace_a: Namespace, a100: GpuClass, cluster: Cluster
) -> None:
    own = mirrored.pod("own", node="node-11", namespace=namespace_a.name, gpu_class=a100.slug, **cards(1))
    full = mirrored.pod("full", node="node-00", namespace="elsewhere", **cards(4))
    mirrored.seen(cluster, Node=cards_of_a100(12), Pod=[own, full])
    found = card(alice, a100.slug).nodes
    assert found
    assert [row.name for row in found.rows] == [f"node-{number:02}" for number in (1, 2, 3, 4, 5, 11)]
    assert found.more == 6
    assert "and 6 more nodes" in page(alice, "/catalog")


def test_devices_of_two_kinds_are_drawn_as_units_of_their_one_node(
    cluster: Cluster, team_a: Tenant, alice: User, namespace_a: Namespace
) -> None:
    driver, node = "gpu.example.com", cards_of_a100(1)[0]
    make.gpu_class(
        cluster, slug="both", interface="dra", resource="dra.portal/both", device_class=driver, device_selector="true"
    )
    devices = [{"name": f"d{one}", "attributes": {"type": {"string": "abb"[one]}}} for one in range(3)]
    pool = {"name": "node-00", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": "node-00", "pool": pool, "devices": devices}
    held = {"request": "r", "driver": driver, "pool": "node-00", "device": "d1"}
    claim = {
        "metadata": {"name": "mine", "namespace": namespace_a.name},
        "status": {"allocation": {"devices": {"results": [held]}}},
    }
    pod = mirrored.pod("own", node="node-00", namespace=namespace_a.name, gpu_class="both")
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "mine"}]
    slices = [mirrored.with_metadata({"metadata": {"name": "s"}, "spec": spec})]
    mirrored.seen(cluster, Node=[node], ResourceSlice=slices, ResourceClaim=[mirrored.with_metadata(claim)], Pod=[pod])
    found = card(alice, "both")
    assert found.nodes
    assert [[cell.look for cell in row.cells] for row in found.nodes.rows] == [["mine", "free", "free"]]
    assert found.nodes.more == 0
    assert "1 of 0 used, 1 of them borrowed" in found.team


def test_cells_become_bars_where_they_could_not_be_counted() -> None:
    nodes = TopNodes((TopNode("a", 64, 48, 16), TopNode("a-node-with-a-long-name.example.org", 32, 40)), 2)
    found = unit_grid(nodes, unit="core")
    assert found
    assert [[(cell.look, cell.x, cell.width) for cell in row.cells] for row in found.rows] == [
        [("mine", 26.0, 18.5), ("other", 44.5, 37.0), ("free", 81.5, 18.5)],
        [("other", 26.0, 37.0)],
    ]
    assert [row.short for row in found.rows] == ["a", "….example.org"]
    assert unit_grid(TopNodes(), unit="GPU") is None


# ---- number of queries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/catalog", "/catalog?mem=10", "/catalog/choose", "/catalog/compare"])
def test_queries_do_not_grow_with_classes_nodes_and_pods(
    path: str, stocked: Tenant, namespace_a: Namespace, a100: GpuClass, cluster: Cluster, alice: User
) -> None:
    client = signed_in(alice)
    client.get(path)
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        counts.append(len(captured))
        for more in range(4):
            make.gpu_class(cluster, slug=f"c{number}-{more}", successor=a100, life_cycle="retiring")
            running.workload(namespace_a, a100, name=f"w{number}-{more}", by=alice)
        mine: dict[str, Any] = {"namespace": namespace_a.name, "gpu_class": a100.slug, **cards(1)}
        pods = [mirrored.pod(f"p{one}", node=f"node-{one:02}", **mine) for one in range(3)]
        mirrored.seen(cluster, Node=cards_of_a100(20), Pod=pods)
    assert counts[0] == counts[1]
    assert counts[0] <= 25
