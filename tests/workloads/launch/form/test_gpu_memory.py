"""At least so many GiB of each device: offered only where devices differ, counted device by device, kept by a clone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.catalog.classes.capacity.test_device_memory import claim, devices, node, seen, sized
from tests.support.rows import make
from workloads.core import queries as core_queries
from workloads.forecast.queries import LaunchSize, outlooks
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.queries import reachable_classes
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("granted")]
# A fixture of another module, by name.
__all__ = ["sized"]
FIELD = 'name="gpu_memory_gib"'


@pytest.fixture
def two_sizes(sized: GpuClass, team_a: Tenant) -> GpuClass:
    """One node has devices of 20, 40 and 40 GiB, another one of 40; those of 40 on the first are in use."""
    make.grant(team_a, sized, units=4)
    slices = devices("n1", 20, 40, 40), devices("n2", 40)
    seen(sized.cluster, *slices, claims=[claim("a", ("n1", 1), ("n1", 2))])
    return sized


def outlook(namespace: Namespace, one: GpuClass, units: int, gib: int | None, workers: int = 1) -> str:
    size = LaunchSize(units, kind="job", workers=workers, gpu_memory_gib=gib)
    return outlooks(namespace, reachable_classes(namespace), size)[one.slug].sentence


def test_what_starts_now_is_counted_device_by_device(
    two_sizes: GpuClass, a100: GpuClass, namespace_a: Namespace
) -> None:
    assert outlook(namespace_a, two_sizes, 1, None) == "uses 1 of 4 GPUs; 1 free now on one node; starts now"
    told = outlook(namespace_a, two_sizes, 1, 30)
    assert told == "uses 1 of 4 GPUs; 1 with at least 30 GiB free now on one node; starts now"
    told = outlook(namespace_a, two_sizes, 2, 30)
    waits = "waits until one has, and holds its units meanwhile"
    assert told == f"uses 2 of 4 GPUs; no node has 2 GPUs with at least 30 GiB free now (at most 1); {waits}"
    assert "no node has more than 2 with at least 30 GiB" in outlook(namespace_a, two_sizes, 3, 30)
    assert "the largest device of" in outlook(namespace_a, two_sizes, 1, 41)
    told = outlook(namespace_a, two_sizes, 1, 30, workers=2)
    assert told == "uses 2 of 4 GPUs; 1 of 2 workers fit now; the others wait and hold their units"
    assert outlook(namespace_a, a100, 1, 30) == outlook(namespace_a, a100, 1, None), "a class without the field"


def test_the_field_is_there_only_where_devices_differ(
    two_sizes: GpuClass, a100: GpuClass, images: list[Image], alice: User, client: Client
) -> None:
    client.force_login(alice)
    page = client.get(f"/teams/team-a/launch?class={two_sizes.slug}&kind=job").content.decode()
    assert FIELD in page
    assert "have 20 and 40 GiB." in page
    assert FIELD not in client.get(f"/teams/team-a/launch?class={a100.slug}&kind=job").content.decode()
    # The class is changed after a size was entered: the other class has no such field.
    sent = {"look": "class", "kind": "job", "units": "1", "gpu_memory_gib": "30", "name": "x", "image": "python"}
    page = client.post("/teams/team-a/launch", {**sent, "gpu_class": a100.slug}).content.decode()
    assert FIELD not in page
    assert "gpu_memory_gib" not in page
    page = client.post("/teams/team-a/launch", {**sent, "gpu_class": two_sizes.slug}).content.decode()
    assert "1 with at least 30 GiB free now on one node; starts now" in page
    assert "compareTo(quantity(" in page, "the preview shows the claim"


def test_what_no_device_can_serve_is_refused_beside_its_field(
    two_sizes: GpuClass, a100: GpuClass, images: list[Image], alice: User, client: Client
) -> None:
    client.force_login(alice)
    sent = {"kind": "job", "units": "1", "name": "x", "image": "python", "visibility": "private"}
    for one, asked, words in (
        (two_sizes, "80", "80 GiB requested; the largest device of A100 80GB whole card has 40 GiB. Enter 1 to 40"),
        (a100, "30", "The memory of the single devices of A100 80GB whole card is not known. Leave this empty."),
    ):
        answer = client.post("/teams/team-a/launch", {**sent, "gpu_class": one.slug, "gpu_memory_gib": asked})
        assert answer.status_code == 422
        page = answer.content.decode()
        assert words in page
        assert 'id="id_gpu_memory_gib_error"' in page
    assert not Workload.objects.exists()


def test_a_size_is_in_the_run_and_kept_by_a_clone_and_the_next_run(
    two_sizes: GpuClass, job: LaunchSpec, by_alice: Actor, alice: User, client: Client, namespace_a: Namespace
) -> None:
    wanted = replace(job, name="big", gpu_class=two_sizes.slug, units=1, options=Options(gpu_memory_gib=30))
    actions.launch("team-a", wanted, by=by_alice)
    assert Run.objects.get().spec["gpu_memory_gib"] == 30
    client.force_login(alice)
    assert "at least 30 GiB each" in client.get("/teams/team-a/workloads/big").content.decode()
    for address in ("launch?like=big", "workloads/big/change"):
        page = client.get(f"/teams/team-a/{address}").content.decode()
        assert f'{FIELD} value="30"' in page, address
    Run.objects.update(ended_at="2026-11-21T09:00:00Z", outcome="failed")
    actions.start("team-a", "big", by=by_alice)
    assert Run.objects.latest("pk").spec["gpu_memory_gib"] == 30

    # The larger devices are gone for good.
    Run.objects.update(ended_at="2026-11-21T09:00:00Z", outcome="failed")
    seen(two_sizes.cluster, devices("n3", 20), nodes=[node("n3")])
    with pytest.raises(Refused) as refused:
        actions.start("team-a", "big", by=by_alice)
    assert (refused.value.refusal.code, refused.value.refusal.field) == ("gpu_memory_too_large", "gpu_memory_gib")


def test_unknown_sizes_refuse_nothing(sized: GpuClass, team_a: Tenant, job: LaunchSpec, by_alice: Actor) -> None:
    make.grant(team_a, sized, units=1)
    wanted = replace(job, gpu_class=sized.slug, units=1, options=Options(gpu_memory_gib=30))
    assert actions.launch("team-a", wanted, by=by_alice).options == {"gpu_memory_gib": 30}
    assert core_queries.team(by_alice, "team-a")[1].workloads == 1
