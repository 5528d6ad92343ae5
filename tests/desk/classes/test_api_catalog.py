"""/api/v1/classes and /api/v1/images: they return what the pages show of a class, to every user who may see it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.models import User
from catalog.classes import actions
from catalog.images import actions as image_actions
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import ClassAccess, Tenant
from tests.support.http.callers import CatalogCaller
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db
BY = system_actor("test")


@pytest.fixture
def bob_calls(team_a: Tenant, bob: User) -> CatalogCaller:
    return CatalogCaller(bob)


# ---- classes -----------------------------------------------------------------------------------------------------


def test_a_class_says_what_it_promises_and_what_is_free(bob_calls: CatalogCaller, a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster)
    found = bob_calls(f"/classes/{a100.slug}").json()
    assert (found["slug"], found["unit"], found["price_per_unit_hour"]) == (a100.slug, "GPU", "0.0000")
    assert (found["capacity"]["free"], found["capacity"]["largest_node"]) == (16, 4)
    assert (found["capacity"]["unhealthy"], found["capacity"]["cordoned"]) == (0, 0)
    promise = found["contract"]["promises"][0]
    assert promise.keys() == {"topic", "level", "lead", "text", "reason"}
    assert found["contract"]["neighbours"].startswith("Not shared")
    assert found["contract"]["suits"]
    assert found["contract"]["avoid"]
    assert (found["held"], found["terms"], found["successor"], found["retirement"]) == (None, None, "", "")
    assert (found["life_cycle"], found["visibility"], found["kinds"]) == ("active", "everyone", "any")


def test_what_is_not_known_is_null(bob_calls: CatalogCaller, a100: GpuClass) -> None:
    capacity = bob_calls(f"/classes/{a100.slug}").json()["capacity"]
    assert set(capacity.values()) == {None, False}


def test_a_hold_is_said_with_its_reason_and_expected_end(bob_calls: CatalogCaller, a100: GpuClass) -> None:
    until = timezone.now() + timedelta(hours=3)
    actions.hold_class(a100.pk, reason="a driver update", until=until, by=BY)
    held = bob_calls(f"/classes/{a100.slug}").json()["held"]
    assert (held["reason"], held["until"][:16]) == ("a driver update", until.isoformat()[:16])
    assert "has been paused since" in held["message"]


def test_a_retiring_class_names_its_successor_and_its_end(bob_calls: CatalogCaller, a100: GpuClass) -> None:
    make.gpu_class(a100.cluster, slug="h100", name="H100", node_labels={"gpu": "h100"})
    ends = timezone.now() + timedelta(days=30)
    actions.retire_class(a100.pk, successor="h100", message="Newer cards came.", runs_until=ends, by=BY)
    found = bob_calls(f"/classes/{a100.slug}").json()
    assert (found["life_cycle"], found["successor"], found["runs_until"][:16]) == (
        "retiring",
        "h100",
        ends.isoformat()[:16],
    )
    assert "Newer cards came." in found["retirement"]


def test_terms_and_the_interconnect_with_its_source(bob_calls: CatalogCaller, a100: GpuClass) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(
        terms_version=3,
        terms="Be kind.",
        eligibility="Vision",
        kinds="job",
        interconnect="nvlink",
        interconnect_note="nvidia-smi topo",
        interconnect_on="2026-11-01",
    )
    found = bob_calls(f"/classes/{a100.slug}").json()
    assert found["terms"] == {"version": 3, "text": "Be kind."}
    assert (found["eligibility"], found["kinds"]) == ("Vision", "job")
    said = (found["interconnect"], found["interconnect_note"], found["interconnect_on"])
    assert said == ("nvlink", "nvidia-smi topo", "2026-11-01")


def test_a_class_for_named_teams_is_not_there_for_others(
    bob_calls: CatalogCaller, a100: GpuClass, team_a: Tenant, charlie: User, olga: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(visibility="named")
    charlie_calls = CatalogCaller(charlie)
    for caller in (bob_calls, charlie_calls):
        assert caller.items("/classes") == []
        assert caller(f"/classes/{a100.slug}").json()["code"] == "not_found"
        assert caller(f"/images?gpu_class={a100.slug}").json()["code"] == "unknown_class"
    ClassAccess.objects.create(tenant=team_a, gpu_class=a100)
    assert [one["slug"] for one in bob_calls.items("/classes")] == [a100.slug]
    assert [one["slug"] for one in CatalogCaller(olga).items("/classes")] == [a100.slug]
    assert charlie_calls.items("/classes") == []


def test_a_successor_that_one_may_not_know_of_is_not_named(
    bob_calls: CatalogCaller, a100: GpuClass, olga: User
) -> None:
    make.gpu_class(a100.cluster, slug="secret", name="Secret", node_labels={"gpu": "s"}, visibility="named")
    actions.retire_class(a100.pk, successor="secret", message="", runs_until=None, by=BY)
    assert "secret" not in bob_calls(f"/classes/{a100.slug}").content.decode().lower()
    assert CatalogCaller(olga)(f"/classes/{a100.slug}").json()["successor"] == "secret"


def test_classes_come_in_pages_at_the_same_cost(
    bob_calls: CatalogCaller, cluster: Cluster, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        make.gpu_class(cluster, slug=f"c{number:02}", node_labels={"gpu": str(number)})
    mirrored.hardware_seen(cluster)
    bob_calls("/me")  # records the use of the token
    counts = []
    for limit in (1, 12):
        with django_assert_max_num_queries(100) as asked:
            assert len(bob_calls.items(f"/classes?limit={limit}")) == limit
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 8, asked.captured_queries
    first = bob_calls("/classes?limit=5").json()
    assert [one["slug"] for one in first["items"]] == ["c00", "c01", "c02", "c03", "c04"]
    assert bob_calls(first["next"].partition("/api/v1")[2]).json()["items"][0]["slug"] == "c05"


# ---- images ------------------------------------------------------------------------------------------------------


@pytest.fixture
def some_images(cluster: Cluster) -> None:
    new = image_actions.put_image(
        name="New", reference="q/x:2", vendor="nvidia", min_cuda="99.0", version="2", position=1, by=BY
    )
    image_actions.put_image(
        name="Old", reference="q/x:1", deprecated_since="2026-01-01", successor=new, position=2, by=BY
    )
    image_actions.put_image(name="Roc", reference="q/r:1", vendor="amd", kind="job", position=3, by=BY)


@pytest.mark.usefixtures("some_images")
def test_images_say_what_they_are_and_what_comes_after(bob_calls: CatalogCaller) -> None:
    found = bob_calls.items("/images")
    assert [one["name"] for one in found] == ["New", "Old", "Roc"]
    new, old, _ = found
    assert (new["version"], new["vendor"], new["min_cuda"], new["kind"]) == ("2", "nvidia", "99.0", "notebook")
    assert (old["deprecated_since"], old["successor"]) == ("2026-01-01", "New")
    assert "use New instead" in old["deprecation"]
    assert [(one["fits"], one["reason"]) for one in found] == [(None, "")] * 3
    assert [one["name"] for one in bob_calls.items("/images?kind=job")] == ["Roc"]
    assert bob_calls("/images?kind=toy").json()["field"] == "kind"


@pytest.mark.usefixtures("some_images")
def test_images_say_whether_they_fit_a_class(bob_calls: CatalogCaller, a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster)
    new, old, roc = bob_calls.items(f"/images?gpu_class={a100.slug}")
    assert (old["fits"], old["reason"]) == (True, "")
    assert (roc["fits"], "do not run on NVIDIA GPUs" in roc["reason"]) == (False, True)
    assert (new["fits"], "New needs CUDA 99.0" in new["reason"]) == (False, True)


@pytest.mark.parametrize("slug", ["none", "x" * 60])
def test_a_class_that_is_not_there_is_said(bob_calls: CatalogCaller, cluster: Cluster, slug: str) -> None:
    answer = bob_calls(f"/images?gpu_class={slug}")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "unknown_class", "gpu_class")


def test_images_come_in_pages_at_the_same_cost(
    bob_calls: CatalogCaller, a100: GpuClass, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        image_actions.put_image(name=f"I{number:02}", reference="q/x:1", position=5, by=BY)
    bob_calls("/me")  # records the use of the token
    counts = []
    for limit in (1, 12):
        with django_assert_max_num_queries(100) as asked:
            assert len(bob_calls.items(f"/images?limit={limit}&gpu_class={a100.slug}")) == limit
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 7, asked.captured_queries


# ---- access ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["classes", "classes/a100", "images"])
def test_nobody_gets_in_without_a_token(cluster: Cluster, path: str) -> None:
    assert Client().get(f"/api/v1/{path}").status_code == 401
