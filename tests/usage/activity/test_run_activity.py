"""What a workload's page and the API say of its GPUs: figures of measured minutes, or why there are none."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import make
from tests.usage.telemetry.rows import MINUTE, SLICE, TIME_SLICED, FakePrometheus, device, held_run
from usage.activity.queries import run_activity
from usage.activity.types import RunActivity
from usage.telemetry.collection import read_cluster
from usage.telemetry.models import TelemetrySource
from usage.telemetry.prometheus import PrometheusUnreadable
from workloads.models import AllocationInterval, Run

HOUR = timedelta(hours=1)


def now() -> datetime:
    """Ten seconds into this minute."""
    return timezone.now().replace(second=10, microsecond=0)


def answer(percent: float = 40.0) -> Any:
    figures = {"utilisation": percent, "engine": percent / 2, "memory_used": 20_480.0, "memory_free": 61_440.0}
    return lambda field, _labels, _minute: figures.get(field)


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    return held_run(namespace_a, a100, alice, now() - 3 * HOUR)


def told(run: Run, at: datetime) -> RunActivity:
    return run_activity(run, run.workload.gpu_class, at=at)


def read(run: Run, at: datetime, *, percent: float = 40.0) -> None:
    read_cluster(run.workload.namespace.cluster, FakePrometheus([device(run)], answer(percent)), at=at)


def test_the_last_minute_and_the_mean(run: Run) -> None:
    at = now()
    read(run, at - MINUTE, percent=40.0)
    read(run, at, percent=3.0)
    found = told(run, at)
    assert found.now is not None
    assert (found.now.activity, found.now.memory_mib, found.now.memory_gib, found.now.power_w) == (
        3.0,
        20_480.0,
        20.0,
        None,
    )
    assert (found.mean, found.minutes, found.busy_minutes) == (21.5, 2, 1)
    assert (found.reason, found.words, found.memory_total_gib, found.memory_share_max) == (
        "",
        "GPU utilisation",
        80.0,
        25.0,
    )
    assert found.has_memory
    assert not found.has_power


def test_hours_without_a_measured_minute_are_missing(run: Run) -> None:
    at = now()
    read(run, at - 2 * HOUR)
    TelemetrySource.objects.update(read_until=(at - MINUTE).replace(second=0), missing_since=None, missing_until=None)
    read(run, at)
    found = told(run, at)
    assert [one.minutes for one in found.hours] == [1, 1]
    assert found.hours[1].hour - found.hours[0].hour == 2 * HOUR


def test_a_stopped_exporter_is_told_within_two_minutes(run: Run) -> None:
    """And never becomes 0."""
    at = now()
    read(run, at)
    silent = FakePrometheus([device(run)], lambda *_: None)
    read_cluster(run.workload.namespace.cluster, silent, at=at + MINUTE)
    found = told(run, at + MINUTE)
    assert found.now is None
    assert "no samples of all its GPUs" in found.reason
    assert found.mean == 40.0


def test_prometheus_that_is_away_is_told_with_its_time(run: Run) -> None:
    at = now()
    read(run, at)
    away = FakePrometheus([], answer())
    away.raises = PrometheusUnreadable("Prometheus does not respond (too slow).")
    read_cluster(run.workload.namespace.cluster, away, at=at + MINUTE)
    found = told(run, at + 2 * MINUTE)
    assert found.now is None
    assert found.reason.startswith("Prometheus could not be read since ")
    assert found.reason.endswith("Prometheus does not respond (too slow).")


def test_a_worker_that_does_not_read_is_told(run: Run) -> None:
    at = now()
    read(run, at)
    found = told(run, at + 10 * MINUTE)
    assert found.now is None
    assert "The worker has not read it." in found.reason


@pytest.mark.parametrize(
    ("fields", "measure", "activity", "words"),
    [
        (SLICE, "engine", 20.0, "activity of the graphics engine; utilisation is not measured"),
        (TIME_SLICED, "shared", 40.0, "of the whole GPU, of all who share it"),
    ],
)
def test_slices_and_shares_say_what_is_measured(
    cluster: Cluster, namespace_a: Namespace, alice: User, fields: Any, measure: str, activity: float, words: str
) -> None:
    run = held_run(namespace_a, make.gpu_class(cluster, slug="part", **fields), alice, now() - HOUR)
    at = now()
    read(run, at)
    found = told(run, at)
    assert found.now is not None
    assert (found.measure, found.now.activity, found.words) == (measure, activity, words)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"vendor": "intel", "resource": "gpu.intel.com/i915", "node_labels": {}}, "of this vendor are not read"),
        ({"vendor": "", "interface": "none", "resource": "", "node_labels": {}}, "Its class has no GPU."),
        ({**TIME_SLICED}, "gives a shared GPU to one of the pods that share it"),
    ],
)
def test_what_is_never_measured_says_why(
    cluster: Cluster, namespace_a: Namespace, alice: User, fields: Any, reason: str
) -> None:
    run = held_run(namespace_a, make.gpu_class(cluster, slug="other", **fields), alice, now() - HOUR)
    at = now()
    read_cluster(cluster, FakePrometheus([], answer()), at=at)
    found = told(run, at)
    assert (found.now, found.hours, found.mean) == (None, (), None)
    assert reason in found.reason


def test_a_run_that_is_new_or_queued_says_so(run: Run) -> None:
    assert "No Prometheus has been read" in told(run, now()).reason
    read_cluster(run.workload.namespace.cluster, FakePrometheus([], answer()), at=now())
    AllocationInterval.objects.update(starts_at=now() - MINUTE)
    assert told(run, now()).reason == "It is measured from its first whole minute."
    AllocationInterval.objects.update(ends_at=now())
    assert told(run, now()).reason == "It holds no units now."


def test_it_takes_three_queries(run: Run, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    read(run, now())
    with django_assert_num_queries(3):
        told(run, now())


def test_the_page_and_the_api_say_the_same(run: Run, alice: User, charlie: User, client: Client) -> None:
    read(run, timezone.now())
    client.force_login(alice)
    path = f"/teams/team-a/workloads/{run.workload.name}"
    assert f'hx-get="{path}/activity"' in client.get(path).content.decode()
    page = client.get(f"{path}/activity").content.decode()
    assert "40 %, 20.0 of 80 GiB GPU memory" in page
    assert 'data-y="40.00"' in page
    found = client.get(f"/api/v1/workloads/{run.workload.name}/activity").json()
    assert (found["now"], found["mean"], found["measure"]) == (
        {"activity": 40.0, "memory_mib": 20480.0, "power_w": None},
        40.0,
        "utilisation",
    )
    assert [(one["minutes"], one["busy_minutes"], one["power_w"]) for one in found["hours"]] == [(1, 1, None)]
    client.force_login(charlie)
    assert client.get(f"{path}/activity").status_code == 404
    assert client.get(f"/api/v1/workloads/{run.workload.name}/activity?team=team-a").status_code == 404
