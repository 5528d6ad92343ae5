"""Peak and mean of the observed use, wait times, and GPU-hours of runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tests.support.rows import make, running
from tests.support.rows.usage import held
from usage.gpu_hours.month import month_figures
from usage.gpu_hours.queries import MemberHours, hours_by_member
from usage.samples.models import UsageHour, UsageSample
from usage.samples.queries import Usage, classes_used, usage_of
from usage.waits.queries import WaitStatistics, waits_of
from workloads.models import Run, Workload

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SINCE = AT - timedelta(hours=10)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def seen(gpu_class: GpuClass, hour: datetime, minutes: int = 60) -> None:
    UsageHour.objects.create(
        cluster=gpu_class.cluster, hour=hour, minutes=minutes, last_minute=hour + (minutes - 1) * MINUTE
    )


def used(namespace: Namespace, gpu_class: GpuClass, hour: datetime, *, peak: int, total: int) -> None:
    UsageSample.objects.create(
        namespace=namespace, gpu_class=gpu_class, hour=hour, units_max=peak, units_sum=total, samples=60
    )


def of(tenant: Tenant, *classes: GpuClass) -> list[Usage]:
    found = usage_of(tenant, classes, since=SINCE, at=AT)
    return [found[one.pk] for one in classes]


def run(namespace: Namespace, gpu_class: GpuClass, by: User, *, units: int = 1, **times: datetime | None) -> Run:
    """A run of its own workload; `times` are columns of the Run."""
    number = Workload.objects.count()
    found = running.workload(namespace, gpu_class, name=f"w{number}", by=by, units=units)
    over = {"outcome": "succeeded"} if times.get("ended_at") else {}
    Run.objects.filter(workload=found).update(**times, **over)
    return held(found.runs.get())


# ---- peak and mean -----------------------------------------------------------------------------------------------


def test_a_mean_divides_by_the_minutes_that_were_seen_idle_ones_too(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace
) -> None:
    for number in range(5):
        seen(a100, SINCE + number * HOUR)
    used(namespace_a, a100, SINCE, peak=8, total=300)
    used(namespace_a, a100, SINCE + 2 * HOUR, peak=3, total=150)
    assert of(team_a, a100) == [Usage(peak=8, mean=1.5, seen_share=0.5, seen_since=SINCE)]


def test_a_cluster_that_was_never_seen_is_unknown_and_an_unused_class_is_zero(a100: GpuClass, team_a: Tenant) -> None:
    assert of(team_a, a100) == [Usage(None, None, 0.0, None)]
    seen(a100, AT - HOUR)
    assert of(team_a, a100) == [Usage(0, 0.0, 0.1, AT - HOUR)]


def test_what_is_older_and_what_is_another_teams_is_left_out(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace
) -> None:
    other = make.tenant(a100.cluster, slug="team-b").namespaces.get()
    for hour in (SINCE - HOUR, SINCE):
        seen(a100, hour)
        used(other, a100, hour, peak=16, total=960)
    used(namespace_a, a100, SINCE - HOUR, peak=9, total=540)
    used(namespace_a, a100, SINCE, peak=1, total=60)
    [found] = of(team_a, a100)
    assert (found.peak, found.mean) == (1, 1.0)


def test_usage_of_many_classes_takes_two_queries(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, django_assert_num_queries: Any
) -> None:
    classes = [a100, *(make.gpu_class(a100.cluster, slug=f"c{number}") for number in range(5))]
    seen(a100, SINCE)
    for one in classes:
        used(namespace_a, one, SINCE, peak=2, total=60)
    with django_assert_num_queries(2):
        found = usage_of(team_a, classes, since=SINCE, at=AT)
    assert {one.mean for one in found.values()} == {1.0}


# ---- queue times -------------------------------------------------------------------------------------------------


def test_the_median_is_of_those_that_were_given_quota_the_share_of_all(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User
) -> None:
    start = AT - HOUR
    for seconds in (10, 30, 300):
        run(namespace_a, a100, alice, requested_at=start, admitted_at=start + timedelta(seconds=seconds))
    # Still waiting, given up after a while, requested a moment ago, requested long ago.
    run(namespace_a, a100, alice, requested_at=start)
    run(namespace_a, a100, alice, requested_at=start, ended_at=start + 5 * MINUTE)
    run(namespace_a, a100, alice, requested_at=AT - timedelta(seconds=20))
    run(namespace_a, a100, alice, requested_at=SINCE - HOUR, admitted_at=AT)
    found = waits_of(team_a, [a100], since=SINCE, at=AT)[a100.pk]
    assert found == WaitStatistics(runs=6, waited=3, median_s=30.0)
    assert found.share == 0.5


def test_where_nothing_queues_the_start_ends_the_wait(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User
) -> None:
    run(namespace_a, a100, alice, requested_at=AT - HOUR, started_at=AT - HOUR + 2 * MINUTE)
    assert waits_of(team_a, [a100], since=SINCE, at=AT) == {a100.pk: WaitStatistics(1, 1, 120.0)}


def test_without_runs_no_wait_is_known(a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User) -> None:
    other = make.gpu_class(a100.cluster, slug="other")
    stranger = make.tenant(a100.cluster, slug="team-b").namespaces.get()
    run(stranger, a100, alice, requested_at=AT - HOUR, admitted_at=AT)
    run(namespace_a, other, alice, requested_at=AT - HOUR, admitted_at=AT)
    found = waits_of(team_a, [a100], since=SINCE, at=AT)
    assert found == {a100.pk: WaitStatistics(0, 0, None)}
    assert found[a100.pk].share is None


# ---- GPU-hours ---------------------------------------------------------------------------------------------------


def test_gpu_hours_are_weight_times_units_times_running_time_within_the_period(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, bob: User
) -> None:
    slice_ = make.gpu_class(a100.cluster, slug="slice", weight="0.2500")
    # From before the period until after its first hour; still running; never started; ended before the period.
    run(namespace_a, a100, alice, units=4, started_at=SINCE - 5 * HOUR, ended_at=SINCE + HOUR)
    run(namespace_a, slice_, bob, units=2, started_at=AT - 3 * HOUR)
    run(namespace_a, a100, bob, units=8, requested_at=AT - 9 * HOUR)
    run(namespace_a, a100, bob, units=8, started_at=SINCE - 2 * HOUR, ended_at=SINCE - HOUR)
    assert hours_by_member(team_a, since=SINCE, at=AT) == [
        MemberHours(alice.pk, "Alice", 4.0),
        MemberHours(bob.pk, "Bob", 1.5),
    ]


@pytest.mark.parametrize(("weight", "units", "gpus"), [("0.1429", 7, 1), ("0.1333", 15, 2), ("0.0333", 30, 1)])
def test_the_slices_of_whole_gpus_are_whole_gpus_for_all_hours(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, weight: str, units: int, gpus: int
) -> None:
    """Seven times 0.1429 is more than one: in 400 hours that were 400.12 GPU-hours."""
    replicas = 4 if weight == "0.0333" else 1
    shared = {"sharing": "time-slicing", "replicas": replicas, "units_per_workload": 1} if replicas > 1 else {}
    slice_ = make.gpu_class(a100.cluster, slug="slice", partition="1g.10gb", weight=weight, **shared)
    run(namespace_a, slice_, alice, units=units, started_at=AT - 400 * HOUR)
    assert hours_by_member(team_a, since=AT - 400 * HOUR, at=AT) == [MemberHours(alice.pk, "Alice", 400.0 * gpus)]
    month = month_figures(namespace_a, at=AT)
    assert (month.team.whole, month.team.parts) == (0.0, 400.0 * gpus)


@pytest.mark.parametrize("count", [1, 12])
def test_queries_do_not_grow_with_runs(
    a100: GpuClass,
    team_a: Tenant,
    namespace_a: Namespace,
    alice: User,
    django_assert_num_queries: Any,
    count: int,
) -> None:
    for _ in range(count):
        run(namespace_a, a100, alice, requested_at=AT - HOUR, admitted_at=AT, started_at=AT - HOUR)
    with django_assert_num_queries(2):
        waits_of(team_a, [a100], since=SINCE, at=AT)
        hours_by_member(team_a, since=SINCE, at=AT)


# ---- classes with usage ------------------------------------------------------------------------------------------


def test_classes_that_are_held_were_used_or_are_worked_with(
    a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User
) -> None:
    held, was_used, worked, _unknown = (
        make.gpu_class(a100.cluster, slug=slug) for slug in ("held", "used", "worked", "x")
    )
    make.grant(team_a, held, units=2, since=AT - HOUR)
    make.grant(team_a, a100, units=2, since=AT - 9 * HOUR, until=AT - HOUR)
    used(namespace_a, was_used, SINCE, peak=1, total=1)
    running.workload(namespace_a, worked, by=alice)
    assert list(classes_used(team_a, since=SINCE, at=AT)) == [held, was_used, worked]
