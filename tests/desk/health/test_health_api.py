"""The state of the installation in the API: the findings of the page, with codes, objects and remedies."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import AppliedObject, Cluster, MirrorKind
from desk.health.report import report_lines, take_snapshot
from tenants.models import Namespace
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db
PATH = "/api/v1/operators/health"


def test_it_finds_what_the_page_finds(
    client: Client, cluster: Cluster, namespace_a: Namespace, a100: GpuClass, olga: User
) -> None:
    mirrored.hardware_seen(cluster)
    AppliedObject.objects.create(
        cluster=cluster, kind="ResourceQuota", namespace=namespace_a.name, name="quota", owner="x",
        result=AppliedObject.Result.REFUSED, text="admission webhook denied the request", sent_at=timezone.now(),
    )  # fmt: skip
    Namespace.objects.update(error_code="cluster_unavailable", error_text="It did not answer.", attempts=3)
    client.force_login(olga)
    found = client.get(PATH).json()
    snapshot = take_snapshot(cluster, is_staff=True)
    assert found["verdict"] == snapshot.health.verdict in client.get("/health").content.decode()
    assert (found["is_well"], found["is_current"], found["problem"]) == (False, True, "")
    told = [f"{one['about']}: {one['message']}" for one in found["findings"]]
    lines = [line for line in report_lines(snapshot) if line]
    assert set(told) <= set(lines)
    assert {f"  → {one['remedy']}" for one in found["findings"]} <= set(lines)
    by_code = {one["code"]: one for one in found["findings"]}
    [refused] = by_code["object_refused"]["objects"]
    assert refused == {"kind": "ResourceQuota", "namespace": namespace_a.name, "name": "quota"}
    assert "admission webhook denied the request" in by_code["object_refused"]["message"]
    assert by_code["task_failing"]["objects"][0]["kind"] == "task"
    assert all(one["code"] and one["message"] and one["remedy"] for one in found["findings"])


def test_what_is_not_known_is_said(client: Client, cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    MirrorKind.objects.filter(kind="Pod").update(problem="It refused.")
    client.force_login(olga)
    found = client.get(PATH).json()
    codes = {one["code"] for one in found["findings"]}
    assert (found["is_current"], found["is_urgent"]) == (False, True)
    assert {"inconsistencies_unknown", "mirror_outdated"} <= codes


def test_for_others_there_is_none(client: Client, cluster: Cluster, bob: User, dana: User) -> None:
    for who in (bob, dana):
        client.force_login(who)
        assert client.get(PATH).status_code == 404
