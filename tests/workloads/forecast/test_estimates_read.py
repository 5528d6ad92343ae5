"""Estimates: their source, their queries, what page and API show, and what is stored beside the actual start."""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Collection
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Role, User
from catalog.classes.queries import flavor_name
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorWorkload
from cluster.reads.observed import KueueWorkload
from tenants.models import Grant, Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.waiting_runs import NEEDED, mirror_wait
from workloads.core import workload_sql
from workloads.forecast import prediction_log
from workloads.forecast.queries import EstimateAccuracy, estimate_accuracy
from workloads.interruption.queries import ActiveRun
from workloads.models import NotebookWatch, Run, StartPrediction, Workload
from workloads.status import queries
from workloads.status.estimates import queries as estimate_queries
from workloads.status.estimates.estimate import CannotTell, Estimate, EstimateOutcome, Unknown

pytestmark = pytest.mark.django_db
Row = TypeVar("Row")
TOO_LARGE = "insufficient quota for nvidia.com/gpu in flavor a100-1, previously considered podsets requests (0) + current podset request (6) > maximum capacity (4)"  # noqa: E501
TOPOLOGY = 'topology "gpu-portal" allows to fit only 1 out of 2 pod(s)'


@pytest.fixture
def house(team_a: Tenant, cluster: Cluster, a100: GpuClass) -> Tenant:
    """A team with four GPUs granted."""
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    return team_a


def waits(namespace: Namespace, one: GpuClass, by: User, name: str = "waits", text: str = NEEDED, **fields: Any) -> Run:
    found = running.workload(namespace, one, name=name, by=by, **fields)
    mirror_wait(found, text)
    return found.runs.get()


def holds(namespace: Namespace, one: GpuClass, by: User, name: str = "holds", **fields: Any) -> Run:
    """A run that was admitted a moment ago."""
    run = waits(namespace, one, by, name, **fields)
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "", "message": "", "since": None}
    queued = MirrorWorkload.objects.get(job_uid=f"job-{run.workload_id}")
    queued.record = {**queued.record, "conditions": [reserved, {**reserved, "type": "Admitted"}]}
    queued.save()
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(admitted_at=now, started_at=now, requested_at=now)
    return run


def ends(run: Run, minutes: int) -> None:
    Run.objects.filter(pk=run.pk).update(ends_at=timezone.now() + timedelta(minutes=minutes))


def told(name: str = "waits") -> EstimateOutcome | None:
    found = {
        row.workload.name: row
        for row in queries.workload_rows(workload_sql.with_related(Workload.objects.order_by("pk")))
    }
    return found[name].estimate


def minutes_until(found: EstimateOutcome | None) -> tuple[int, int]:
    assert isinstance(found, Estimate)
    now = timezone.now()
    return round((found.earliest - now).total_seconds() / 60), round((found.latest - now).total_seconds() / 60)


def started(namespace: Namespace, one: GpuClass, by: User, *waited_minutes: int) -> None:
    """Ended runs that started an hour ago."""
    began = timezone.now() - timedelta(hours=1)
    for waited in waited_minutes:
        found = running.workload(namespace, one, name=f"past-{waited}", by=by)
        asked = began - timedelta(minutes=waited)
        found.runs.update(
            requested_at=asked, admitted_at=began, started_at=began, ended_at=timezone.now(), outcome="succeeded"
        )


def test_the_run_time_of_what_runs_is_the_range(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    ends(holds(namespace_a, a100, alice, units=4), 60)
    waits(namespace_a, a100, alice)
    first, last = minutes_until(told())
    assert 58 <= first <= 60
    assert 65 <= last <= 66
    assert told("holds") is None


def test_an_idle_notebook_ends_when_people_were_told_and_what_stops_at_once(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    run = holds(namespace_a, a100, alice, units=4)
    ends(run, 600)
    waits(namespace_a, a100, alice)
    now = timezone.now()
    NotebookWatch.objects.create(run=run, warned_at=now, stops_at=now + timedelta(minutes=30))
    assert minutes_until(told())[1] in (35, 36)
    Run.objects.filter(pk=run.pk).update(stop_requested_at=now)
    found = told()
    assert isinstance(found, Estimate)
    assert found.is_open
    assert minutes_until(found)[1] in (5, 6)


def test_without_an_end_nobody_can_tell_and_five_starts_can(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    holds(namespace_a, a100, alice, units=4)
    waits(namespace_a, a100, alice)
    started(namespace_a, a100, alice, 30, 40, 50, 60)
    found = told()
    assert isinstance(found, CannotTell)
    assert found.because == ("1 workload ahead has no time limit; too little history (4 of 5 starts)")
    other = make.tenant(namespace_a.cluster, slug="team-b").namespaces.get()
    started(other, a100, alice, 90)
    found = told()
    assert isinstance(found, Estimate)
    assert found.basis == "1st in your team's queue; based on 5 starts of the last 30 days that waited as long"
    assert minutes_until(found)[1] in (90, 91)


def test_the_line_is_kueues_own_and_of_the_class(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, cluster: Cluster, alice: User
) -> None:
    ends(holds(namespace_a, a100, alice, units=4), 60)
    first = waits(namespace_a, a100, alice, "first", units=4)
    waits(namespace_a, make.gpu_class(cluster, slug="h100", name="H100"), alice, "elsewhere")
    waits(namespace_a, a100, alice)
    found = told()
    assert isinstance(found, CannotTell)
    assert "1 workload ahead has no time limit" in found.because
    Run.objects.filter(pk=first.pk).update(spec={**first.spec, "run_minutes": 30})
    found = told()
    assert isinstance(found, Estimate)
    assert found.basis.startswith("2nd in your team's queue")
    assert minutes_until(found)[1] in (100, 101)


def test_a_grant_that_begins_later_lets_start_what_is_too_large_now_behind_those_before_it(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    ends(holds(namespace_a, a100, alice, units=4), 600)
    waits(namespace_a, a100, alice, "first")
    waits(namespace_a, a100, alice, text=TOO_LARGE, units=6)
    assert told() == CannotTell(Unknown.TOO_LARGE, "it requests 6 GPUs, and your team may use at most 4 GPUs")
    begins = timezone.now() + timedelta(minutes=30)
    boost = make.grant(house, a100, units=6, kind=Grant.Kind.BOOST, since=begins)
    assert minutes_until(told())[1] in (605, 606)
    Grant.objects.filter(pk=boost.pk).update(units=7)
    assert minutes_until(told())[1] in (35, 36)


def test_what_was_queued_between_two_reads_breaks_nothing(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page read the positions after the Workloads, and one came in between."""
    between = waits(namespace_a, a100, alice, "between")
    waits(namespace_a, a100, alice, text=TOO_LARGE, units=6)
    known = estimate_queries._known

    def without(alive: Collection[ActiveRun]) -> tuple[dict[str, Run], dict[str, KueueWorkload]]:
        of_job, in_kueue = known(alive)
        return of_job, {uid: one for uid, one in in_kueue.items() if uid != f"job-{between.workload_id}"}

    monkeypatch.setattr(estimate_queries, "_known", without)
    assert told() == CannotTell(Unknown.TOO_LARGE, "it requests 6 GPUs, and your team may use at most 4 GPUs")


def test_work_that_was_not_started_here_holds_units_without_an_end(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    run = holds(namespace_a, a100, alice, units=4)
    ends(run, 60)
    waits(namespace_a, a100, alice, units=2)
    assert isinstance(told(), Estimate)
    queued = MirrorWorkload.objects.get(job_uid=f"job-{run.workload_id}")
    record = {**queued.record, "flavors": {a100.resource: flavor_name(a100)}, "usage": {a100.resource: 3}}
    names = {"name": "foreign", "uid": "foreign", "job_uid": "foreign"}
    MirrorWorkload.objects.create(
        cluster_id=queued.cluster_id, namespace=queued.namespace, resource_version=1, created_at=queued.created_at,
        record=record, **names,
    )  # fmt: skip
    found = told()
    assert isinstance(found, CannotTell)
    assert "1 workload ahead has no time limit" in found.because


def test_a_node_that_fits_and_what_the_queue_has_not_looked_at(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    waits(namespace_a, a100, alice, text=TOPOLOGY, units=2)
    waits(namespace_a, a100, alice, "new", text="")
    found, new = told(), told("new")
    assert isinstance(found, CannotTell)
    assert found.because.startswith("no single node has 2 GPUs free, and it is unknown when one will")
    assert new == CannotTell(Unknown.UNSEEN, "the queue has not reported yet what it waits for")


def test_a_held_class_opens_when_it_is_said(house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    waits(namespace_a, a100, alice)
    now = timezone.now()
    GpuClass.objects.filter(pk=a100.pk).update(held_since=now, held_reason="new cooling")
    assert told() == CannotTell(Unknown.HELD, "scheduling of its class is paused without an end time")
    GpuClass.objects.filter(pk=a100.pk).update(held_until=now + timedelta(minutes=90))
    first, last = minutes_until(told())
    assert first in (89, 90)
    assert last in (95, 96)


def test_it_costs_one_query_whatever_waits_and_three_where_others_hold_units(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as seen:
            queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
        return len(seen)

    ends(holds(namespace_a, a100, alice, units=4), 60)
    waits(namespace_a, a100, alice, text="")
    without = cost()
    for number in range(3):
        waits(namespace_a, a100, alice, f"more-{number}")
    assert cost() == without + 1
    MirrorWorkload.objects.filter(record__conditions__1__type="Admitted").update(job_uid="by-hand")
    assert cost() == without + 3


def test_page_list_and_api_say_it(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    client.force_login(alice)
    ends(holds(namespace_a, a100, alice, units=4), 60)
    waits(namespace_a, a100, alice)
    places = ("/teams/team-a/workloads/waits", "/teams/team-a/workloads", "/teams/team-a")
    for place in places:
        text = html.unescape(client.get(place).content.decode())
        assert re.search(r'<time [^>]*data-when="minute">[^<]+</time> to <time [^>]*data-when="minute">', text), place
        assert "1st in your team's queue; based on the known end times of your team's runs" in text
    body = client.get("/api/v1/workloads/waits?team=team-a").json()
    assert set(body["estimate"]) == {"earliest", "latest", "basis"}
    assert client.get("/api/v1/workloads/holds?team=team-a").json()["estimate"] is None
    Run.objects.update(ends_at=None)
    for place in places:
        assert "No start estimate" in client.get(place).content.decode()
    body = client.get("/api/v1/workloads/waits?team=team-a").json()
    assert set(body["estimate"]) == {"cannot_tell"}


# ---- stored predictions ----------------------------------------------------------------------------------------------


@pytest.fixture
def waiting(house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """A queued run whose latest estimated start is 65 minutes from now."""
    ends(holds(namespace_a, a100, alice, units=4), 60)
    run = waits(namespace_a, a100, alice)
    Run.objects.filter(pk=run.pk).update(requested_at=timezone.now() - timedelta(minutes=2))
    return run


def later(minutes: int) -> None:
    """Moves the stored predictions that far into the past."""
    for row in StartPrediction.objects.all():
        ago = timedelta(minutes=minutes)
        StartPrediction.objects.filter(pk=row.pk).update(made_at=row.made_at - ago, checked_at=row.checked_at - ago)


def test_one_row_a_changed_prediction_and_ten_minutes(waiting: Run) -> None:
    assert prediction_log.log_predictions() == 1
    kept = StartPrediction.objects.get()
    found = told()
    assert isinstance(found, Estimate)
    assert (kept.run, kept.earliest, kept.latest, kept.basis) == (waiting, found.earliest, found.latest, "ends")
    ends(Run.objects.get(workload__name="holds"), 300)
    assert prediction_log.log_predictions() == 0
    later(10)
    assert prediction_log.log_predictions() == 1
    assert StartPrediction.objects.count() == 2
    later(10)
    assert prediction_log.log_predictions() == 1
    assert StartPrediction.objects.count() == 2
    assert prediction_log.log_predictions() == 0


def test_that_nobody_can_tell_is_kept_and_twenty_rows_are_all(waiting: Run) -> None:
    holder = Run.objects.get(workload__name="holds")
    Run.objects.filter(pk=holder.pk).update(ends_at=None)
    prediction_log.log_predictions()
    assert StartPrediction.objects.values_list("earliest", "latest", "basis").get() == (None, None, "none")
    for number in range(25):
        ends(holder, 60 * (number + 1))
        later(10)
        prediction_log.log_predictions()
    assert StartPrediction.objects.filter(run=waiting).count() == 20


@pytest.mark.parametrize("change", ["admitted_at", "stop_requested_at"])
def test_what_does_not_wait_for_its_first_start_is_left_alone(waiting: Run, change: str) -> None:
    Run.objects.filter(pk=waiting.pk).update(**{change: timezone.now()})
    assert prediction_log.log_predictions() == 0


def test_runs_that_already_started_are_not_read(waiting: Run) -> None:
    """Of 2,001 that have not ended one waits."""
    work, now = waiting.workload, timezone.now()
    others = [copied(work, pk=None, name=f"runs-{number}", origin=f"runs-{number}") for number in range(2000)]
    made = Workload.objects.bulk_create(others)
    Run.objects.bulk_create(copied(waiting, pk=None, workload=one, admitted_at=now) for one in made)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE workloads_run, workloads_workload")
    assert "using run_waiting" in prediction_log._due(now).explain()
    assert prediction_log.log_predictions() == 1


def copied(row: Row, **values: object) -> Row:
    other = copy.copy(row)
    for name, value in values.items():
        setattr(other, name, value)
    return other


def test_old_ones_go(waiting: Run) -> None:
    prediction_log.log_predictions()
    later(60 * 24 * 91)
    Run.objects.filter(pk=waiting.pk).update(admitted_at=timezone.now())
    prediction_log.log_predictions()
    assert not StartPrediction.objects.exists()


def test_a_start_is_compared_with_the_first_range_that_was_told(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    assert estimate_accuracy(a100).sentence == ""
    started(namespace_a, a100, alice, 30, 40, 50, 60)
    at = timezone.now() - timedelta(hours=1)
    inside, before, after, untold = Run.objects.order_by("workload__name")

    def tell(run: Run, first: int | None, last: int | None, *, ago: int = 20) -> None:
        moments = (None if minutes is None else at + timedelta(minutes=minutes) for minutes in (first, last))
        earliest, latest = moments
        StartPrediction.objects.create(
            run=run, made_at=at - timedelta(minutes=ago), earliest=earliest, latest=latest,
            basis="none" if first is None else "ends",
        )  # fmt: skip

    tell(inside, None, None, ago=25)
    tell(inside, -5, 5)
    tell(inside, 60, 70, ago=5)
    tell(before, 5, 9)
    tell(after, -9, -5)
    tell(after, -5, 5, ago=-5)
    tell(untold, None, None)
    assert estimate_accuracy(a100) == EstimateAccuracy(starts=3, inside=1, before=1)
    assert estimate_accuracy(a100).sentence == (
        "1 of 3 starts in the last 30 days was within the first estimated range; 1 earlier, 1 later."
    )
    Run.objects.update(started_at=at - timedelta(days=31))
    assert estimate_accuracy(a100).starts == 0


def test_operators_see_it_on_the_class(waiting: Run, a100: GpuClass, alice: User, client: Client) -> None:
    at = timezone.now()
    StartPrediction.objects.create(run=waiting, made_at=at, earliest=at, latest=at + timedelta(hours=1), basis="ends")
    Run.objects.filter(pk=waiting.pk).update(started_at=at + timedelta(minutes=1))
    page = f"/catalog/{a100.slug}"
    said = "1 of 1 start in the last 30 days was within the first estimated range"
    client.force_login(alice)
    assert "Start estimates" not in client.get(page).content.decode()
    assert client.get(page).status_code == 200
    client.force_login(make.user("olga", roles=[Role.OPERATOR]))
    assert said in client.get(page).content.decode()
