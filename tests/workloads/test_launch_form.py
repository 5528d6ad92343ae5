"""What the launch page offers for a kind and a class, and what of it is refused when it is sent all the same."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.models import Cluster, MirrorNode
from portal.errors import Refused
from tenants.models import ClassAccess, Tenant
from tests import make
from workloads import actions
from workloads.models import Run
from workloads.policy import Wanted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("granted")]
DIGEST = "sha256:" + "5c" * 32
REFERENCE = "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"


@pytest.fixture
def pytorch(images: list[Image]) -> Image:
    return Image.objects.create(
        name="PyTorch", version="2.9.1", reference=REFERENCE, kind="job", vendor="nvidia", min_cuda="12.0", position=1
    )


@pytest.fixture
def mi300x(cluster: Cluster, team_a: Tenant, unique: str) -> GpuClass:
    found = make.gpu_class(
        cluster,
        slug=f"mi300x-{unique}",
        name="MI300X",
        vendor="amd",
        resource="amd.com/gpu",
        node_labels={"amd": "yes"},
    )
    make.grant(team_a, found, units=1)
    return found


def drivers(a100: GpuClass, *versions: str) -> None:
    """A node of the class for each of these CUDA versions."""
    for number, version in enumerate(versions):
        MirrorNode.objects.create(
            cluster_id=a100.cluster_id,
            name=f"a100-{number}",
            uid=str(number),
            resource_version=1,
            created_at=timezone.now(),
            schedulable=True,
            ready=True,
            record={"labels": {**a100.node_labels, "nvidia.com/cuda.runtime-version.full": version}},
        )


def options(page: str) -> dict[str, bool]:
    """Values of the image's options in their order, and whether each can be chosen."""
    select = re.search(r'<select name="image".*?</select>', page, re.DOTALL)
    assert select
    found = re.findall(r'<option value="([^"]*)"([^>]*)>', select[0])
    return {value: "disabled" not in rest for value, rest in found}


# ---- images ----------------------------------------------------------------------------------------------------------


def test_an_image_of_another_vendor_is_greyed_with_the_sentence_and_refused(
    pytorch: Image, mi300x: GpuClass, job: Wanted, alice: User, client: Client
) -> None:
    words = "CUDA images do not run on AMD cards; MI300X needs a ROCm image."
    client.force_login(alice)
    page = client.get(f"/teams/team-a/launch?kind=job&gpu_class={mi300x.slug}").content.decode()
    assert options(page) == {"python": True, "PyTorch": False, "absent": True, "minimal": True}
    assert words in page

    typed = {"kind": "job", "name": "train", "gpu_class": mi300x.slug, "units": 1, "image": "PyTorch"}
    answer = client.post("/teams/team-a/launch", typed)
    assert answer.status_code == 422
    assert 'id="id_image_error"' in answer.content.decode()
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", replace(job, gpu_class=mi300x.slug, image="PyTorch"), by=Actor(alice, via="page"))
    assert refused.value.refusal.body() == {"code": "image_does_not_run", "message": words, "field": "image"}


def test_an_old_driver_is_seen_in_the_same_statement(
    pytorch: Image, a100: GpuClass, job: Wanted, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    drivers(a100, "12.8", "11.8")
    with pytest.raises(Refused, match=r"PyTorch needs CUDA 12\.0, and drivers of .* offer 11\.8"):
        actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)

    MirrorNode.objects.filter(name="a100-1").delete()
    with django_assert_num_queries(7):
        actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)


def test_an_unknown_driver_is_said_and_not_refused(
    pytorch: Image, a100: GpuClass, job: Wanted, by_alice: Actor, alice: User, client: Client
) -> None:
    client.force_login(alice)
    page = client.get("/teams/team-a/launch?kind=job").content.decode()
    assert options(page)["PyTorch"]
    assert "which version the drivers of A100 80GB whole card offer is unknown" in page
    actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)


def test_a_digest_is_frozen_in_the_run(pytorch: Image, job: Wanted, by_alice: Actor) -> None:
    Image.objects.filter(pk=pytorch.pk).update(digest=DIGEST)
    workload = actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)
    assert workload.image == f"{REFERENCE}@{DIGEST}"
    assert Run.objects.get().spec["image"] == f"{REFERENCE}@{DIGEST}"

    # What the API shows may be sent back.
    again, _ = actions.declare("team-a", replace(job, image=workload.image), by=by_alice)
    assert again.image == workload.image


def test_a_deprecated_image_comes_last_names_its_successor_and_starts(
    pytorch: Image, job: Wanted, by_alice: Actor, alice: User, client: Client
) -> None:
    Image.objects.filter(pk=pytorch.pk).update(
        deprecated_since=date(2026, 1, 31), successor=Image.objects.get(name="python")
    )
    client.force_login(alice)
    page = client.get("/teams/team-a/launch?kind=job").content.decode()
    assert list(options(page))[:2] == ["python", "PyTorch"]
    assert "Deprecated since 31 Jan 2026; use python instead." in page
    actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)


# ---- kinds -----------------------------------------------------------------------------------------------------------


def test_a_class_for_jobs_takes_no_notebook_and_is_offered_for_jobs(
    a100: GpuClass, mi300x: GpuClass, notebook: Wanted, by_alice: Actor, alice: User, client: Client
) -> None:
    GpuClass.objects.filter(pk=mi300x.pk).update(kinds="job")
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", replace(notebook, gpu_class=mi300x.slug), by=by_alice)
    assert refused.value.refusal.body() == {
        "code": "kind_not_offered",
        "message": "MI300X is for jobs only. Choose another class for a notebook.",
        "field": "gpu_class",
    }

    client.force_login(alice)

    def offered(query: str) -> list[str]:
        page = client.get(f"/teams/team-a/launch{query}").content.decode()
        return re.findall(r'name="gpu_class" value="([^"]+)"', page)

    assert offered("") == [a100.slug]
    assert offered("?kind=job") == [a100.slug, mi300x.slug]
    assert offered(f"?gpu_class={mi300x.slug}") == [a100.slug, mi300x.slug]  # the class says which kind


def test_looking_at_what_fits_launches_nothing_and_keeps_what_was_typed(
    mi300x: GpuClass, pytorch: Image, alice: User, client: Client
) -> None:
    client.force_login(alice)
    typed = {"kind": "job", "name": "train", "gpu_class": mi300x.slug, "units": 1, "image": "python", "volume": "data"}
    answer = client.post("/teams/team-a/launch", {**typed, "look": "all"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert Run.objects.count() == 0
    assert options(page)["PyTorch"] is False
    assert 'value="train"' in page
    assert 'value="data"' in page
    assert re.search(rf'value="{mi300x.slug}"[^>]*checked', page)


# ---- which classes ---------------------------------------------------------------------------------------------------


def test_a_class_of_named_teams_is_unknown_to_others(
    mi300x: GpuClass, job: Wanted, team_a: Tenant, by_alice: Actor
) -> None:
    GpuClass.objects.filter(pk=mi300x.pk).update(visibility="named")
    wanted = replace(job, gpu_class=mi300x.slug)
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", wanted, by=by_alice)
    assert refused.value.code == "unknown_class"
    ClassAccess.objects.create(tenant=team_a, gpu_class=mi300x)
    actions.launch("team-a", wanted, by=by_alice)


def test_what_is_held_queues_and_what_is_leaving_is_only_shown(
    a100: GpuClass, mi300x: GpuClass, job: Wanted, by_alice: Actor, alice: User, client: Client
) -> None:
    now = timezone.now()
    GpuClass.objects.filter(pk=mi300x.pk).update(
        held_since=now, held_until=now + timedelta(days=2), held_reason="a driver update"
    )
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="retiring", successor=mi300x)
    client.force_login(alice)
    page = client.get("/teams/team-a/launch?kind=job").content.decode()
    assert "for a driver update; expected to open at" in page
    assert "What you launch waits until it opens." in page
    assert "Its successor is MI300X. Nothing new starts on it." in page
    assert f'name="gpu_class" value="{a100.slug}"' not in page

    actions.launch("team-a", replace(job, gpu_class=mi300x.slug), by=by_alice)
    with pytest.raises(Refused, match=r"is retiring: nothing new starts on it\. Choose MI300X\."):
        actions.launch("team-a", replace(job, name="more"), by=by_alice)


def test_the_page_asks_as_often_for_many_classes_as_for_one(
    a100: GpuClass, images: list[Image], cluster: Cluster, team_a: Tenant, alice: User, client: Client
) -> None:
    client.force_login(alice)

    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert client.get("/teams/team-a/launch").status_code == 200
        return len(seen)

    one = asked()
    for number in range(4):
        more = make.gpu_class(
            cluster, slug=f"more-{number}", node_labels={"n": str(number)}, terms_version=1, terms="Be kind.",
            life_cycle="retiring" if number % 2 else "active", successor=a100 if number % 2 else None,
        )  # fmt: skip
        make.grant(team_a, more, units=1)
        Image.objects.create(name=f"image {number}", reference=f"x/y:{number}", successor=images[0])
    assert asked() == one
