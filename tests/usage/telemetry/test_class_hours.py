"""Sums of a class by the hour: always those of its runs' hours, in whatever order minutes are read."""

from __future__ import annotations

import importlib
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import make
from tests.usage.telemetry.rows import MINUTE, SLICE, TIME_SLICED, FakePrometheus, device, held_run
from usage.telemetry import collection
from usage.telemetry.collection import read_cluster
from usage.telemetry.models import ClassHour, RunHour, TelemetrySource
from usage.telemetry.prometheus import PrometheusUnreadable
from workloads.models import AllocationInterval, Run

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
Sums = dict[tuple[int, datetime], tuple[float, float]]


def at(minute: int) -> datetime:
    """When minute `minute` after NOON begins, and the one before can be read."""
    return NOON + timedelta(minutes=minute, seconds=12)


@pytest.fixture
def runs(cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> list[Run]:
    """Two of one class, one of slices, one that shares a GPU; one ends and one begins in between. One was preempted."""
    parts = make.gpu_class(cluster, slug="part", **SLICE)
    shared = make.gpu_class(cluster, slug="shared", **TIME_SLICED)
    before = NOON - 2 * HOUR
    found = [
        held_run(namespace_a, a100, alice, before),
        held_run(namespace_a, a100, alice, NOON + 20 * MINUTE, NOON + 100 * MINUTE, units=2),
        held_run(namespace_a, parts, alice, before),
        held_run(namespace_a, shared, alice, before),
    ]
    AllocationInterval.objects.filter(run=found[0]).update(ends_at=NOON + 70 * MINUTE)
    known = AllocationInterval.objects.get(run=found[0])
    known.pk, known.starts_at, known.ends_at, known._state.adding = None, NOON + 80 * MINUTE, None, True
    known.save()
    return found


def devices(runs: list[Run]) -> list[dict[str, str]]:
    whole, two, part, shared = runs
    return [device(whole), device(two, "GPU-2"), device(two, "GPU-3"), device(part, "GPU-4", slice_="1"),
            device(shared, "GPU-5")]  # fmt: skip


def values(field: str, labels: dict[str, str], minute: datetime) -> float | None:
    """Whole numbers, so that sums are exact in any order. Minutes that are multiples of 11 were not measured."""
    percent = float((minute.minute * 7 + minute.hour + 13 * int(labels["UUID"][-1])) % 100)
    return percent if field in ("utilisation", "engine") and minute.minute % 11 else None


def sums_of_runs() -> Sums:
    found: Sums = defaultdict(lambda: (0.0, 0.0))
    for row in RunHour.objects.exclude(measure="shared"):
        units = row.run.spec["units"]
        measured, busy = found[row.gpu_class_id, row.hour]
        found[row.gpu_class_id, row.hour] = (
            measured + units * row.seen_minutes.bit_count() / 60,
            busy + units * row.activity_sum / 6000,
        )
    return dict(found)


def sums() -> Sums:
    return {(row.gpu_class_id, row.hour): (row.measured_hours, row.busy_hours) for row in ClassHour.objects.all()}


def same(expected: Sums) -> dict[tuple[int, datetime], object]:
    return {key: pytest.approx(figures) for key, figures in expected.items()}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(looks=st.sets(st.integers(1, 179), max_size=8), away=st.sets(st.integers(1, 179)))
def test_sums_are_those_of_the_runs(runs: list[Run], looks: set[int], away: set[int]) -> None:
    """`away`: looks that fail, so that their minutes are read late. After every look."""
    with transaction.atomic():
        cluster, ask = runs[0].workload.namespace.cluster, FakePrometheus(devices(runs), values)
        read_cluster(cluster, ask, at=at(0))
        for minute in [*sorted(looks), 180, 181, 182]:
            ask.raises = PrometheusUnreadable("away") if minute in away else None
            read_cluster(cluster, ask, at=at(minute))
            assert sums() == same(sums_of_runs())
        # Two classes, from the hour before NOON to the one that begins at minute 180.
        assert len(sums()) == 10
        assert not ClassHour.objects.filter(gpu_class__slug="shared").exists()
        transaction.set_rollback(True)


def test_minutes_that_are_read_again_count_once(runs: list[Run]) -> None:
    cluster, ask = runs[0].workload.namespace.cluster, FakePrometheus(devices(runs), values)
    read_cluster(cluster, ask, at=at(30))
    read_cluster(cluster, ask, at=at(50))
    found = sums()
    TelemetrySource.objects.update(read_until=NOON + 30 * MINUTE)
    read_cluster(cluster, ask, at=at(50))
    assert sums() == found == same(sums_of_runs())


def test_what_an_earlier_release_measured_is_summed_up(runs: list[Run]) -> None:
    """Its worker writes hours of runs without sums, until the first minute that this one reads; also in an hour that is
    over by then.
    """
    cluster, ask = runs[0].workload.namespace.cluster, FakePrometheus(devices(runs), values)
    read_cluster(cluster, ask, at=at(40))
    read_cluster(cluster, ask, at=at(60))
    ClassHour.objects.update(measured_hours=0, busy_hours=0)
    read_cluster(cluster, ask, at=at(62))
    assert sums() == same(sums_of_runs())
    assert {hour for _, hour in sums()} == {NOON, NOON + HOUR}


def test_sums_of_another_cluster_are_left_to_its_own_worker(runs: list[Run], alice: User) -> None:
    other = Cluster.objects.create(name="other")
    namespace = make.tenant(other, slug="other", namespace="other").namespaces.get()
    theirs = held_run(namespace, make.gpu_class(other, slug="theirs"), alice, NOON - HOUR)
    read_cluster(other, FakePrometheus([device(theirs)], values), at=at(5))
    ClassHour.objects.update(measured_hours=7)
    read_cluster(runs[0].workload.namespace.cluster, FakePrometheus(devices(runs), values), at=at(5))
    assert ClassHour.objects.get(gpu_class__slug="theirs").measured_hours == 7


def test_sums_are_kept_as_long_as_the_hours_of_runs(runs: list[Run]) -> None:
    cluster, ask = runs[0].workload.namespace.cluster, FakePrometheus(devices(runs), values)
    read_cluster(cluster, ask, at=at(30))
    read_cluster(cluster, ask, at=at(90))
    assert collection.purge(before=NOON + HOUR) > 0
    assert {hour for _, hour in sums()} == {NOON + HOUR}
    assert sums() == same(sums_of_runs())


def test_the_migration_sums_up_what_was_measured_before(runs: list[Run]) -> None:
    cluster, ask = runs[0].workload.namespace.cluster, FakePrometheus(devices(runs), values)
    read_cluster(cluster, ask, at=at(30))
    read_cluster(cluster, ask, at=at(90))
    ClassHour.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(importlib.import_module("usage.migrations.0006_class_hour").SUM_UP)
    assert sums() == same(sums_of_runs()) != {}
