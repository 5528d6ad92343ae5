"""The quick start strip on a team's home page: it offers only what this user can start now."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db
REFERENCE = "quay.io/jupyter/minimal-notebook:1"


@pytest.fixture
def her(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def house(team_a: Tenant, cluster: Cluster, a100: GpuClass) -> Tenant:
    """Six GPUs granted; the simulated nodes have at most four each, and all are free."""
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=6)
    Image.objects.create(name="minimal", reference=REFERENCE, kind="notebook")
    return team_a


def over(namespace: Namespace, gpu_class: GpuClass, by: User, name: str, **fields: Any) -> Workload:
    """Returns a notebook whose run has ended."""
    found = running.workload(namespace, gpu_class, name=name, by=by, image=REFERENCE, **fields)
    found.runs.update(ended_at=timezone.now(), outcome="stopped")
    return found


def strip(client: Client) -> list[tuple[str, str]]:
    """Returns (text, address) of each entry."""
    page = client.get("/teams/team-a").content.decode()
    found = re.findall(r'<p class="small muted">([^<]*)</p></div><a class="btn btn-sm btn-soft" href="([^"]*)"', page)
    return [(html.unescape(note), html.unescape(href)) for note, href in found]


def test_it_is_as_the_persons_last_launches_were(
    her: Client, alice: User, bob: User, house: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    over(namespace_a, a100, alice, "old", units=3)
    over(namespace_a, a100, alice, "gone", units=2)
    Workload.objects.filter(name="gone").update(deleted_at=timezone.now())
    over(namespace_a, a100, alice, "new")
    over(namespace_a, a100, alice, "new-too")
    over(namespace_a, a100, alice, "large", units=5)  # no node has five
    over(namespace_a, a100, bob, "his", units=4)
    assert strip(her) == [
        ("1 GPU, minimal, same as new-too", "/teams/team-a/launch?like=new-too"),
        (
            "2 GPUs, minimal, same as last time",
            f"/teams/team-a/launch?class={a100.slug}&image=minimal&units=2&kind=notebook",
        ),
        ("3 GPUs, minimal, same as old", "/teams/team-a/launch?like=old"),
    ]
    for _note, href in strip(her):
        page = html.unescape(her.get(href).content.decode())
        assert "starts now" in page
        assert 'value="minimal" selected' in page


def test_a_job_of_several_workers_that_is_gone_is_a_link_with_all_of_them(
    her: Client, alice: User, house: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    Image.objects.update(kind="job")
    over(namespace_a, a100, alice, "gone", kind="job", units=2, options={"workers": 2})
    Workload.objects.update(deleted_at=timezone.now())
    query = f"class={a100.slug}&image=minimal&units=2&workers=2&kind=job"
    assert strip(her) == [("4 GPUs, minimal, same as last time", f"/teams/team-a/launch?{query}")]


def test_it_says_only_what_starts(
    her: Client, alice: User, house: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    over(namespace_a, a100, alice, "two", units=2)
    waits = running.workload(namespace_a, a100, name="waits", by=alice, units=4, image="other")
    assert strip(her) == [], "4 of the 4 that one node has are taken first"
    Run.objects.filter(workload=waits).update(ended_at=timezone.now(), outcome="stopped")
    assert [note for note, _ in strip(her)] == ["2 GPUs, minimal, same as two"]
    Image.objects.all().delete()
    assert [note for note, _ in strip(her)] == ["up to 4 GPUs on one node"]
    GpuClass.objects.update(held_since=timezone.now(), held_reason="a driver update")
    assert strip(her) == []
    GpuClass.objects.update(held_since=None, held_reason="", visibility="named")
    assert strip(her) == []


def test_a_class_that_takes_the_kind_no_more_is_not_offered_for_it(
    her: Client, alice: User, house: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    over(namespace_a, a100, alice, "two", units=2)
    GpuClass.objects.update(kinds="job")
    assert [note for note, _ in strip(her)] == ["up to 4 GPUs on one node"]


def test_its_queries_do_not_grow(
    her: Client, alice: User, house: Tenant, namespace_a: Namespace, a100: GpuClass, cluster: Cluster
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert her.get("/teams/team-a").status_code == 200
        return len(seen)

    over(namespace_a, a100, alice, "first")
    make.grant(house, make.gpu_class(cluster, slug="of-no-workload"), units=1)
    before = asked()
    for number in range(4):
        over(namespace_a, a100, alice, f"w{number}", units=number + 1)
        more = make.gpu_class(cluster, slug=f"c{number}")
        make.grant(house, more, units=1)
        Image.objects.create(name=f"image {number}", reference=f"x/y:{number}")
    assert asked() == before
