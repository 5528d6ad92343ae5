"""Hours of runs as they are read from Prometheus: each minute once, late or not, and nothing that was not seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings as portal_settings
from django.db import transaction
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.celery import app
from portal.core.connections.prometheus_server import PrometheusServer
from tenants.models import Namespace
from tests.support.rows import make
from tests.usage.telemetry.rows import MINUTE, SLICE, TIME_SLICED, FakePrometheus, device, held_run
from usage.telemetry import collection
from usage.telemetry.collection import PAST_PERIODS, read_cluster
from usage.telemetry.models import RunHour, TelemetrySource
from usage.telemetry.prometheus import AnswerTooLarge, PrometheusUnreadable
from workloads.models import AllocationInterval, Run

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(minute: int, second: int = 12) -> datetime:
    """When minute `minute` after NOON begins, and the one before can be read."""
    return NOON + timedelta(minutes=minute, seconds=second)


def busy(field: str, labels: dict[str, str], minute: datetime) -> float | None:
    return {"utilisation": 80.0, "memory_used": 1024.0, "memory_free": 3072.0, "power": 300.0}.get(field)


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    return held_run(namespace_a, a100, alice, NOON - 2 * HOUR)


def only() -> RunHour:
    return RunHour.objects.get()


def source() -> TelemetrySource:
    return TelemetrySource.objects.get()


def test_minutes_of_an_hour_are_one_row(run: Run) -> None:
    def values(field: str, labels: dict[str, str], minute: datetime) -> float | None:
        if field == "utilisation":
            return 5.0 * (minute.minute + 1) if labels["UUID"] == "GPU-1" else 1.0
        return busy(field, labels, minute)

    ask = FakePrometheus([device(run), device(run, "GPU-2")], values)
    for minute in (1, 2, 3):
        read_cluster(run.workload.namespace.cluster, ask, at=at(minute))
    row = only()
    assert (row.run_id, row.hour, row.measure) == (run.pk, NOON, "utilisation")
    assert row.seen_minutes == 0b111
    assert row.busy_minutes == 0b111
    assert row.activity_sum == pytest.approx(3.0 + 5.5 + 8.0)
    assert (row.activity_max, row.busy_devices_max, row.activity_last) == (15.0, 1, 8.0)
    assert (row.memory_samples, row.memory_sum_mib, row.memory_last_mib) == (3, 3 * 2048.0, 2048.0)
    assert (row.memory_total_mib, row.memory_share_max) == (8192.0, 25.0)
    assert (row.power_samples, row.power_sum_w, row.power_last_w) == (3, 1800.0, 600.0)
    assert (row.namespace_id, row.gpu_class_id) == (run.workload.namespace_id, run.workload.gpu_class_id)


@pytest.mark.parametrize(("percent", "bits"), [(4.99, 0), (5.0, 1), (6.0, 1)])
def test_a_minute_is_busy_from_five_percent(run: Run, percent: float, bits: int) -> None:
    ask = FakePrometheus([device(run)], lambda f, _labels, _m: percent if f == "utilisation" else None)
    read_cluster(run.workload.namespace.cluster, ask, at=at(1))
    assert (only().seen_minutes, only().busy_minutes) == (1, bits)
    assert (only().memory_samples, only().memory_last_mib, only().power_samples) == (0, None, 0)


def test_a_minute_is_read_when_it_is_over_and_once(run: Run, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    cluster = run.workload.namespace.cluster
    ask = FakePrometheus([device(run)], busy)
    assert read_cluster(cluster, ask, at=at(1))
    assert [(field, start, end) for field, start, end in ask.asked if field == "power"] == [
        ("power", at(1, 0), at(1, 0))
    ]
    assert len(ask.asked) == 5
    with django_assert_num_queries(1):
        assert not read_cluster(cluster, ask, at=at(1, 59))
        # The minute is over, but its last scrape may not have arrived.
    read_cluster(cluster, ask, at=at(2, 9))
    assert len(ask.asked) == 5
    read_cluster(cluster, ask, at=at(2, 10))
    assert only().seen_minutes == 0b11


def test_what_is_not_measured_is_no_zero(run: Run) -> None:
    ask = FakePrometheus([device(run)], lambda f, labels, m: busy(f, labels, m) if m.minute % 2 else None)
    for minute in range(1, 7):
        read_cluster(run.workload.namespace.cluster, ask, at=at(minute))
    assert only().seen_minutes == 0b101010
    assert only().activity_sum / 3 == 80.0


def test_a_device_without_activity_is_not_seen(run: Run) -> None:
    ask = FakePrometheus([device(run)], lambda f, labels, m: None if f == "utilisation" else busy(f, labels, m))
    read_cluster(run.workload.namespace.cluster, ask, at=at(1))
    assert not RunHour.objects.exists()


def test_minutes_outside_of_the_allocation_are_of_no_run(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    """Before, after, and in parts of a minute."""
    run = held_run(
        namespace_a, a100, alice, NOON + timedelta(minutes=1, seconds=1), NOON + timedelta(minutes=4, seconds=59)
    )
    ask = FakePrometheus([device(run)], busy)
    for minute in range(1, 8):
        read_cluster(namespace_a.cluster, ask, at=at(minute))
    assert only().seen_minutes == 0b1100


def test_a_name_that_is_used_again_is_another_run(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    first = held_run(namespace_a, a100, alice, NOON - HOUR, NOON + 2 * MINUTE, name="train")
    first.workload.deleted_at = first.workload.delete_requested_at = NOON
    first.workload.save()
    second = held_run(namespace_a, a100, alice, NOON + 2 * MINUTE, name="train", origin="other")
    ask = FakePrometheus([device(first), device(first, suffix="zz9zz")], busy)
    read_cluster(namespace_a.cluster, ask, at=at(1))
    read_cluster(namespace_a.cluster, ask, at=at(4))
    found = {row.run_id: row.seen_minutes for row in RunHour.objects.all()}
    assert found == {first.pk: 0b11, second.pk: 0b1100}


def test_workers_are_told_apart_from_names_with_numbers(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    """The pod `a-1-2-xxxxx` is worker 2 of the first run of `a`, or of the second run of `a-1`; while both hold units,
    it is of neither.
    """
    three = {"kind": "job", "options": {"workers": 3}}
    gang = held_run(namespace_a, a100, alice, NOON - HOUR, NOON + 2 * MINUTE, name="a", **three)
    other = held_run(namespace_a, a100, alice, NOON + MINUTE, name="a-1")
    Run.objects.filter(pk=other.pk).update(number=2)
    pods = [device(gang, f"GPU-{index}", index=index) for index in range(3)]
    assert pods[2]["pod"].startswith("a-1-2-")
    ask = FakePrometheus(pods, busy)
    for minute in (1, 2, 3):
        read_cluster(namespace_a.cluster, ask, at=at(minute))
    found = {row.run_id: (row.seen_minutes, row.busy_devices_max) for row in RunHour.objects.all()}
    assert found == {gang.pk: (0b1, 3), other.pk: (0b100, 1)}


@pytest.mark.parametrize(("measured", "seen"), [(4, 0b1), (3, 0)])
def test_a_minute_is_seen_if_all_gpus_are(
    namespace_a: Namespace, a100: GpuClass, alice: User, measured: int, seen: int
) -> None:
    """Idle GPUs of one node say nothing about those of another, whose exporter is away."""
    run = held_run(namespace_a, a100, alice, NOON - HOUR, units=4)
    gpus = [device(run, f"GPU-{number}") for number in range(4)]
    known = {one["UUID"] for one in gpus[:measured]}
    ask = FakePrometheus(gpus, lambda f, labels, _m: 1.0 if f == "utilisation" and labels["UUID"] in known else None)
    read_cluster(namespace_a.cluster, ask, at=at(1))
    assert sum(row.seen_minutes for row in RunHour.objects.all()) == seen


BOTH = {"utilisation": 90.0, "engine": 40.0}


@pytest.mark.parametrize(
    ("fields", "answered", "measure", "percent"),
    [
        ({}, BOTH, "utilisation", 90.0),
        ({}, {"engine": 40.0}, "engine", 40.0),
        (SLICE, BOTH, "engine", 40.0),
        (TIME_SLICED, BOTH, "shared", 90.0),
    ],
)
def test_what_is_measured_depends_on_the_class(
    cluster: Cluster, namespace_a: Namespace, alice: User, fields: Any, answered: Any, measure: str, percent: float
) -> None:
    run = held_run(namespace_a, make.gpu_class(cluster, slug="other", **fields), alice, NOON - HOUR)
    read_cluster(cluster, FakePrometheus([device(run)], lambda f, _labels, _m: answered.get(f)), at=at(1))
    assert (only().measure, only().activity_sum) == (measure, percent)


def test_utilisation_of_a_slice_is_not_measured(cluster: Cluster, namespace_a: Namespace, alice: User) -> None:
    run = held_run(namespace_a, make.gpu_class(cluster, slug="other", **SLICE), alice, NOON - HOUR)
    read_cluster(cluster, FakePrometheus([device(run)], lambda f, _l, _m: {"utilisation": 90.0}.get(f)), at=at(1))
    assert not RunHour.objects.exists()


# ---- trouble ---------------------------------------------------------------------------------------------------------


def test_minutes_of_an_outage_are_read_afterwards(run: Run) -> None:
    cluster = run.workload.namespace.cluster
    ask = FakePrometheus([device(run)], busy)
    read_cluster(cluster, ask, at=at(1))
    ask.raises = PrometheusUnreadable("Prometheus does not respond (too slow).")
    for minute in range(2, 9):
        read_cluster(cluster, ask, at=at(minute))
    assert only().seen_minutes == 0b1
    assert (source().problem, source().problem_since) == ("Prometheus does not respond (too slow).", at(2))
    ask.raises = None
    read_cluster(cluster, ask, at=at(9))
    assert only().seen_minutes == (1 << 9) - 1
    assert (source().problem, source().problem_since, source().missing_since) == ("", None, None)


def test_after_a_long_outage_the_present_is_read_first(run: Run) -> None:
    """Then the past, the oldest first, in a bounded number of queries a minute."""
    cluster = run.workload.namespace.cluster
    AllocationInterval.objects.update(starts_at=NOON - 90 * HOUR)
    ask = FakePrometheus([device(run)], busy)
    read_cluster(cluster, ask, at=at(1))
    later = NOON + 6 * HOUR + timedelta(minutes=30, seconds=12)
    read_cluster(cluster, ask, at=later)
    seen = {row.hour: row.seen_minutes.bit_count() for row in RunHour.objects.all()}
    # The last hour, and two hours from the first missing minute on, 12:01.
    assert seen == {NOON: 60, NOON + HOUR: 60, NOON + 2 * HOUR: 1, NOON + 5 * HOUR: 30, NOON + 6 * HOUR: 30}
    assert (source().missing_since, source().missing_until) == (NOON + timedelta(hours=2, minutes=1), NOON + 5.5 * HOUR)
    before = len(ask.asked)
    read_cluster(cluster, ask, at=later + MINUTE)
    assert len(ask.asked) - before == (1 + PAST_PERIODS) * 5 <= 20
    for number in (2, 3):
        read_cluster(cluster, ask, at=later + number * MINUTE)
    seen = {row.hour: row.seen_minutes.bit_count() for row in RunHour.objects.all()}
    assert seen == {NOON + number * HOUR: 60 for number in range(6)} | {NOON + 6 * HOUR: 33}
    assert source().missing_since is None


def test_minutes_between_two_outages_count_once(run: Run) -> None:
    """What is missing is one period from the first outage to the end of the second: the time between is read again."""
    cluster = run.workload.namespace.cluster
    AllocationInterval.objects.update(starts_at=NOON - 90 * HOUR)
    ask = FakePrometheus([device(run)], busy)
    read_cluster(cluster, ask, at=at(1))
    first, second = NOON + 6 * HOUR + timedelta(seconds=12), NOON + 9 * HOUR + timedelta(seconds=12)
    read_cluster(cluster, ask, at=first)
    assert source().missing_since is not None
    for number in range(12):
        read_cluster(cluster, ask, at=second + number * MINUTE)
    assert source().missing_since is None
    rows = {row.hour: (row.seen_minutes.bit_count(), row.activity_sum) for row in RunHour.objects.all()}
    assert rows == {NOON + number * HOUR: (60, 4800.0) for number in range(9)} | {NOON + 9 * HOUR: (11, 880.0)}


def test_what_prometheus_never_had_stays_unknown(run: Run) -> None:
    cluster = run.workload.namespace.cluster
    ask = FakePrometheus([device(run)], lambda f, labels, m: busy(f, labels, m) if not 3 <= m.minute < 8 else None)
    read_cluster(cluster, ask, at=at(1))
    ask.raises = PrometheusUnreadable("away")
    read_cluster(cluster, ask, at=at(5))
    ask.raises = None
    read_cluster(cluster, ask, at=at(12))
    assert only().seen_minutes == 0b111111111111 & ~0b11111000


def test_an_answer_that_is_too_large_is_asked_for_in_parts(run: Run) -> None:
    cluster = run.workload.namespace.cluster
    ask = FakePrometheus([device(run)], busy)
    read_cluster(cluster, ask, at=at(1))

    def small(query: str, start: datetime, end: datetime) -> Any:
        if end - start > 2 * MINUTE:
            raise AnswerTooLarge("Prometheus responded with more than 48 MiB.")
        return ask(query, start, end)

    for minute in range(11, 22):
        read_cluster(cluster, small, at=at(minute))
    assert only().seen_minutes == (1 << 21) - 1
    assert source().missing_since is None


def test_many_runs_are_read_in_shorter_periods(
    monkeypatch: pytest.MonkeyPatch, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """The newest minutes first: the rest is read as what was missing."""
    runs = [held_run(namespace_a, a100, alice, NOON - 9 * HOUR) for _ in range(4)]
    ask = FakePrometheus([device(one, f"GPU-{one.pk}") for one in runs], busy)
    read_cluster(namespace_a.cluster, ask, at=at(1))
    monkeypatch.setattr(collection, "RUN_MINUTES_MOST", 40)
    read_cluster(namespace_a.cluster, ask, at=at(51))
    assert max(end - start for _field, start, end in ask.asked) == 9 * MINUTE
    assert (source().read_until, source().missing_since, source().missing_until) == (at(51, 0), at(21, 0), at(41, 0))
    read_cluster(namespace_a.cluster, ask, at=at(52))
    assert source().missing_since is None
    assert {row.seen_minutes for row in RunHour.objects.all()} == {(1 << 52) - 1}
    monkeypatch.setattr(collection, "RUN_MINUTES_MOST", 1)
    read_cluster(namespace_a.cluster, ask, at=at(53))
    assert {row.seen_minutes for row in RunHour.objects.all()} == {(1 << 53) - 1}, "at least one minute"


def test_what_is_older_than_prometheus_keeps_is_given_up(run: Run) -> None:
    cluster = run.workload.namespace.cluster
    AllocationInterval.objects.update(starts_at=NOON - 90 * 24 * HOUR)
    ask = FakePrometheus([device(run)], busy)
    read_cluster(cluster, ask, at=at(0))
    TelemetrySource.objects.update(missing_since=NOON - 40 * 24 * HOUR, missing_until=NOON - 20 * 24 * HOUR)
    read_cluster(cluster, ask, at=at(1))
    assert source().missing_since is None


def test_a_failure_in_the_past_leaves_the_present(run: Run) -> None:
    cluster = run.workload.namespace.cluster
    ask = FakePrometheus([device(run)], busy)
    read_cluster(cluster, ask, at=at(1))

    def present_only(query: str, start: datetime, end: datetime) -> Any:
        if end < NOON + 4 * HOUR:
            raise PrometheusUnreadable("Prometheus responded with status 503.")
        return ask(query, start, end)

    read_cluster(cluster, present_only, at=NOON + 5 * HOUR + timedelta(seconds=12))
    assert (source().problem, source().missing_since) == ("", NOON + MINUTE)
    assert RunHour.objects.get(hour=NOON + 4 * HOUR).seen_minutes.bit_count() == 60


def test_a_worker_that_is_slower_than_another_changes_nothing(run: Run) -> None:
    """Its answers are of an older minute, and arrive when the newer one is written."""
    cluster = run.workload.namespace.cluster
    ask = FakePrometheus([device(run)], busy)
    read_cluster(cluster, ask, at=at(1))

    def slowly(query: str, start: datetime, end: datetime) -> Any:
        if source().read_until == at(1, 0):
            read_cluster(cluster, ask, at=at(3))
        return ask(query, start, end)

    read_cluster(cluster, slowly, at=at(2))
    assert (source().read_until, source().missing_since) == (at(3, 0), None)
    assert (only().seen_minutes, only().activity_sum) == (0b111, 240.0)


def test_warnings_of_prometheus_are_kept(run: Run) -> None:
    ask = FakePrometheus([device(run)], busy)
    ask.is_partial = True
    read_cluster(run.workload.namespace.cluster, ask, at=at(1))
    assert source().is_partial
    ask.is_partial = False
    read_cluster(run.workload.namespace.cluster, ask, at=at(2))
    assert not source().is_partial


def test_prometheus_is_asked_also_if_nothing_runs(cluster: Cluster) -> None:
    ask = FakePrometheus([], busy)
    ask.raises = PrometheusUnreadable("away")
    read_cluster(cluster, ask, at=at(1))
    assert source().problem == "away"
    ask.raises = None
    read_cluster(cluster, ask, at=at(2))
    assert (source().problem, len(ask.asked)) == ("", 1)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(looks=st.sets(st.integers(1, 179), max_size=12), away=st.sets(st.integers(1, 179)))
def test_looks_at_any_time_give_the_same_hours(run: Run, looks: set[int], away: set[int]) -> None:
    """`away`: looks that fail. Minutes that are multiples of 11 were not measured."""

    def percent(minute: datetime) -> float:
        return float((minute.minute * 7 + minute.hour) % 100)

    def values(field: str, _labels: dict[str, str], minute: datetime) -> float | None:
        return percent(minute) if field == "utilisation" and minute.minute % 11 else None

    with transaction.atomic():
        cluster, ask = run.workload.namespace.cluster, FakePrometheus([device(run)], values)
        read_cluster(cluster, ask, at=at(0))
        for minute in [*sorted(looks), 180, 181, 182]:
            ask.raises = PrometheusUnreadable("away") if minute in away else None
            read_cluster(cluster, ask, at=at(minute))
        assert source().missing_since is None
        for hour in (NOON, NOON + HOUR, NOON + 2 * HOUR):
            row = RunHour.objects.get(run=run, hour=hour)
            seen = [hour + number * MINUTE for number in range(60) if number % 11]
            assert row.seen_minutes == sum(1 << one.minute for one in seen)
            assert row.busy_minutes == sum(1 << one.minute for one in seen if percent(one) >= 5)
            assert row.activity_sum == pytest.approx(sum(map(percent, seen)))
            assert row.activity_last == percent(seen[-1])
        transaction.set_rollback(True)


# ---- the task --------------------------------------------------------------------------------------------------------


def test_beat_asks_for_it_four_times_a_minute_and_the_task_reads(run: Run, unused_tcp_port: int) -> None:
    [entry] = [one for one in portal_settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == "usage.telemetry.read"]
    assert (entry["schedule"], entry["options"]["queue"]) == (15.0, "background")
    app.autodiscover_tasks(force=True)
    with override_settings(PROMETHEUS=None):
        app.tasks[entry["task"]].run()
    assert not TelemetrySource.objects.exists()
    with override_settings(PROMETHEUS=PrometheusServer(f"http://127.0.0.1:{unused_tcp_port}")):
        app.tasks[entry["task"]].run()
    assert source().problem == "Prometheus does not respond (ConnectionError)."


@pytest.mark.parametrize("number", [2, 40])
def test_the_number_of_queries_does_not_grow(
    namespace_a: Namespace, a100: GpuClass, alice: User, number: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    runs = [held_run(namespace_a, a100, alice, NOON - HOUR) for _ in range(number)]
    ask = FakePrometheus([device(one, f"GPU-{one.pk}") for one in runs], busy)
    read_cluster(namespace_a.cluster, ask, at=at(1))
    with django_assert_num_queries(11):
        read_cluster(namespace_a.cluster, ask, at=at(2))
    assert RunHour.objects.count() == number
    assert len(ask.asked) == 10
