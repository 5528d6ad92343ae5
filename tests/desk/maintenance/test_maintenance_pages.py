"""The pages of maintenance: what a plan affects, what the form refuses, and what can be done with a plan."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Event, User
from catalog.models import GpuClass
from cluster.models import Cluster
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from tenants.models import Namespace
from tests.support.rows import make, mirrored, running, waiting_runs

pytestmark = pytest.mark.django_db
NEW = "/maintenance/new"


@pytest.fixture
def client_of_olga(client: Client, olga: User) -> Client:
    client.force_login(olga)
    return client


def typed(**more: Any) -> dict[str, Any]:
    now = timezone.localtime()
    values = {
        "nodes": ["a100-mig"], "kind": "repartition", "reason": "More small slices", "holds_from": local(now),
        "starts_at": local(now + timedelta(hours=2)), "ends_at": local(now + timedelta(hours=3)),
        "mig_config": "all-1g.10gb", "expected": "nvidia.com/mig-1g.10gb=28", "stuck_minutes": 20,
    }  # fmt: skip
    return {**values, **more}


def local(at: datetime) -> str:
    return f"{timezone.localtime(at):%Y-%m-%dT%H:%M}"


def test_an_operator_plans_a_maintenance(client_of_olga: Client, cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    answer = client_of_olga.post(NEW, typed())
    row = Maintenance.objects.get()
    assert (answer.status_code, answer["location"]) == (302, f"/maintenance/{row.pk}")
    assert (row.mig_config, row.expected, row.stuck_minutes) == ("all-1g.10gb", {"nvidia.com/mig-1g.10gb": 28}, 20)
    assert [one.name for one in row.nodes.all()] == ["a100-mig"]
    assert Event.objects.get(verb="maintenance.planned").after["nodes"] == ["a100-mig"]
    text = client_of_olga.get(f"/maintenance/{row.pk}").content.decode()
    assert "More small slices" in text
    assert "28 <code>nvidia.com/mig-1g.10gb</code>" in text
    assert f"/maintenance/{row.pk}" in client_of_olga.get("/maintenance").content.decode()
    assert f"/maintenance/{row.pk}" in client_of_olga.get("/nodes/a100-mig").content.decode()


@pytest.mark.parametrize(
    ("more", "field", "sentence"),
    [
        ({"nodes": ["no-such"]}, "nodes", "Select a valid choice."),
        ({"nodes": []}, "nodes", "This field is required."),
        ({"expected": "28 slices"}, "expected", "28: write RESOURCE=NUMBER"),
        ({"expected": ""}, "expected", "so that the result can be verified"),
        ({"expected": "slices=3"}, "expected", "slices: write each as RESOURCE=NUMBER"),
        ({"mig_config": "all 1g"}, "mig_config", "cannot be a label"),
        ({"kind": "driver", "expected": ""}, "mig_config", "Only maintenance of the kind repartition"),
        ({"kind": "driver", "mig_config": ""}, "expected", "the same devices as before"),
        ({"starts_at": "2020-01-01T10:00"}, "holds_from", "a time before it"),
        ({"ends_at": "2020-01-01T10:00"}, "ends_at", "an end in the future"),
        ({"ends_at": local(timezone.now() + timedelta(days=40))}, "ends_at", "At most 30 days"),
        ({"stuck_minutes": 0}, "stuck_minutes", "greater than or equal to 1"),
        ({"reason": "  "}, "reason", "This field is required."),
    ],
)  # fmt: skip
def test_what_the_form_refuses(
    client_of_olga: Client, cluster: Cluster, more: dict[str, Any], field: str, sentence: str
) -> None:
    mirrored.hardware_seen(cluster)
    answer = client_of_olga.post(NEW, typed(**more))
    assert answer.status_code == 422
    assert sentence in " ".join(answer.context["form"].errors[field])
    assert not Maintenance.objects.exists()


def test_a_node_is_in_one_maintenance_at_a_time(client_of_olga: Client, cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    client_of_olga.post(NEW, typed())
    again = client_of_olga.post(NEW, typed(nodes=["a100-1", "a100-mig"]))
    assert again.status_code in (409, 422)
    assert "Another maintenance of a100-mig has not ended." in again.content.decode()
    MaintenanceNode.objects.update(step="done")
    assert client_of_olga.post(NEW, typed()).status_code == 302


def test_the_preview_names_runs_others_and_broken_grants(
    client_of_olga: Client, cluster: Cluster, namespace_a: Namespace, alice: User
) -> None:
    own = make.gpu_class(
        cluster, slug="slices", name="Slices", resource="nvidia.com/mig-1g.10gb", partition="1g.10gb",
        node_labels={"nvidia.com/mig.config": "all-balanced-one-me"},
    )  # fmt: skip
    make.grant(namespace_a.tenant, own, units=5)
    other = mirrored.pod("rogue", node="a100-mig", namespace="elsewhere", **{"nvidia.com/mig-3g.40gb": 1})
    mirrored.hardware_seen(cluster, Pod=[other], Workload=[], Job=[])
    found = running.workload(namespace_a, own, name="mine", by=alice)
    running.make_ready(found)
    pods = type(running.pod_of(found, uid="mine-pod")).objects
    pods.filter(owner=f"workloads.workload.{found.pk}").update(node="a100-mig")
    waiting_runs.waits(namespace_a, own, alice, units=3)
    answer = client_of_olga.get(NEW, {"nodes": "a100-mig"})
    seen = answer.context["preview"]
    assert [(run.name, run.team, run.person, run.nodes) for run in seen.runs] == [
        ("mine", "Team A", "Alice", ("a100-mig",))
    ]
    assert "It is moved off the node at" in seen.runs[0].what
    assert seen.others == ("elsewhere/rogue",)
    [line] = [one for one in seen.classes if one.slug == "slices"]
    assert (line.here, line.offered, line.granted, line.queued) == (7, 7, 5, 3)
    assert line.sentence.startswith("Nothing else provides this class")
    assert "1 pod outside the portal uses devices" in answer.content.decode()


def test_the_page_says_who_is_told_next_and_why_no_class_has_units_there(
    client_of_olga: Client, cluster: Cluster, namespace_a: Namespace, alice: User
) -> None:
    """Before the worker's first pass nobody is told, which is not the same as nobody to tell; and a closed node."""
    own = make.gpu_class(cluster, slug="whole", name="Whole")
    mirrored.hardware_seen(cluster, Pod=[], Workload=[], Job=[])
    found = running.workload(namespace_a, own, name="mine", by=alice)
    running.make_ready(found)
    pods = type(running.pod_of(found, uid="mine-pod")).objects
    pods.filter(owner=f"workloads.workload.{found.pk}").update(node="a100-1")
    client_of_olga.post(NEW, typed(nodes=["a100-1"], kind="hardware", mig_config="", expected=""))
    row = Maintenance.objects.get()
    text = client_of_olga.get(f"/maintenance/{row.pk}").content.decode()
    assert "Nobody yet. The worker tells the people" in text
    assert "no workload of the portal was on the nodes" not in text
    assert "no class has units there" not in text
    pods.all().delete()
    GpuClass.objects.update(life_cycle=GpuClass.LifeCycle.RETIRED)
    MaintenanceNode.objects.update(step="draining")
    text = client_of_olga.get(f"/maintenance/{row.pk}").content.decode()
    assert "Nobody: no workload of the portal was on the nodes." in text
    assert "no class has units there until they are opened" in text
    assert "No open class has units" not in text


def test_fewer_units_than_granted_are_said(client_of_olga: Client, cluster: Cluster, namespace_a: Namespace) -> None:
    a100 = make.gpu_class(cluster, slug="whole", name="Whole")
    make.grant(namespace_a.tenant, a100, units=14)
    mirrored.hardware_seen(cluster)
    seen = client_of_olga.get(NEW, {"nodes": ["a100-1", "a100-2"]}).context["preview"]
    [line] = [one for one in seen.classes if one.slug == "whole"]
    assert (line.here, line.granted) == (8, 14)
    left = line.offered - 8
    assert line.sentence == f"{left} GPUs remain, {14 - left} fewer than granted: grants cannot all be used."


def test_the_preview_is_unknown_without_news(client_of_olga: Client, cluster: Cluster) -> None:
    make.gpu_class(cluster, slug="whole")
    answer = client_of_olga.get(NEW, {"nodes": "a100-1"})
    assert answer.context["preview"] is None, "no such node is known"
    assert "Choose nodes to see" in answer.content.decode()


def test_the_controls(client_of_olga: Client, cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    client_of_olga.post(NEW, typed(kind="hardware", mig_config="", expected=""))
    row = Maintenance.objects.get()
    page = f"/maintenance/{row.pk}"
    assert "Open the nodes as they are" not in client_of_olga.get(page).content.decode(), "nothing is closed yet"
    MaintenanceNode.objects.update(step="changing", problem="It waits.")
    text = client_of_olga.get(page).content.decode()
    assert "The work is done" in text
    assert "It waits." in text
    for control, column in (
        ("confirm", "confirmed_at"), ("cancel", "cancel_requested_at"), ("release", "release_requested_at"),
    ):  # fmt: skip
        assert client_of_olga.post(f"{page}/{control}").status_code == 302
        row.refresh_from_db()
        assert getattr(row, column) is not None
        before = Event.objects.count()
        client_of_olga.post(f"{page}/{control}")
        assert Event.objects.count() == before, "again changes nothing"
    Maintenance.objects.update(ended_at=timezone.now(), outcome="done")
    assert client_of_olga.post(f"{page}/cancel").status_code == 409
    text = client_of_olga.get(page).content.decode()
    assert "Cancel the maintenance" not in text


def test_only_what_the_portal_cannot_see_is_confirmed(client_of_olga: Client, cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    client_of_olga.post(NEW, typed())
    row = Maintenance.objects.get()
    assert client_of_olga.post(f"/maintenance/{row.pk}/confirm").status_code == 409
    row.refresh_from_db()
    assert row.confirmed_at is None


def test_a_stuck_node_is_seen_in_the_list(client_of_olga: Client, cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    client_of_olga.post(NEW, typed())
    assert ">stuck<" not in client_of_olga.get("/maintenance").content.decode()
    MaintenanceNode.objects.update(step="waiting", stuck_told_at=timezone.now())
    assert "stuck</span>" in client_of_olga.get("/maintenance").content.decode()


def part(text: str, name: str) -> str:
    """What the open page fetches again: from this element on. Its attributes come first."""
    return text[text.index(f'id="{name}"') :]


def test_open_pages_follow_the_worker_until_the_end(client_of_olga: Client, cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    client_of_olga.post(NEW, typed(kind="hardware", mig_config="", expected=""))
    row = Maintenance.objects.get()
    page = f"/maintenance/{row.pk}"
    MaintenanceNode.objects.update(step="changing", problem="It waits.", stuck_told_at=timezone.now())
    text = part(client_of_olga.get(page).content.decode(), "maintenance")
    attributes = text[: text.index(">", text.index("hx-swap"))]
    assert f'hx-get="{page}" hx-select="#maintenance > *" hx-trigger="every 10s"' in attributes
    for shown in ("stuck</span>", "It waits.", "The work is done", "Affected workloads", "Told"):
        assert shown in text, "the state, what it waits for, the controls, who is affected and who was told"
    assert '<details id="open-as-they-are">' in text, "stays open when the page is fetched again"
    many = part(client_of_olga.get("/maintenance").content.decode(), "maintenances")
    assert 'hx-get="/maintenance" hx-select="#maintenances > *" hx-trigger="every 15s"' in many
    assert "stuck</span>" in many
    Maintenance.objects.update(ended_at=timezone.now(), outcome="done")
    ended = part(client_of_olga.get(page).content.decode(), "maintenance")
    assert "hx-get" not in ended[: ended.index("<h1>")]


def test_the_number_of_nodes_and_of_told_runs_costs_no_queries(
    client_of_olga: Client, cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    mirrored.hardware_seen(cluster)
    client_of_olga.post(NEW, typed(kind="hardware", mig_config="", expected=""))
    row = Maintenance.objects.get()
    for name in ("one", "two"):
        run = running.workload(namespace_a, a100, name=name, by=alice).runs.get()
        MaintenanceNotice.objects.create(maintenance=row, run=run, stage="announced")

    def queries(address: str) -> int:
        client_of_olga.get(address)
        with CaptureQueriesContext(connection) as found:
            client_of_olga.get(address)
        return len(found)

    addresses = ("/maintenance", f"/maintenance/{row.pk}")
    few = {address: queries(address) for address in addresses}
    for name in ("a100-1", "a100-2"):
        MaintenanceNode.objects.create(maintenance=row, cluster=cluster, name=name, step="draining", problem="Waits.")
    for name in ("three", "four"):
        run = running.workload(namespace_a, a100, name=name, by=alice).runs.get()
        MaintenanceNotice.objects.create(maintenance=row, run=run, stage="announced")
    assert {address: queries(address) for address in addresses} == few
    assert list(few.values()) == [6, 18]
