"""From rows to the page: what was measured of all runs of a workload, with the size that it has now."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import make, mirrored
from tests.usage.telemetry.rows import SLICE, held_run
from usage.right_size.queries import size_advice
from usage.telemetry.models import RunHour
from workloads.models import Run

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def measured(
    run: Run, hour: datetime, *, busy: int, memory_mib: float, total_mib: float, activity: float = 10.0
) -> None:
    RunHour.objects.create(
        run=run, hour=hour, namespace=run.workload.namespace, gpu_class=run.workload.gpu_class, measure="utilisation",
        seen_minutes=(1 << 60) - 1, busy_minutes=0, activity_sum=60 * activity, activity_max=activity,
        busy_devices_max=busy, memory_samples=60, memory_sum_mib=60 * memory_mib, memory_max_mib=memory_mib,
        memory_total_mib=total_mib, memory_share_max=100 * memory_mib / total_mib,
    )  # fmt: skip


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(minute=0, second=0, microsecond=0)


@pytest.fixture
def slice_class(cluster: Cluster) -> GpuClass:
    mirrored.hardware_seen(cluster)
    return make.gpu_class(cluster, slug="slice", name="1g.10gb", memory_mib=9856, weight="0.1429", **SLICE)


def used(run: Run, now: datetime, *, days: int, busy: int = 1, memory_mib: float = 6144, gpus: int = 1) -> None:
    for back in range(days):
        for hour in range(4):
            at = now - back * DAY - hour * HOUR
            measured(run, at, busy=busy, memory_mib=gpus * memory_mib, total_mib=gpus * 81920)


def test_a_workload_that_fits_a_slice(
    namespace_a: Namespace, a100: GpuClass, slice_class: GpuClass, alice: User, now: datetime, client: Client
) -> None:
    run = held_run(namespace_a, a100, alice, now - 8 * DAY, name="small")
    used(run, now, days=7)
    make.grant(namespace_a.tenant, slice_class, units=1)
    found = size_advice(Actor(alice, "page"), run.workload, at=now + HOUR)
    assert found is not None
    assert (found.gpu_class, found.units, found.needs_quota) == ("slice", 1, False)
    assert found.why.startswith("It used at most 6.0 GiB of 80 GiB GPU memory, and at most 10 % of its GPU in a minute")
    client.force_login(alice)
    page = client.get("/teams/team-a/workloads/small/activity").content.decode()
    assert 'href="/teams/team-a/workloads/small/change?class=slice&amp;units=1"' in page
    said = client.get("/api/v1/workloads/small/activity?team=team-a").json()["size_advice"]
    assert (said["gpu_class"], said["units"], said["suggestion"]) == ("slice", 1, "Use 1g.10gb")
    assert said["needs_quota"] is False
    form = client.get("/teams/team-a/workloads/small/change?class=slice&units=1").content.decode()
    assert re.search(r'name="gpu_class" value="slice"[^>]* checked', form)


def test_a_slice_for_which_the_team_has_no_quota(
    namespace_a: Namespace, a100: GpuClass, slice_class: GpuClass, alice: User, bob: User, now: datetime, client: Client
) -> None:
    """The button then opens the request, for those who may file it."""
    run = held_run(namespace_a, a100, alice, now - 8 * DAY, name="small")
    used(run, now, days=7)
    client.force_login(alice)
    page = client.get("/teams/team-a/workloads/small/activity").content.decode()
    assert "The team has no quota for 1g.10gb." in page
    assert "/workloads/small/change" not in page
    [href] = re.findall(r'href="(/teams/team-a/requests/new\?class=slice&amp;units=1&amp;[^"]*)"', page)
    form = client.get(html.unescape(href)).content.decode()
    assert re.search(r'name="units-slice"[^>]* value="1"', form)
    assert "It used at most 6.0 GiB of 80 GiB GPU memory" in form
    said = client.get("/api/v1/workloads/small/activity?team=team-a").json()["size_advice"]
    assert said["why"].endswith("The team has no quota for 1g.10gb.")
    assert said["needs_quota"] is True
    client.force_login(bob)
    page = client.get("/teams/team-a/workloads/small/activity").content.decode()
    assert "Only owners and managers of the team can request quota." in page
    assert "/requests/new" not in page


def test_borrowing_is_enough(
    namespace_a: Namespace, a100: GpuClass, slice_class: GpuClass, alice: User, now: datetime
) -> None:
    GpuClass.objects.filter(pk=slice_class.pk).update(borrowing_limit=1)
    run = held_run(namespace_a, a100, alice, now - 8 * DAY)
    used(run, now, days=7)
    found = size_advice(Actor(alice, "page"), run.workload, at=now + HOUR)
    assert found is not None
    assert not found.needs_quota


def test_too_few_days_say_nothing(
    namespace_a: Namespace, a100: GpuClass, slice_class: GpuClass, alice: User, now: datetime
) -> None:
    # At noon: the hours of each day are not those of the day before.
    now = (now - DAY).replace(hour=12)
    run = held_run(namespace_a, a100, alice, now - 8 * DAY)
    used(run, now, days=6)
    assert size_advice(Actor(alice, "page"), run.workload, at=now + HOUR) is None


def test_the_memory_of_one_gpu_of_several(
    namespace_a: Namespace, a100: GpuClass, slice_class: GpuClass, alice: User, now: datetime
) -> None:
    """The rows have the sum of all GPUs; and only runs of the present size count."""
    run = held_run(namespace_a, a100, alice, now - 8 * DAY, units=4, name="four")
    used(run, now, days=7, busy=2, gpus=4)
    found = size_advice(Actor(alice, "page"), run.workload, at=now + HOUR)
    assert found is not None
    assert (found.gpu_class, found.units, found.suggestion) == (a100.slug, 2, "Use 2 GPUs")
    run.workload.units = 8
    assert size_advice(Actor(alice, "page"), run.workload, at=now + HOUR) is None


def test_it_costs_one_query_without_measurements(
    namespace_a: Namespace,
    a100: GpuClass,
    alice: User,
    now: datetime,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    run = held_run(namespace_a, a100, alice, now)
    with django_assert_num_queries(1):
        assert size_advice(Actor(alice, "page"), run.workload, at=now) is None
