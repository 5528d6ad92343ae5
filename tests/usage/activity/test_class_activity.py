"""What was provided, held and busy of classes by day: compared with sums of single intervals and of teams."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import ClassAccess, Namespace, Tenant
from tests.support.rows import make
from tests.usage.activity.test_team_activity import measured
from tests.usage.telemetry.rows import TIME_SLICED, held_run
from usage.activity import queries
from usage.activity.queries import class_activity, cluster_activity, team_activity
from usage.activity.types import ClassActivity, ClassDay
from usage.samples.models import CapacityInterval
from usage.telemetry.class_hours import sum_up
from usage.telemetry.models import RunHour, TelemetrySource
from workloads.models import AllocationInterval, Run

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
FIRST = MIDNIGHT - 29 * DAY


def of(*classes: GpuClass, at: datetime = NOW) -> list[ClassActivity]:
    return queries._of_classes(classes[0].cluster_id, classes, at=at)


def summed(cluster: Cluster) -> None:
    sum_up(cluster.pk, {row.hour for row in RunHour.objects.all()})


def provided(gpu_class: GpuClass, units: int, since: datetime, until: datetime) -> None:
    CapacityInterval.objects.create(gpu_class=gpu_class, units=units, starts_at=since, ends_at=until)


@pytest.fixture
def other(cluster: Cluster) -> Namespace:
    return make.tenant(cluster, slug="other", namespace="other").namespaces.get()


def test_days_are_sums_of_all_teams(namespace_a: Namespace, other: Namespace, a100: GpuClass, alice: User) -> None:
    first = held_run(namespace_a, a100, alice, NOW - DAY - 3 * HOUR, NOW - DAY + 12 * HOUR, units=2)
    second = held_run(other, a100, alice, NOW - 2 * HOUR)
    measured(first, NOW.replace(minute=0) - DAY, minutes=60, percent=50)
    measured(second, NOW.replace(minute=0), minutes=30, percent=80)
    provided(a100, 8, MIDNIGHT - DAY + 6 * HOUR, MIDNIGHT + HOUR)
    summed(namespace_a.cluster)
    [found] = of(a100)
    assert found.days == (
        ClassDay(MIDNIGHT - DAY, Decimal(23), Decimal(8 * 18), Decimal(18), 2.0, pytest.approx(1.0)),
        ClassDay(MIDNIGHT, Decimal(9), Decimal(8), Decimal(1), 0.5, pytest.approx(0.4)),
    )
    assert (found.held, found.provided, found.measured) == (32.0, 152.0, 2.5)
    assert found.busy_percent == pytest.approx(100 * 1.4 / 2.5)


def test_what_was_not_recorded_is_unknown_and_what_was_not_held_is_0(a100: GpuClass) -> None:
    provided(a100, 8, MIDNIGHT - 3 * DAY, MIDNIGHT - 2 * DAY)
    [found] = of(a100)
    assert [(one.day, one.held, one.provided) for one in found.days] == [(MIDNIGHT - 3 * DAY, 0, 8 * 24)]
    assert (found.busy_percent, found.measured) == (None, 0)


def test_a_day_that_is_held_but_not_recorded_has_no_provided_units(
    namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    held_run(namespace_a, a100, alice, NOW - HOUR)
    [found] = of(a100)
    [day] = found.days
    assert (day.held, day.provided, day.recorded_hours, found.provided) == (1, None, 0, None)


def test_the_last_number_of_units_holds_until_now(a100: GpuClass) -> None:
    provided(a100, 4, MIDNIGHT, NOW - MINUTE)
    [[day]] = [one.days for one in of(a100)]
    assert (day.provided, day.recorded_hours) == (4 * Decimal("15.5"), Decimal("15.5"))  # type: ignore[union-attr]
    [[day]] = [one.days for one in of(a100, at=NOW + HOUR)]
    assert day.recorded_hours == pytest.approx(Decimal(929) / 60)  # type: ignore[union-attr]


hours = st.integers(-35 * 24 * 4, 16 * 4).map(lambda quarters: MIDNIGHT + quarters * HOUR / 4)
runs = st.tuples(hours, st.none() | st.integers(1, 24 * 12 * 4), st.integers(1, 8), st.booleans(), st.booleans())


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    held=st.lists(runs, max_size=5),
    capacity=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 200), st.integers(0, 9)), max_size=4),
    figures=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 799), st.integers(1, 60), st.integers(0, 100))),
)
def test_days_are_those_of_the_teams(
    namespace_a: Namespace, other: Namespace, a100: GpuClass, alice: User, held: Any, capacity: Any, figures: Any
) -> None:
    """Held and measured: sums of the teams' days, which are read otherwise. Provided: each interval with each day."""
    with transaction.atomic():
        cluster = namespace_a.cluster
        second = make.gpu_class(cluster, slug="second")
        made = [
            held_run(other if is_other else namespace_a, second if is_second else a100, alice, since,
                     None if quarters is None else min(NOW, since + quarters * HOUR / 4), units=units)
            for since, quarters, units, is_other, is_second in held if since < NOW
        ]  # fmt: skip
        measure(made, figures)
        since, known = FIRST - 5 * DAY, []
        for gap, length, units in capacity:
            since += gap * HOUR
            known.append((units, since, since + length * HOUR))
            provided(a100, *known[-1])
            since += length * HOUR
        summed(cluster)
        found = {(one.slug, day.day): day for one in of(a100, second) for day in one.days}
        teams = [*team_activity(namespace_a, at=NOW), *team_activity(other, at=NOW)]
        for key in {*found, *((one.gpu_class, one.day) for one in teams)}:
            theirs = [one for one in teams if (one.gpu_class, one.day) == key]
            assert found[key].held == pytest.approx(sum(one.held for one in theirs))
            assert found[key].measured == pytest.approx(sum(one.measured for one in theirs))
            assert found[key].busy == pytest.approx(sum(one.busy for one in theirs))
        for number in range(30):
            day, until = FIRST + number * DAY, min(NOW, FIRST + (number + 1) * DAY)
            parts = [(units, overlap(since, ends, day, until)) for units, since, ends in known]
            recorded = sum((hours for _, hours in parts), Decimal(0))
            one = found.get((a100.slug, day))
            assert (one.recorded_hours if one else 0) == pytest.approx(recorded)  # type: ignore[union-attr]
            expected = sum(units * hours for units, hours in parts) if recorded else None
            assert (one.provided if one else None) == pytest.approx(expected)  # type: ignore[union-attr]
        transaction.set_rollback(True)


def measure(made: list[Run], figures: Any) -> None:
    """A figure of an hour that a run did not hold is left out, as telemetry does."""
    for place, hour, minutes, percent in figures:
        if place >= len(made):
            continue
        run, moment = made[place], FIRST - 3 * DAY + hour * HOUR
        held = AllocationInterval.objects.get(run=run)
        if held.starts_at <= moment and moment + HOUR <= (held.ends_at or NOW):
            RunHour.objects.filter(run=run, hour=moment).delete()
            measured(run, moment, minutes=minutes, percent=percent)


def overlap(since: datetime, until: datetime, day: datetime, end: datetime) -> Decimal:
    until = NOW if until >= NOW - 3 * MINUTE else until
    return max(Decimal(0), Decimal((min(until, end) - max(since, day)).total_seconds()) / 3600)


# ---- what is not measured -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"vendor": "", "interface": "none", "resource": "", "node_labels": {}}, "The class has no GPU."),
        ({"vendor": "intel", "resource": "gpu.intel.com/i915", "node_labels": {}}, "of this vendor are not read"),
        (TIME_SLICED, "the whole GPU, of all who share it"),
    ],
)
def test_what_is_never_measured_says_why(
    cluster: Cluster, namespace_a: Namespace, alice: User, fields: Any, reason: str
) -> None:
    one = make.gpu_class(cluster, slug="never", **fields)
    run = held_run(namespace_a, one, alice, NOW - HOUR)
    TelemetrySource.objects.create(cluster=cluster, read_until=NOW)
    measured(run, NOW.replace(minute=0), minutes=30, percent=90, measure="shared")
    summed(cluster)
    [found] = of(one)
    assert reason in found.reason
    assert (found.held, found.measured, found.busy_percent, found.read_until) == (1, 0, None, None)


def test_prometheus_that_is_away_is_told(cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    held_run(namespace_a, a100, alice, NOW - HOUR)
    assert "No Prometheus has been read" in of(a100)[0].reason
    TelemetrySource.objects.create(cluster=cluster, read_until=NOW)
    assert "There are no samples of its GPUs" in of(a100)[0].reason
    assert "The worker has not read it." in of(a100, at=NOW + 10 * MINUTE)[0].reason
    TelemetrySource.objects.update(problem="Prometheus does not respond.", problem_since=NOW)
    assert of(a100)[0].reason.endswith("Prometheus does not respond.")


def test_a_class_of_which_nothing_was_held_is_not_called_unmeasured(cluster: Cluster, a100: GpuClass) -> None:
    TelemetrySource.objects.create(cluster=cluster, read_until=NOW)
    provided(a100, 8, MIDNIGHT, NOW)
    assert of(a100)[0].reason == ""


# ---- who sees it -----------------------------------------------------------------------------------------------------


@pytest.fixture
def used(other: Namespace, a100: GpuClass, bob: User) -> Run:
    """A run of a team that neither Alice nor Charlie is in, in an hour of which the last minute is not bridged."""
    hour = timezone.now().replace(minute=0, second=0, microsecond=0) - 2 * HOUR
    run = held_run(other, a100, bob, hour, hour + HOUR, name="secret-training")
    measured(run, hour, minutes=60, percent=25)
    summed(other.cluster)
    TelemetrySource.objects.create(cluster=other.cluster, read_until=hour + HOUR)
    provided(a100, 8, hour, hour + HOUR)
    return run


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_page_of_a_class_shows_all_teams_without_names(used: Run, a100: GpuClass, charlie: User) -> None:
    client = signed_in(charlie)
    path = f"/catalog/{a100.slug}"
    assert f'hx-get="{path}/activity"' in client.get(path).content.decode()
    page = client.get(f"{path}/activity").content.decode()
    assert "1 unit-hours held, 8 provided (in 1 h). 0 of 1 measured unit-hours were busy (25 %)" in page
    assert "Measured until" in page
    found = client.get(f"/api/v1/classes/{a100.slug}/activity")
    [day] = found.json()["days"]
    assert (day["held"], day["provided"], day["recorded_hours"], day["measured"], day["busy"]) == (1, 8, 1, 1, 0.25)
    assert (found.json()["reason"][:6], found.json()["read_until"] is None) == ("Promet", False)
    for text in (page, found.content.decode()):
        assert not {"secret-training", "other", "Bob"} & {*text.replace('"', " ").replace(">", " ").split()}


def test_a_class_that_is_hidden_is_hidden_here(
    used: Run, a100: GpuClass, team_a: Tenant, alice: User, charlie: User, olga: User
) -> None:
    ClassAccess.objects.create(gpu_class=a100, tenant=team_a)
    GpuClass.objects.filter(pk=a100.pk).update(visibility=GpuClass.Visibility.NAMED)
    for path in (f"/catalog/{a100.slug}/activity", f"/api/v1/classes/{a100.slug}/activity"):
        assert [signed_in(one).get(path).status_code for one in (alice, charlie, olga)] == [200, 404, 200]


def test_the_page_of_the_cluster_shows_it_to_those_who_see_all_teams(
    used: Run, a100: GpuClass, alice: User, olga: User
) -> None:
    client = signed_in(olga)
    assert 'hx-get="/cluster/activity"' in client.get("/cluster").content.decode()
    page = client.get("/cluster/activity").content.decode()
    assert f"<b>{a100.slug}</b>: 1 unit-hours held, 8 provided (in 1 h)." in page
    [found] = client.get("/api/v1/operators/activity").json()
    assert (found["gpu_class"], found["days"][0]["provided"]) == (a100.slug, 8)
    assert "activity" not in signed_in(alice).get("/cluster").content.decode()
    for path in ("/cluster/activity", "/api/v1/operators/activity"):
        assert signed_in(alice).get(path).status_code == 404


@pytest.mark.parametrize("number", [1, 6])
def test_the_number_of_queries_does_not_grow(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User, number: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:  # fmt: skip
    for place in range(number):
        held_run(namespace_a, make.gpu_class(cluster, slug=f"c{place}"), alice, NOW - HOUR)
    held_run(namespace_a, a100, alice, timezone.now() - HOUR)
    with django_assert_num_queries(3):
        assert a100.slug in {one.slug for one in cluster_activity(cluster)}
    by = Actor(user=alice, via="page")
    with django_assert_num_queries(4):
        assert class_activity(by, a100.slug).held == pytest.approx(1, abs=0.01)
