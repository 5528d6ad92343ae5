"""Maintenance in the API: the same rules as on the pages, and what programs read of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import Event, User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorKind
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from tenants.models import Namespace
from tests.support.rows import make, mirrored, running

pytestmark = pytest.mark.django_db
PATH = "/api/v1/maintenances"
PREVIEW = f"{PATH}/preview"


@pytest.fixture
def api(client: Client, olga: User, cluster: Cluster) -> Client:
    mirrored.hardware_seen(cluster)
    client.force_login(olga)
    return client


def sent(api: Client, path: str = PATH, **more: Any) -> Any:
    now = timezone.now()
    values = {
        "nodes": ["a100-1"], "kind": "hardware", "reason": "A broken fan", "starts_at": (now + timedelta(hours=2)),
        "ends_at": now + timedelta(hours=3),
    }  # fmt: skip
    return api.post(path, {**values, **more} if path in (PATH, PREVIEW) else {}, content_type="application/json")


def test_a_program_plans_follows_and_cancels(api: Client, namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    made = sent(api)
    assert made.status_code == 201
    row = Maintenance.objects.get()
    assert made.json()["nodes"] == [
        {
            "name": "a100-1", "step": "planned", "step_since": made.json()["nodes"][0]["step_since"], "problem": "",
            "is_stuck": False, "is_going_back": False,
        }
    ]  # fmt: skip
    assert (made.json()["outcome"], made.json()["expected"], made.json()["told"]) == ("", {}, [])
    run = running.workload(namespace_a, a100, name="mine", by=alice).runs.get()
    MaintenanceNotice.objects.create(maintenance=row, run=run, stage="announced")
    MaintenanceNode.objects.update(step="changing", problem="It waits.", stuck_told_at=timezone.now())
    seen = api.get(f"{PATH}/{row.pk}").json()
    [told] = seen["told"]
    assert (told["team"], told["workload"], told["run"], told["stage"]) == ("team-a", "mine", 1, "announced")
    assert (seen["nodes"][0]["problem"], seen["nodes"][0]["is_stuck"]) == ("It waits.", True)
    for verb, field in (
        ("confirm", "confirmed_at"), ("cancel", "cancel_requested_at"), ("release", "release_requested_at"),
    ):  # fmt: skip
        assert seen[field] is None
        answer = sent(api, f"{PATH}/{row.pk}/{verb}")
        assert answer.status_code == 200
        assert answer.json()[field] is not None
    assert api.get(f"{PATH}/{row.pk}").json()["affected"] is not None
    Maintenance.objects.update(ended_at=timezone.now(), outcome="canceled")
    assert api.get(f"{PATH}/{row.pk}").json()["affected"] is None
    over = sent(api, f"{PATH}/{row.pk}/cancel")
    assert (over.status_code, over.json()["code"]) == (409, "is_over")


def test_a_preview_says_what_a_maintenance_affects_and_plans_nothing(
    api: Client, cluster: Cluster, namespace_a: Namespace, alice: User
) -> None:
    whole = make.gpu_class(cluster, slug="whole", name="Whole")
    make.grant(namespace_a.tenant, whole, units=14)
    other = mirrored.pod("rogue", node="a100-1", namespace="elsewhere", **{"nvidia.com/gpu": 1})
    mirrored.hardware_seen(cluster, Pod=[other], Workload=[], Job=[])
    mine = running.workload(namespace_a, whole, name="mine", by=alice)
    running.make_ready(mine)
    pods = type(running.pod_of(mine, uid="mine-pod")).objects
    pods.filter(owner=f"workloads.workload.{mine.pk}").update(node="a100-1")
    answer = sent(api, PREVIEW)
    assert answer.status_code == 200
    seen = answer.json()
    [run] = seen["runs"]
    assert (run["team"], run["workload"], run["person"], run["nodes"]) == ("team-a", "mine", "Alice", ["a100-1"])
    assert "It is moved off the node at" in run["message"]
    assert seen["other_pods"] == ["elsewhere/rogue"]
    [line] = seen["classes"]
    assert (line["gpu_class"], line["on_nodes"], line["granted"], line["queued"]) == ("whole", 4, 14, 0)
    assert line["message"].endswith("fewer than granted: grants cannot all be used.")
    assert seen["is_known"] is True
    assert not Maintenance.objects.exists()
    assert not Event.objects.filter(verb="maintenance.planned").exists()
    pk = sent(api).json()["id"]
    assert api.get(f"{PATH}/{pk}").json()["affected"]["runs"][0]["workload"] == "mine"


@pytest.mark.parametrize("kind", ["Node", "Pod"])
def test_a_preview_says_that_the_cluster_is_not_heard_of(api: Client, cluster: Cluster, kind: str) -> None:
    assert sent(api, PREVIEW).json()["is_known"] is True
    MirrorKind.objects.filter(kind=kind).update(problem="It refused.")
    assert sent(api, PREVIEW).json()["is_known"] is False
    page = api.get("/maintenance/new", {"nodes": "a100-1"}).content.decode()
    assert "Unknown: there are no current updates" in page
    assert "No workload of the portal runs" not in page


@pytest.mark.parametrize("path", [PATH, PREVIEW])
def test_refusals_name_the_field(api: Client, path: str) -> None:
    refused = sent(api, path, kind="repartition")
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (
        422,
        "bad_maintenance",
        "expected",
    )
    refused = sent(api, path, nodes=["no-such"])
    assert (refused.status_code, refused.json()["field"]) == (422, "nodes")
    assert "Not in the cluster: no-such." in refused.json()["message"]
    many = {f"example.com/gpu{number}": 1 for number in range(51)}
    refused = sent(api, path, kind="repartition", expected=many)
    assert (refused.status_code, refused.json()["field"]) == (422, "expected")
    assert not Maintenance.objects.exists()
    assert sent(api).status_code == 201
    again = sent(api, path)
    assert (again.status_code, again.json()["code"]) == (409, "in_maintenance")


def test_the_list(api: Client, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    for node in ("a100-1", "a100-2", "a100-3"):
        sent(api, nodes=[node])
    Maintenance.objects.filter(nodes__name="a100-1").update(ended_at=timezone.now(), outcome="done")
    with django_assert_max_num_queries(6):
        rows = api.get(PATH).json()["items"]
    assert [row["nodes"][0]["name"] for row in rows] == ["a100-3", "a100-2", "a100-1"]
    assert [row["outcome"] for row in api.get(PATH, {"open": "false"}).json()["items"]] == ["done"]
    assert len(api.get(PATH, {"open": "true"}).json()["items"]) == 2
    assert api.get(PATH, {"open": "maybe"}).status_code == 422
    first = api.get(PATH, {"limit": 2}).json()
    assert [row["nodes"][0]["name"] for row in api.get(first["next"]).json()["items"]] == ["a100-1"]
    assert [row["state"] for row in first["items"]] == ["planned", "planned"]
