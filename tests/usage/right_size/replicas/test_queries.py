"""From what was measured of shared GPUs to the page of their class."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import make
from tests.usage.telemetry.rows import TIME_SLICED, held_run
from usage.right_size.replicas.queries import replicas_advice
from usage.right_size.replicas.types import FewerReplicas
from usage.telemetry.models import RunHour
from workloads.models import Run

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TITLE = "GPU memory is short"


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(hour=12, minute=0, second=0, microsecond=0) - DAY


@pytest.fixture
def shared(cluster: Cluster) -> GpuClass:
    return make.gpu_class(cluster, slug="shared", resource="nvidia.com/gpu.shared", **TIME_SLICED)


def measured(run: Run, hour: datetime, percent: float, *, measure: str = "shared", samples: int = 60) -> None:
    RunHour.objects.create(
        run=run, hour=hour, namespace=run.workload.namespace, gpu_class=run.workload.gpu_class, measure=measure,
        seen_minutes=(1 << 60) - 1, busy_minutes=0, activity_sum=600, activity_max=10, busy_devices_max=1,
        memory_samples=samples, memory_share_max=percent,
    )  # fmt: skip


@pytest.fixture
def week(namespace_a: Namespace, shared: GpuClass, alice: User, now: datetime) -> Run:
    """Measured in four hours of each of seven days; full in two hours of the first, and in one of the second."""
    run = held_run(namespace_a, shared, alice, now - 10 * DAY)
    other = held_run(namespace_a, shared, alice, now - 10 * DAY)
    for back in range(7):
        for hour in range(4):
            is_full = (back, hour) in ((0, 0), (0, 1), (1, 0))
            measured(run, now - back * DAY - hour * HOUR, 97.6 if is_full else 94.9)
            # Of another GPU, in the same hours.
            measured(other, now - back * DAY - hour * HOUR, 40.0)
    return run


def advice(one: GpuClass) -> FewerReplicas | None:
    return replicas_advice(one, units=16, promised=4, at=timezone.now())


def test_full_gpus_of_a_week(week: Run, shared: GpuClass, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(2):
        found = advice(shared)
    assert found is not None
    assert (found.replicas, found.fewer) == (4, 2)
    assert found.why == (
        "The memory of a GPU was up to 97 % full, and at least 95 % in 3 hours on 2 days, of 28 measured hours on 7 "
        "days."
    )


@pytest.mark.parametrize("change", ["not full", "not measured", "own", "older", "another class"])
def test_what_is_no_pressure(change: str, week: Run, shared: GpuClass, a100: GpuClass) -> None:
    if change == "not full":
        RunHour.objects.filter(memory_share_max__gte=95).update(memory_share_max=94.99)
    elif change == "not measured":
        RunHour.objects.update(memory_samples=0)
    elif change == "own":
        RunHour.objects.update(measure="utilisation")
    elif change == "older":
        for row in RunHour.objects.order_by("hour"):
            RunHour.objects.filter(run=row.run, hour=row.hour).update(hour=row.hour - 10 * DAY)
    else:
        RunHour.objects.update(gpu_class=a100)
    assert advice(shared) is None


def test_runs_that_ended_out_of_memory(namespace_a: Namespace, shared: GpuClass, alice: User, now: datetime) -> None:
    runs = [held_run(namespace_a, shared, alice, now - DAY, now) for _ in range(3)]
    Run.objects.filter(pk__in=[one.pk for one in runs[:2]]).update(outcome="failed", reason="out_of_gpu_memory")
    found = advice(shared)
    assert found is not None
    assert found.why == "2 of 3 runs, of 2 workloads, ended because GPU memory was full, in 14 days."
    Run.objects.filter(pk=runs[0].pk).update(reason="out_of_memory")
    assert advice(shared) is None
    Run.objects.filter(pk=runs[0].pk).update(reason="out_of_gpu_memory", started_at=now - 20 * DAY)
    assert advice(shared) is None


def test_other_classes_cost_no_query(a100: GpuClass, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        assert advice(a100) is None
        assert advice(GpuClass(sharing=GpuClass.Sharing.MPS, replicas=4)) is None


def test_only_who_oversees_all_teams_sees_it(
    week: Run, shared: GpuClass, client: Client, alice: User, dana: User, olga: User
) -> None:
    seen = {}
    for person in (alice, dana, olga):
        client.force_login(person)
        seen[person.name] = client.get("/catalog/shared").text
    assert TITLE in seen["Olga"]
    assert "<b>4 → 2 per GPU?</b> The memory of a GPU was up to 97 % full" in seen["Olga"]
    assert "How many units the class would have is unknown" in seen["Olga"]
    assert TITLE not in seen["Alice"] + seen["Dana"]
