"""Measurements of nodes: who records them, what is kept, and what pages and the API say of a node and of a class."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.checks.queries import check_report
from catalog.interconnect.actions import record_measurement, withdraw_measurement
from catalog.interconnect.comparison import SLOWER_BY, compare
from catalog.interconnect.queries import class_interconnects, latest
from catalog.interconnect.types import NodeState
from catalog.models import GpuClass, NodeMeasurement
from cluster.models import Cluster, MirrorKind
from portal.core.errors import Refused
from tests.catalog.interconnect.outputs import BRIDGED_4, PCIE_2, all_nvlinks, nccl
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db
PRODUCT, COUNT = "nvidia.com/gpu.product", "nvidia.com/gpu.count"
H100 = "NVIDIA-H100-80GB-HBM3"
NV18 = all_nvlinks(8, "NV18")


def node(name: str, *, driver: str = "570.86.15", gpus: int = 8, version: str = "1") -> dict[str, Any]:
    labels = {PRODUCT: H100, COUNT: str(gpus), "nvidia.com/cuda.driver-version.full": driver}
    size = {"nvidia.com/gpu": str(gpus), "cpu": "64", "memory": "512Gi"}
    status = {"capacity": size, "allocatable": size}
    raw = {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}
    found = mirrored.ready(mirrored.with_metadata(raw))
    return {**found, "metadata": {**found["metadata"], "resourceVersion": version}}


@pytest.fixture
def h100(cluster: Cluster) -> GpuClass:
    mirrored.seen(cluster, Node=[node(f"n{number}") for number in range(6)])
    return make.gpu_class(cluster, slug="h100", name="H100", product=H100, node_labels={PRODUCT: H100}, weight=1)


def recorded(by: User, cluster: Cluster, name: str, output: str, *, on: date | None = None) -> list[NodeMeasurement]:
    return record_measurement(cluster, name, output=output, measured_on=on, by=Actor(by, "page"))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_one_log_gives_both_with_the_state_of_the_node(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    links, reduced = recorded(olga, cluster, "n0", f"{NV18}\n{nccl('371.42')}")
    assert (links.kind, links.gpus, links.driver, links.product) == ("links", 8, "570.86.15", H100)
    assert (reduced.kind, str(reduced.bus_gb_s), reduced.message_bytes) == ("all_reduce", "371.42", 2**33)
    assert links.measured_on == timezone.localdate()
    event = Event.objects.get(verb="node.measured")
    assert (event.name, event.actor) == ("n0", olga.name)
    assert event.after["links"] == "8 GPUs, all NV18"
    assert event.after["all_reduce"] == "all_reduce 371 GB/s (8 GPUs, 8 GiB)"


def test_the_last_by_the_day_of_the_measurement_counts(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    today = timezone.localdate()
    recorded(olga, cluster, "n0", nccl("371.42"), on=today - timedelta(days=1))
    recorded(olga, cluster, "n0", nccl("180.10"), on=today - timedelta(days=9))
    [found] = latest(cluster)["n0"]
    assert found.text == "all_reduce 371 GB/s (8 GPUs, 8 GiB)"
    text = signed_in(olga).get("/nodes/n0").text
    assert text.index("all_reduce 371 GB/s") < text.index("all_reduce 180 GB/s")


def test_of_one_day_what_was_recorded_last_counts(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    assert "of one day what was recorded last" in signed_in(olga).get("/nodes/n0").text
    for right in ("371.42", "368.00"):
        recorded(olga, cluster, "n0", nccl("18.00"))
        recorded(olga, cluster, "n0", nccl(right))
        [found] = latest(cluster)["n0"]
        assert found.all_reduce is not None
        assert str(found.all_reduce.bus_gb_s) == right


@pytest.mark.parametrize(
    ("output", "words"),
    [(PCIE_2, "The matrix has 2 GPUs, and n0 has 8."), ("hello", "contains neither")],
)
def test_what_is_no_measurement_of_the_node_is_refused(
    h100: GpuClass, cluster: Cluster, olga: User, output: str, words: str
) -> None:
    with pytest.raises(Refused) as found:
        recorded(olga, cluster, "n0", output)
    assert (found.value.code, found.value.refusal.field) == ("bad_measurement", "output")
    assert words in found.value.refusal.message
    assert not NodeMeasurement.objects.exists()


def test_a_day_in_the_future_is_refused(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    with pytest.raises(Refused) as found:
        recorded(olga, cluster, "n0", NV18, on=timezone.localdate() + timedelta(days=1))
    assert (found.value.code, found.value.refusal.field) == ("bad_measurement", "measured_on")


def test_only_operators_record_and_only_of_nodes_that_are_there(
    h100: GpuClass, cluster: Cluster, alice: User, olga: User
) -> None:
    with pytest.raises(Refused) as found:
        recorded(alice, cluster, "n0", NV18)
    assert found.value.code == "not_allowed"
    with pytest.raises(Refused) as found:
        recorded(olga, cluster, "n9", NV18)
    assert found.value.code == "not_found"
    assert signed_in(alice).post("/nodes/n0/measurements", {"output": NV18}).status_code == 404
    assert not NodeMeasurement.objects.exists()


def test_page_and_api_record_and_show_the_same(h100: GpuClass, olga: User) -> None:
    client = signed_in(olga)
    told = client.post("/nodes/n0/measurements", {"output": NV18, "measured_on": "2026-01-31"}, follow=True).text
    assert "Recorded for n0: 8 GPUs, all NV18." in told
    assert "Measured on 31 Jan 2026, recorded by" in told
    sent = client.post("/api/v1/nodes/n0/measurements", {"output": nccl("371.42")}, "application/json")
    assert sent.status_code == 201, sent.content
    [item] = sent.json()["items"]
    assert (item["kind"], item["bus_gb_s"], item["links"]) == ("all_reduce", "371.42", None)
    listed = client.get("/api/v1/nodes/n0/measurements").json()["items"]
    assert [one["kind"] for one in listed] == ["all_reduce", "links"]
    assert listed[1]["links"][0][:2] == ["X", "NV18"]
    wrong = client.post("/api/v1/nodes/n0/measurements", {"output": "hello"}, "application/json").json()
    assert (wrong["code"], wrong["field"]) == ("bad_measurement", "output")
    assert client.get("/api/v1/nodes/n9/measurements").status_code == 404


# ---- withdrawn ---------------------------------------------------------------------------------------------------


def test_after_a_withdrawal_the_one_before_it_counts_again(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    for name in ("n1", "n2"):
        recorded(olga, cluster, name, nccl("372.00"))
    recorded(olga, cluster, "n0", nccl("371.42"))
    [wrong] = recorded(olga, cluster, "n0", nccl("18.00"))
    assert "slow_links" in {one.code for one in check_report(cluster).findings or ()}
    client = signed_in(olga)
    address = f"/nodes/n0/measurements/{wrong.pk}/withdraw"
    assert f'action="{address}"' in client.get("/nodes/n0").text
    told = client.post(address, {"because": "  Something else\nran there. "}, follow=True).text
    assert "Withdrawn for n0: all_reduce 18.0 GB/s (8 GPUs, 8 GiB)." in told
    assert ": Something else ran there.</p>" in told
    assert f'action="{address}"' not in told
    assert "<b>all_reduce 371 GB/s (8 GPUs, 8 GiB)</b>" in told
    [found] = latest(cluster)["n0"]
    assert found.text == "all_reduce 371 GB/s (8 GPUs, 8 GiB)"
    assert "slow_links" not in {one.code for one in check_report(cluster).findings or ()}
    assert "(371 GB/s to 372 GB/s)" in client.get("/catalog/h100").text
    event = Event.objects.get(verb="node.measurement_withdrawn")
    assert (event.name, event.after) == ("n0", {"because": "Something else ran there."})
    assert event.before["all_reduce"] == "all_reduce 18.0 GB/s (8 GPUs, 8 GiB)"


def test_the_api_withdraws_once_and_also_of_a_node_that_is_gone(
    h100: GpuClass, cluster: Cluster, alice: User, olga: User
) -> None:
    [row] = recorded(olga, cluster, "n0", nccl("371.42"))
    mirrored.seen(cluster, Node=[])
    address, client = f"/api/v1/nodes/n0/measurements/{row.pk}/withdraw", signed_in(olga)
    blank = client.post(address, {"because": "\u00a0"}, "application/json")
    assert blank.status_code == 422, blank.content
    assert signed_in(alice).post(address, {"because": "Mine."}, "application/json").status_code == 404
    elsewhere = address.replace("/n0/", "/n1/")
    assert client.post(elsewhere, {"because": "Wrong."}, "application/json").status_code == 404
    assert latest(cluster)
    for because in ("Wrong.", "Again."):
        found = client.post(address, {"because": because}, "application/json")
        assert (found.status_code, found.json()["withdrawn_because"]) == (200, "Wrong.")
    assert not latest(cluster)
    [item] = client.get("/api/v1/nodes/n0/measurements").json()["items"]
    assert (item["id"], item["withdrawn_at"] is None) == (row.pk, False)
    assert Event.objects.filter(verb="node.measurement_withdrawn").count() == 1
    with pytest.raises(Refused) as refused:
        withdraw_measurement(cluster, "n0", row.pk, because="Mine.", by=Actor(alice, "page"))
    assert refused.value.code == "not_allowed"


# ---- a class -----------------------------------------------------------------------------------------------------


def test_a_class_says_what_was_measured_on_how_many_of_its_nodes(
    h100: GpuClass, cluster: Cluster, alice: User, olga: User
) -> None:
    assert "Measured on its nodes" not in signed_in(alice).get("/catalog/h100").text
    for name, rate in (("n0", "371.42"), ("n1", "368.00"), ("n2", "373.10")):
        recorded(olga, cluster, name, f"{NV18}\n{nccl(rate)}", on=date(2026, 1, 31))
    text = signed_in(alice).get("/catalog/h100").text
    assert "8 GPUs, all NV18 on 3 nodes, last measured 31 Jan 2026." in text
    assert "all_reduce 371 GB/s with 8 GPUs, 8 GiB: median of 3 nodes (368 GB/s to 373 GB/s)" in text
    assert "Links are not measured on 3 of 6 nodes." in text
    said = signed_in(alice).get("/api/v1/classes/h100").json()["measured"]
    assert said[0] == "8 GPUs, all NV18 on 3 nodes, last measured 31 Jan 2026."
    assert len(said) == 3
    MirrorKind.objects.filter(kind="Node").delete()
    text = signed_in(alice).get("/catalog/h100").text
    assert "What was measured on its nodes is unknown" in text
    assert "not measured on" not in text
    assert signed_in(alice).get("/api/v1/classes/h100").json()["measured"] is None


def test_slices_and_shares_have_no_links_between_gpus(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    recorded(olga, cluster, "n0", NV18)
    shared = make.gpu_class(
        cluster, slug="x4", node_labels={PRODUCT: H100}, sharing="time-slicing", replicas=4, units_per_workload=1
    )
    found = class_interconnects(cluster, [h100, shared])
    assert found is not None
    assert list(found) == [h100.pk]


def test_measurements_of_what_the_node_was_before_are_not_compared(
    h100: GpuClass, cluster: Cluster, olga: User
) -> None:
    for name in ("n0", "n1"):
        recorded(olga, cluster, name, NV18)
    mirrored.seen(cluster, Node=[node("n0", driver="580.1", version="2"), node("n1"), node("n2")])
    found = class_interconnects(cluster, [h100])
    assert found is not None
    assert found[h100.pk].old == ("n0",)
    assert [one.nodes for one in found[h100.pk].links] == [("n1",)]
    text = signed_in(olga).get("/nodes/n0").text
    assert "It may no longer hold: it was recorded with driver 570.86.15, and the node has 580.1 now." in text
    assert [one.code for one in check_report(cluster).findings or () if one.code == "old_measurement"] == [
        "old_measurement"
    ]


def test_health_finds_the_node_that_differs(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    mirrored.seen(cluster, Node=[node(f"n{number}", gpus=4, version="2") for number in range(3)])
    for name, rate in (("n0", "371.42"), ("n1", "200.00"), ("n2", "373.10")):
        links = BRIDGED_4 if name == "n1" else all_nvlinks(4, "NV18")
        recorded(olga, cluster, name, f"{links}\n{nccl(rate, gpus=4)}")
    told = {one.code: one.sentence for one in check_report(cluster).findings or ()}
    assert "4 GPUs: 2 pairs NV4, 2 pairs PHB, 2 pairs NODE on n1" in told["unlike_links"]
    assert "all_reduce on node n1 reached 200 GB/s with 4 GPUs, 8 GiB, 46% below the" in told["slow_links"]


def test_a_figure_of_0_that_is_kept_already_stops_no_check(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    for name in ("n0", "n1", "n2"):
        recorded(olga, cluster, name, nccl("371.42"))
    NodeMeasurement.objects.filter(node__in=("n0", "n1")).update(bus_gb_s=0)
    assert "slow_links" not in {one.code for one in check_report(cluster).findings or ()}
    recorded(olga, cluster, "n1", nccl("371.42"))
    assert "slow_links" in {one.code for one in check_report(cluster).findings or ()}


def test_figures_of_other_sizes_are_not_compared(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    recorded(olga, cluster, "n0", nccl("371.42"))
    recorded(olga, cluster, "n1", nccl("20.00", size=2**20))
    found = compare({"n0": NodeState(), "n1": NodeState()}, latest(cluster))
    assert [dict(one.slow) for one in found.rates] == [{}, {}]
    assert SLOWER_BY < 1


def test_the_cost_grows_neither_with_nodes_nor_with_classes(h100: GpuClass, cluster: Cluster, olga: User) -> None:
    with CaptureQueriesContext(connection) as asked:
        assert class_interconnects(cluster, [h100]) == {}
    assert len(asked) == 1
    counts = []
    for number in range(2):
        recorded(olga, cluster, f"n{number}", NV18)
        others = [make.gpu_class(cluster, slug=f"c{number}{each}", node_labels={PRODUCT: H100}) for each in range(3)]
        with CaptureQueriesContext(connection) as asked:
            class_interconnects(cluster, [h100, *others][: 1 + 3 * number])
        counts.append(len(asked))
    assert counts == [3, 3]
