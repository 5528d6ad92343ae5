"""Filters of a team's lists: each filter alone and combined, page by page, at the same number of queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, Tenant
from tests.support.http.callers import caller
from tests.support.rows import make, running
from workloads.models import Run, Volume, Workload

pytestmark = pytest.mark.django_db


@pytest.fixture
def other(namespace_a: Namespace, a100: GpuClass, alice: User, bob: User) -> GpuClass:
    """Three workloads of two users on two classes."""
    found = make.gpu_class(a100.cluster, slug="other")
    make.grant(namespace_a.tenant, a100, units=8)
    running.workload(namespace_a, a100, name="study", by=alice)
    running.workload(namespace_a, a100, name="train", by=bob, kind="job")
    running.workload(namespace_a, found, name="small", by=bob, kind="job")
    return found


def names(client: Client, query: str, of: str = "/api/v1/workloads", by: str = "name") -> list[Any]:
    """Returns the names by following `next`, with one item a page."""
    found, address = [], f"{of}?limit=1&{query}"
    while address:
        body = client.get(address).json()
        found += [one[by] for one in body["items"]]
        address = body["next"]
    return found


def test_workloads_by_kind_class_and_person(other: GpuClass, a100: GpuClass, alice: User) -> None:
    client = caller(alice)
    assert names(client, "") == ["small", "train", "study"]
    assert names(client, "kind=job") == ["small", "train"]
    assert names(client, f"gpu_class={a100.slug}") == ["train", "study"]
    assert names(client, "created_by=Alice@example.org") == ["study"]
    assert names(client, "kind=job&gpu_class=other&created_by=bob@example.org") == ["small"]
    assert names(client, "kind=notebook&created_by=bob@example.org") == []
    refused = client.get("/api/v1/workloads?kind=service")
    assert (refused.status_code, refused.json()["field"]) == (422, "kind")


def test_a_filter_costs_few_queries_more(other: GpuClass, alice: User) -> None:
    client = caller(alice)
    client.get("/api/v1/workloads")
    counts = []
    for query in ("", "?created_by=bob@example.org&kind=job", "?gpu_class=other"):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/api/v1/workloads{query}").status_code == 200
        counts.append(len(captured))
    # Without filters one statement reads the list as text. With one, whatever it names has to exist for the caller.
    assert counts[1] <= counts[0] + 3
    assert counts[2] <= counts[0] + 3


def test_runs_by_group_and_outcome(other: GpuClass, alice: User, bob: User) -> None:
    workload = Workload.objects.get(name="train")
    first = workload.runs.get()
    Run.objects.filter(pk=first.pk).update(group="main", outcome="failed", ended_at=timezone.now())
    again = Run(workload=workload, number=2, spec=first.spec, requested_by=bob, group="main", outcome="succeeded")
    again.ended_at = timezone.now()
    again.save()
    Run.objects.create(workload=workload, number=3, spec=first.spec, requested_by=bob)
    client, of = caller(alice), "/api/v1/workloads/train/runs"
    assert names(client, "", of, "number") == [3, 2, 1]
    assert names(client, "group=main", of, "number") == [2, 1]
    assert names(client, "group=main&outcome=succeeded", of, "number") == [2]
    assert client.get(f"{of}?outcome=won").json()["field"] == "outcome"


def test_volumes_that_are_to_be_deleted(namespace_a: Namespace, alice: User) -> None:
    for name, asked_at in (("kept", None), ("going", timezone.now())):
        Volume.objects.create(namespace=namespace_a, name=name, size_gib=1, delete_requested_at=asked_at)
    client, of = caller(alice), "/api/v1/volumes"
    assert names(client, "", of) == ["going", "kept"]
    assert names(client, "deleting=true", of) == ["going"]
    assert names(client, "deleting=false", of) == ["kept"]
    assert client.get(f"{of}?deleting=maybe").json()["field"] == "deleting"


def test_teams_by_words_among_those_that_one_sees(cluster: Cluster, alice: User, olga: User) -> None:
    for slug, name in (("vision", "Vision group"), ("speech", "Speech and vision"), ("maths", "Numbers")):
        make.tenant(cluster, slug=slug)
        Tenant.objects.filter(slug=slug).update(name=name)
    of = "/api/v1/teams"
    staff = caller(olga)
    assert names(staff, "q=vision", of, "slug") == ["speech", "vision"]
    assert names(staff, "q=SPEECH%20vis", of, "slug") == ["speech"]
    assert names(caller(alice), "q=vision", of, "slug") == []
