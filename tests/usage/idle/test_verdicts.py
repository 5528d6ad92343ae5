"""What the task of each minute does: rows, notifications, stops; and what it does not do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Notice, User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.support.rows import running
from tests.usage.idle import rows
from usage.idle import actions, verdicts
from usage.idle.models import IdleRun
from usage.telemetry.models import RunHour
from usage.telemetry.types import MINUTE
from workloads.models import AllocationInterval, NotebookWatch, Run, Workload

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 27, 12, 20, 30, tzinfo=UTC)
READ = NOW.replace(second=0)
HOUR = timedelta(hours=1)
BEGAN = READ - 3 * HOUR


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """Alice's job on 2 units for 2.50 each, which was busy for its first hour and then only kept its memory."""
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="2.5")
    a100.refresh_from_db()
    found = rows.holder(namespace_a, a100, since=BEGAN, by=alice, units=2)
    rows.measured(found, BEGAN, READ, busy={BEGAN + number * MINUTE for number in range(60)}, memory_mib=40_960)
    rows.read(a100.cluster, READ)
    return found


def set_action(action: str, **fields: Any) -> None:
    GpuClass.objects.update(idle_action=action, **fields)


def pass_minutes(run: Run, until: datetime, *, busy: set[datetime] | None = None) -> None:
    """Measures the run until then, and judges at that moment."""
    since = max(hour.hour + hour.seen_minutes.bit_length() * MINUTE for hour in RunHour.objects.filter(run=run))
    rows.measured(run, since, until, busy=busy or set(), memory_mib=40_960)
    rows.read(run.workload.gpu_class.cluster, until)
    verdicts.update_idle_runs(at=until)


def test_its_users_are_told_once_with_evidence_and_cost(run: Run, alice: User) -> None:
    verdicts.update_idle_runs(at=NOW)
    row = IdleRun.objects.get()
    assert (row.run, row.idle_since, row.told_at, row.stops_at) == (run, BEGAN + HOUR, NOW, None)
    assert (row.units, row.minutes, row.seen_minutes, row.memory_mib) == (2, 60, 60, 40_960)
    [mail] = Delivery.objects.all()
    assert (mail.user, mail.subject) == (alice, "The GPUs of train of Team A are idle")
    assert "have not been active since 27 Nov 2026, 10:20 UTC" in mail.body
    assert "60 of the last 60 minutes were measured, each with GPU activity below 5 %, mean 0.4 %" in mail.body
    assert "40.0 GiB of GPU memory held" in mail.body
    assert "It holds 2 units at 5.00 per hour, 10.04 since then." in mail.body
    assert mail.body.endswith("/teams/team-a/workloads/train")
    assert Notice.objects.get().user == alice
    for minute in range(1, 30):
        pass_minutes(run, READ + minute * MINUTE)
    assert Delivery.objects.count() == 1
    assert Event.objects.filter(verb="run.idle_told").count() == 1
    assert IdleRun.objects.get().idle_since == BEGAN + HOUR
    assert Run.objects.get().stop_requested_at is None


def test_a_program_that_ended_is_said_to_have_finished(run: Run) -> None:
    RunHour.objects.update(memory_last_mib=60)
    verdicts.update_idle_runs(at=NOW)
    assert "no GPU memory is held: its program has finished with the GPUs" in Delivery.objects.get().body
    IdleRun.objects.all().delete()
    RunHour.objects.update(memory_last_mib=None)
    verdicts.update_idle_runs(at=NOW)
    assert "GPU memory is unknown" in Delivery.objects.latest("pk").body


def test_one_busy_minute_ends_the_stretch_and_the_next_is_told_anew(run: Run) -> None:
    verdicts.update_idle_runs(at=NOW)
    busy = READ + 5 * MINUTE
    pass_minutes(run, busy + MINUTE, busy={busy})
    assert not IdleRun.objects.exists()
    pass_minutes(run, busy + 60 * MINUTE)
    assert not IdleRun.objects.exists()
    pass_minutes(run, busy + 61 * MINUTE)
    assert IdleRun.objects.get().idle_since == busy + MINUTE
    assert Delivery.objects.count() == 2


def test_a_busy_minute_that_nobody_judged_begins_a_new_stretch(run: Run, alice: User) -> None:
    """The worker was away while it was busy, so that its row is of the stretch before."""
    verdicts.update_idle_runs(at=NOW)
    keep(alice)
    busy = READ + 5 * MINUTE
    pass_minutes(run, busy + 61 * MINUTE, busy={busy})
    row = IdleRun.objects.get()
    assert (row.idle_since, row.told_at, row.kept_until, row.kept_by) == (
        busy + MINUTE,
        busy + 61 * MINUTE,
        None,
        None,
    )
    assert Delivery.objects.count() == 2


def test_a_silent_prometheus_makes_it_unknown_and_ends_nothing(run: Run) -> None:
    set_action("stop")
    verdicts.update_idle_runs(at=NOW)
    stops_at = IdleRun.objects.get().stops_at
    assert stops_at == NOW + timedelta(minutes=10)
    later = NOW + timedelta(minutes=15)
    verdicts.update_idle_runs(at=later)
    row = IdleRun.objects.get()
    assert (row.is_idle, row.judged_at, row.idle_since) == (False, NOW, BEGAN + HOUR)
    assert Run.objects.get().stop_requested_at is None
    pass_minutes(run, READ + 20 * MINUTE)
    row = IdleRun.objects.get()
    assert (row.is_idle, row.stops_at) == (True, READ + 30 * MINUTE), "users see a countdown again"
    assert Delivery.objects.count() == 1
    assert Run.objects.get().stop_requested_at is None
    pass_minutes(run, READ + 30 * MINUTE)
    assert Run.objects.get().stop_requested_at is not None


def test_a_preempted_run_is_judged_by_its_new_allocation_alone(run: Run, namespace_a: Namespace) -> None:
    verdicts.update_idle_runs(at=NOW)
    AllocationInterval.objects.update(ends_at=NOW)
    verdicts.update_idle_runs(at=NOW + MINUTE)
    assert not IdleRun.objects.exists()
    again = READ + 10 * MINUTE
    rows.allocated(run, again)
    rows.measured(run, READ, again + 59 * MINUTE)
    rows.read(namespace_a.cluster, again + 59 * MINUTE)
    verdicts.update_idle_runs(at=again + 59 * MINUTE)
    assert not IdleRun.objects.exists()
    pass_minutes(run, again + 60 * MINUTE)
    assert IdleRun.objects.get().idle_since == again


@pytest.mark.parametrize("end", ["ended", "stopping", "deleted", "off"])
def test_what_ends_is_in_the_list_no_more(run: Run, end: str) -> None:
    verdicts.update_idle_runs(at=NOW)
    if end == "ended":
        Run.objects.update(ended_at=NOW, outcome="stopped")
    elif end == "stopping":
        Run.objects.update(stop_requested_at=NOW)
    elif end == "deleted":
        Workload.objects.update(delete_requested_at=NOW)
    else:
        set_action("off")
    verdicts.update_idle_runs(at=NOW + MINUTE)
    assert not IdleRun.objects.exists()


@pytest.mark.parametrize("reason", ["off", "shared class", "shared figures", "held too short"])
def test_who_is_not_judged(run: Run, reason: str) -> None:
    if reason == "off":
        set_action("off")
    elif reason == "shared class":
        GpuClass.objects.update(sharing="time-slicing", replicas=4, units_per_workload=1)
    elif reason == "shared figures":
        RunHour.objects.update(measure=RunHour.Measure.SHARED)
    else:
        GpuClass.objects.update(idle_minutes=181)
    verdicts.update_idle_runs(at=NOW)
    assert not IdleRun.objects.exists()
    assert not Delivery.objects.exists()


# ---- stop ------------------------------------------------------------------------------------------------------------


def test_it_is_warned_counts_down_and_is_stopped_once(run: Run, alice: User) -> None:
    set_action("stop")
    verdicts.update_idle_runs(at=NOW)
    [warning] = Delivery.objects.all()
    assert warning.subject == "The GPUs of train of Team A are idle; it is stopped at 27 Nov 2026, 12:30 UTC"
    assert "use the GPUs, or keep it once with a reason" in warning.body
    pass_minutes(run, READ + 10 * MINUTE)
    assert Run.objects.get().stop_requested_at is None, "30 seconds are left"
    pass_minutes(run, READ + 11 * MINUTE)
    found = Run.objects.get()
    assert (found.stop_requested_at is not None, found.stop_reason) == (True, "idle")
    assert found.stop_message.startswith("Stopped because its GPUs were idle for 2 h 11 min: 60 of the last 60 minutes")
    assert Workload.objects.get().due_at is not None, "the worker deletes its Job"
    pass_minutes(run, READ + 12 * MINUTE)
    assert [mail.subject for mail in Delivery.objects.order_by("pk")] == [
        warning.subject,
        "train of Team A was stopped because its GPUs were idle",
    ]
    assert Event.objects.filter(verb="run.idle_stopped").count() == 1
    assert not IdleRun.objects.exists()


def test_a_busy_minute_in_the_countdown_saves_it(run: Run) -> None:
    set_action("stop")
    verdicts.update_idle_runs(at=NOW)
    pass_minutes(run, READ + 12 * MINUTE, busy={READ + 11 * MINUTE})
    assert Run.objects.get().stop_requested_at is None
    assert not IdleRun.objects.exists()


def test_a_class_that_stops_no_more_takes_the_countdown_back(run: Run) -> None:
    set_action("stop")
    verdicts.update_idle_runs(at=NOW)
    set_action("tell")
    pass_minutes(run, READ + 20 * MINUTE)
    assert IdleRun.objects.get().stops_at is None
    assert (Delivery.objects.count(), Run.objects.get().stop_requested_at) == (1, None)


def keep(by: User, hours: int = 2, reason: str = "a demo at four") -> IdleRun:
    return actions.keep_idle("team-a", "train", hours=hours, reason=reason, by=Actor(user=by, via="page"))


def test_what_is_kept_stays_for_its_hours_and_is_warned_of_again(run: Run, alice: User) -> None:
    set_action("stop")
    verdicts.update_idle_runs(at=NOW)
    keep(alice)
    kept_until = READ + 2 * HOUR
    IdleRun.objects.update(kept_until=kept_until)
    pass_minutes(run, kept_until - MINUTE)
    row = IdleRun.objects.get()
    assert (row.stops_at, row.kept_reason, row.kept_by) == (None, "a demo at four", alice)
    assert (Delivery.objects.count(), Run.objects.get().stop_requested_at) == (1, None)
    pass_minutes(run, kept_until)
    assert IdleRun.objects.get().stops_at == kept_until + timedelta(minutes=10)
    assert Delivery.objects.count() == 2
    pass_minutes(run, kept_until + 10 * MINUTE)
    assert Run.objects.get().stop_requested_at is not None


def test_it_is_not_stopped_if_it_was_kept_while_it_was_judged(
    run: Run, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_action("stop")
    verdicts.update_idle_runs(at=NOW)
    taken = verdicts._take

    def kept_before(*values: Any) -> None:
        keep(alice)
        IdleRun.objects.update(kept_until=NOW + 5 * HOUR)
        taken(*values)

    monkeypatch.setattr(verdicts, "_take", kept_before)
    pass_minutes(run, READ + 11 * MINUTE)
    assert IdleRun.objects.get().kept_until == NOW + 5 * HOUR
    assert Run.objects.get().stop_requested_at is None


# ---- notebooks -------------------------------------------------------------------------------------------------------


@pytest.fixture
def notebook(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    found = rows.holder(namespace_a, a100, since=BEGAN, by=alice, name="one", kind="notebook")
    rows.measured(found, BEGAN, READ)
    rows.read(a100.cluster, READ)
    return found


def answered(at: datetime, *, used: datetime, computing: int = 0, problem: str = "") -> None:
    NotebookWatch.objects.update(
        asked_at=at, answered_at=at, last_activity=used, problem=problem, evidence={"computing": computing}, due_at=None
    )


def test_a_notebook_is_watched_and_then_has_to_answer(notebook: Run) -> None:
    verdicts.update_idle_runs(at=NOW)
    watch = NotebookWatch.objects.get()
    assert watch.run == notebook
    assert not IdleRun.objects.exists()
    answered(NOW, used=NOW - 2 * HOUR)
    verdicts.update_idle_runs(at=NOW)
    assert IdleRun.objects.get().idle_since == NOW - 2 * HOUR
    assert NotebookWatch.objects.get().due_at is None
    verdicts.update_idle_runs(at=NOW + 2 * MINUTE)
    assert NotebookWatch.objects.get().due_at is not None, "an answer of now is wanted"


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"used": NOW - 2 * HOUR, "computing": 1}, "in use"),
        ({"used": NOW - 50 * MINUTE}, "in use"),
        ({"used": NOW - 2 * HOUR, "problem": "It does not answer."}, "unknown"),
        ({"used": NOW - 2 * HOUR}, "idle"),
    ],
)
def test_a_notebook_that_computes_is_used_or_silent_is_not_idle(
    notebook: Run, answer: dict[str, Any], state: str
) -> None:
    verdicts.watch_notebooks()
    answered(NOW, used=NOW - 2 * HOUR)
    verdicts.update_idle_runs(at=NOW)
    answered(NOW, **answer)
    verdicts.update_idle_runs(at=NOW)
    assert {row.is_idle for row in IdleRun.objects.all()} == {"in use": set(), "unknown": {False}, "idle": {True}}[
        state
    ]


@pytest.mark.parametrize(("fields", "watched"), [({}, 1), ({"idle_action": "off"}, 0)])
def test_only_notebooks_of_a_class_with_an_action_are_watched(
    notebook: Run, run: Run, fields: dict[str, str], watched: int
) -> None:
    GpuClass.objects.update(**fields)
    assert verdicts.watch_notebooks() == watched
    assert verdicts.watch_notebooks() == 0


def test_a_notebook_that_its_users_keep_is_not_stopped(notebook: Run) -> None:
    set_action("stop")
    verdicts.watch_notebooks()
    answered(NOW, used=NOW - 2 * HOUR)
    NotebookWatch.objects.update(kept_until=NOW + HOUR, kept_reason="a demo")
    verdicts.update_idle_runs(at=NOW)
    assert IdleRun.objects.get().stops_at is None
    assert not Delivery.objects.exists()


# ---- cost ------------------------------------------------------------------------------------------------------------


def _queries(at: datetime) -> int:
    with CaptureQueriesContext(connection) as found:
        verdicts.update_idle_runs(at=at)
    return len(found)


def test_a_minute_takes_as_many_queries_with_ten_runs_as_with_a_thousand(
    namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    def add(first: int, last: int) -> None:
        for number in range(first, last):
            workload = running.workload(namespace_a, a100, name=f"w{number}", by=alice, kind="job")
            rows.allocated(workload.runs.get(), BEGAN)
        runs = Run.objects.filter(workload__name__in=[f"w{number}" for number in range(first, last)])
        common: dict[str, Any] = {
            "namespace": namespace_a, "gpu_class": a100, "measure": RunHour.Measure.UTILISATION, "busy_minutes": 0,
            "activity_sum": 1, "activity_max": 1, "busy_devices_max": 0, "seen_minutes": (1 << 60) - 1,
        }  # fmt: skip
        RunHour.objects.bulk_create(
            RunHour(run=one, hour=READ.replace(minute=0) - back * HOUR, **common) for one in runs for back in range(4)
        )

    rows.read(a100.cluster, READ)
    add(0, 10)
    verdicts.update_idle_runs(at=NOW)
    few = _queries(NOW + timedelta(seconds=1))
    assert IdleRun.objects.count() == 10
    add(10, 1000)
    for second in range(2, 13):
        verdicts.update_idle_runs(at=NOW + timedelta(seconds=second))
    assert IdleRun.objects.filter(told_at__isnull=False).count() == 1000, "100 in a pass"
    many = _queries(NOW + timedelta(seconds=20))
    assert few == many <= 8
