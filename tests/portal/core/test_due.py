"""The Due protocol on real PostgreSQL: what is asserted is the row, never the calls."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.db import connection
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from cluster.models import Cluster
from portal.core import due
from portal.core.postgresql.clock import SetBack
from tenants.models import Namespace
from tests.plugin import process_environment
from tests.support.rows import make
from tests.support.rows.due_rows import due_row, in_s

TABLE = "tenants.namespace"


@pytest.fixture
def row(cluster: Cluster) -> Namespace:
    """A namespace that has been due for a minute."""
    return due_row(cluster, "team-a")


def claimed(row: Namespace) -> due.Claim[Namespace]:
    found = due.claim(Namespace)
    assert found is not None
    assert found.row.pk == row.pk
    return found


def lapse(row: Namespace) -> None:
    Namespace.objects.filter(pk=row.pk).update(leased_until=Now() - timedelta(seconds=1))


def make_due(row: Namespace) -> None:
    Namespace.objects.filter(pk=row.pk).update(due_at=Now() - timedelta(seconds=1))


# ---- claiming a due row --------------------------------------------------------------------------------------------


def test_a_claim_leases_the_oldest_due_row_and_counts_the_attempt(cluster: Cluster, settings: LazySettings) -> None:
    due_row(cluster, "younger", since_s=5)
    older = due_row(cluster, "older", since_s=50)

    first = claimed(older)

    older.refresh_from_db()
    assert (first.attempts, older.attempts) == (1, 1)
    assert settings.LEASE_S - 5 < in_s(older.leased_until) <= settings.LEASE_S


def test_what_was_asked_for_comes_before_what_was_woken_or_failed(cluster: Cluster) -> None:
    woken, failed, asked = (due_row(cluster, name, since_s=since) for name, since in (("b", 90), ("c", 80), ("a", 5)))
    Namespace.objects.filter(pk=woken.pk).update(observed_generation=1)
    Namespace.objects.filter(pk=failed.pk).update(attempts=2)

    assert [claimed(row).row.pk for row in (asked, woken, failed)] == [asked.pk, woken.pk, failed.pk]


@pytest.mark.django_db
@pytest.mark.parametrize("model", due.due_models(), ids=lambda model: model.__name__)
def test_every_due_table_has_the_index_of_what_was_asked_for(model: type[due.Due]) -> None:
    """A Meta of its own that does not inherit Due's loses it without a word."""
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, model._meta.db_table)
    assert f"{model._meta.app_label}_{model._meta.model_name}_asked" in constraints


def test_a_killed_worker_has_counted_its_attempt(row: Namespace) -> None:
    for _ in range(3):
        claimed(row)
        lapse(row)  # the worker died: neither finish nor fail

    assert claimed(row).attempts == 4


def test_nothing_is_claimed_twice_and_nothing_before_its_time(cluster: Cluster, row: Namespace) -> None:
    due_row(cluster, "tomorrow", since_s=-3600)
    make.tenant(cluster, slug="at-rest")  # due_at NULL

    claimed(row)

    assert due.claim(Namespace) is None


def test_a_lapsed_lease_is_taken_over(row: Namespace) -> None:
    claimed(row)
    lapse(row)

    assert claimed(row).attempts == 2


# ---- finishing a row -----------------------------------------------------------------------------------------------


def test_finish_records_the_generation_read_and_looks_again_after_resync(
    row: Namespace, settings: LazySettings
) -> None:
    due.touch(Namespace, row.pk)
    run = claimed(row)

    is_due_again = due.finish(run)

    row.refresh_from_db()
    assert not is_due_again
    assert (row.observed_generation, row.generation) == (2, 2)
    assert (row.attempts, row.leased_until, row.error_code) == (0, None, "")
    assert settings.RESYNC_S - 5 < in_s(row.due_at) <= settings.RESYNC_S


def test_a_touch_during_a_run_is_not_lost(row: Namespace) -> None:
    run = claimed(row)
    due.touch(Namespace, row.pk)

    is_due_again = due.finish(run)

    row.refresh_from_db()
    assert is_due_again
    assert (row.observed_generation, row.generation) == (1, 2)
    assert claimed(row).generation == 2


def test_a_wake_during_a_run_is_not_lost(row: Namespace) -> None:
    """The run may have read the world before it changed."""
    run = claimed(row)

    woken = due.wake(Namespace, [row.pk])

    assert woken == 1
    assert due.finish(run) is True
    assert claimed(row).generation == 1


def test_a_wake_takes_the_rows_of_a_queryset(row: Namespace) -> None:
    run = claimed(row)

    woken = due.wake(Namespace, Namespace.objects.filter(name=row.name).values_list("pk", flat=True))

    assert woken == 1
    assert due.finish(run) is True
    # Django knows without a query that these are none.
    assert due.wake(Namespace, Namespace.objects.filter(pk__in=[]).values_list("pk", flat=True)) == 0


def test_a_wake_leaves_a_waiting_row_its_place_in_the_queue(row: Namespace) -> None:
    before = row.due_at

    woken = due.wake(Namespace, [row.pk])

    row.refresh_from_db()
    assert (woken, row.due_at) == (0, before)


def test_one_column_for_both_would_lose_the_touch(row: Namespace) -> None:
    """Why there are two: written as one column (due again at the end of the lease), finish overwrites a touch."""

    def set_due(expression: Any) -> None:
        Namespace.objects.filter(pk=row.pk).update(due_at=expression)

    set_due(Now() + timedelta(seconds=60))  # claim: the lease in due_at
    set_due(Now())  # touch: what is wanted changes during the run
    set_due(Now() + timedelta(seconds=600))  # finish: settled, look again after resync
    row.refresh_from_db()
    assert in_s(row.due_at) > 500, "the touch is forgotten for ten minutes"

    make_due(row)
    run = claimed(row)
    due.touch(Namespace, row.pk)
    due.finish(run)
    row.refresh_from_db()
    assert in_s(row.due_at) <= 0, "with two columns it is due at once"


def test_a_worker_whose_lease_lapsed_changes_nothing(row: Namespace) -> None:
    zombie = claimed(row)
    lapse(row)
    owner = claimed(row)
    row.refresh_from_db()
    before = {name: getattr(row, name) for name in DUE_COLUMNS}

    assert due.finish(zombie) is False
    due.fail(zombie, code="late", text="The zombie speaks.")

    row.refresh_from_db()
    assert {name: getattr(row, name) for name in DUE_COLUMNS} == before
    due.finish(owner)
    row.refresh_from_db()
    assert (row.leased_until, row.observed_generation) == (None, 1)


DUE_COLUMNS = [field.name for field in due.Due._meta.get_fields()]


def test_the_clock_is_part_of_due_at(row: Namespace) -> None:
    """A grant that starts in 90 s is looked at in 90 s, not after resync; one next year does not postpone resync."""
    now = Namespace.objects.annotate(now=Now()).get(pk=row.pk).now

    due.finish(claimed(row), due.Outcome(clock=now + timedelta(seconds=90)))
    row.refresh_from_db()
    assert 85 < in_s(row.due_at) <= 90

    make_due(row)
    due.finish(claimed(row), due.Outcome(clock=now + timedelta(days=365)))
    row.refresh_from_db()
    assert 590 < in_s(row.due_at) <= 600

    make_due(row)
    due.finish(claimed(row), due.Outcome(clock=now - timedelta(seconds=1)))
    row.refresh_from_db()
    assert in_s(row.due_at) <= 0, "a boundary that passed during the run is due at once"


def test_a_row_at_rest_is_not_looked_at_until_it_is_touched(row: Namespace) -> None:
    due.finish(claimed(row), due.Outcome(rests=True))
    row.refresh_from_db()
    assert row.due_at is None
    assert due.claim(Namespace) is None

    due.touch(Namespace, row.pk)
    run = claimed(row)
    due.touch(Namespace, row.pk)
    due.finish(run, due.Outcome(rests=True))

    assert claimed(row).generation == 3, "a touch during the run counts more than rest"


# ---- failures of a row ---------------------------------------------------------------------------------------------


def test_a_failure_is_recorded_and_backs_off(row: Namespace) -> None:
    waits = []
    for _ in range(9):
        make_due(row)
        due.fail(claimed(row), code="cluster_unavailable", text="The cluster did not answer. " * 20)
        row.refresh_from_db()
        waits.append(in_s(row.due_at))

    for wait, expected in zip(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300], strict=True):
        assert 0.75 * expected < wait <= 1.2 * expected
    assert row.error_code == "cluster_unavailable"
    assert len(row.error_text) == 300
    assert (row.attempts, row.leased_until, row.observed_generation) == (9, None, 0)


def test_rows_are_due_when_what_they_failed_for_is_over(cluster: Cluster, row: Namespace) -> None:
    due.fail(claimed(row), code="cluster_unavailable", text="The cluster did not answer.")
    for slug, code in (("settled", ""), ("refused", "refused")):
        make.tenant(cluster, slug=slug)
        later = Now() + timedelta(seconds=250)
        Namespace.objects.filter(name=slug).update(due_at=later, error_code=code)

    assert due.wake_failed("cluster_unavailable") == 1

    again = claimed(row)
    assert (again.attempts, again.row.error_code) == (2, "cluster_unavailable"), "it is no first attempt"
    assert due.claim(Namespace) is None
    assert due.wake_failed("unexpected") == 0


def test_a_failure_waits_as_long_as_the_server_asked(row: Namespace) -> None:
    def reconcile(row: Namespace, deadline: due.Deadline) -> due.Outcome:
        raise due.TryLater("cluster_unavailable", "Too many requests.", after_s=40)

    due.run_claimed(claimed(row), reconcile)

    row.refresh_from_db()
    assert 35 < in_s(row.due_at) <= 40


def test_a_failure_keeps_a_newer_touch(row: Namespace) -> None:
    run = claimed(row)
    due.touch(Namespace, row.pk)

    due.fail(run, code="cluster_unavailable", text="Later.")

    assert claimed(row).generation == 2


def test_a_failure_does_not_postpone_the_clock(row: Namespace) -> None:
    """A grant ends when it ends, whatever else the cluster refuses."""
    now = Namespace.objects.annotate(now=Now()).get(pk=row.pk).now

    def reconcile(row: Namespace, deadline: due.Deadline) -> due.Outcome:
        raise due.TryLater("refused", "Somebody else's.", clock=now + timedelta(seconds=2))

    due.run_claimed(claimed(row), reconcile)

    row.refresh_from_db()
    assert row.error_code == "refused"
    assert in_s(row.due_at) <= 2


def test_success_forgets_the_failures(row: Namespace) -> None:
    due.fail(claimed(row), code="cluster_unavailable", text="Later.")
    make_due(row)

    due.finish(claimed(row))

    row.refresh_from_db()
    assert (row.attempts, row.error_code, row.error_text) == (0, "", "")


# ---- processing, sweep and owners ----------------------------------------------------------------------------------


def test_work_drains_the_table_and_one_poisonous_row_does_not_stop_it(cluster: Cluster) -> None:
    poison = due_row(cluster, "poison", since_s=100)
    wanting = due_row(cluster, "wanting", since_s=50)
    good = due_row(cluster, "good")

    def reconcile(row: Namespace, deadline: due.Deadline) -> due.Outcome:
        if row.pk == poison.pk:
            raise ZeroDivisionError
        if row.pk == wanting.pk:
            raise due.TryLater("terminating", "The old namespace is still going away.")
        return due.Outcome(again_in_s=30)

    assert due.drain(Namespace, reconcile) == 3

    for row in (poison, wanting, good):
        row.refresh_from_db()
    assert (poison.error_code, wanting.error_code, good.error_code) == ("unexpected", "terminating", "")
    assert "ZeroDivisionError" in poison.error_text
    assert 25 < in_s(good.due_at) <= 30


def test_no_row_is_begun_so_late_that_the_task_is_killed(settings: LazySettings, row: Namespace) -> None:
    settings.TASK_LIMIT_S = settings.RECONCILE_BUDGET_S + settings.KUBE_TIMEOUT_S + 1

    assert due.drain(Namespace, lambda row, deadline: due.SETTLED) == 0


@pytest.mark.django_db(transaction=True)
def test_a_row_does_not_wait_for_its_lease_when_the_database_is_back(cluster: Cluster) -> None:
    """PostgreSQL ends all sessions, and refuses new ones for a while."""
    row, database = due_row(cluster, "team-b"), connection.ops.quote_name(connection.settings_dict["NAME"])
    with psycopg.connect(process_environment()["DATABASE_URL"], autocommit=True, dbname="postgres") as other:
        back = threading.Timer(1.5, other.execute, [f"ALTER DATABASE {database} ALLOW_CONNECTIONS true"])

        def reconcile(row: Namespace, deadline: due.Deadline) -> due.Outcome:
            other.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
            back.start()
            row.refresh_from_db()
            raise AssertionError("unreachable")

        try:
            due.run_claimed(claimed(row), reconcile)
        finally:
            back.join()

    row.refresh_from_db()
    assert (row.leased_until, row.error_text) == (None, "The database was not available.")
    assert in_s(row.due_at) <= 6


def test_a_reconcile_that_used_up_its_budget_writes_nothing_more(settings: LazySettings, row: Namespace) -> None:
    settings.RECONCILE_BUDGET_S = -1

    due.drain(Namespace, lambda row, deadline: deadline.check() or due.SETTLED)

    row.refresh_from_db()
    assert row.error_code == "out_of_time"


def test_the_sweep_finds_rows_whose_hint_was_lost(row: Namespace) -> None:
    assert TABLE in due.sweep()

    claimed(row)
    assert TABLE not in due.sweep(), "somebody is on it"

    lapse(row)
    assert TABLE in due.sweep(), "that somebody died"

    due.finish(claimed(row))
    assert TABLE not in due.sweep()


@pytest.mark.django_db
def test_a_sweep_that_finds_nothing_is_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    """Every few seconds it is most of what a portal at rest does."""
    with django_assert_num_queries(1):
        due.sweep()


def test_rows_are_due_again_when_the_clock_was_set_back_by_an_hour(
    cluster: Cluster, row: Namespace, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was due at ten is not due at nine; a lease that should end in a minute would end in an hour."""
    leased = due_row(cluster, "team-b")
    in_an_hour = Now() + timedelta(hours=1)
    monkeypatch.setattr(due, "_clock_of_database", clock := SetBack())
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    assert clock.seconds(now + timedelta(hours=1)) == 0.0
    Namespace.objects.filter(pk=row.pk).update(due_at=in_an_hour, attempts=3, error_code="x")
    Namespace.objects.filter(pk=leased.pk).update(due_at=in_an_hour, leased_until=in_an_hour)

    assert TABLE in due.sweep()

    claimed(row)
    leased.refresh_from_db()
    assert in_s(leased.leased_until) <= settings.LEASE_S
    assert in_s(leased.due_at) <= 0
    assert TABLE not in due.sweep()


def test_a_clock_that_runs_or_is_set_forward_was_not_set_back() -> None:
    clock, at = SetBack(), datetime.now(UTC)
    found = [clock.seconds(at + timedelta(seconds=s)) for s in (0, 1, 3600, 3598, 3590, 3590, 0)]
    assert [round(one) for one in found] == [0, 0, 0, 0, 8, 0, 3590]


def test_overdue_is_the_age_of_the_oldest_row_that_waits(cluster: Cluster, row: Namespace) -> None:
    due_row(cluster, "younger", since_s=5)
    assert 60 <= due.overdue_s()[TABLE] < 70

    claimed(row)
    assert 5 <= due.overdue_s()[TABLE] < 15
    assert due.overdue_s()["accounts.delivery"] == 0.0


def test_owners_are_woken_by_their_label_and_forged_labels_are_ignored(row: Namespace) -> None:
    due.finish(claimed(row))

    forged = ("", "nonsense", "no.such.1", "accounts.user.1", f"{TABLE}.x", f"{TABLE}.99999999999", f"{TABLE}.{2**63}")
    due.wake_owners([due.owner_label(row), *forged])

    row.refresh_from_db()
    assert in_s(row.due_at) <= 0
    assert row.generation == 1


def test_a_row_with_something_on_its_way_does_not_pass_for_settled(row: Namespace) -> None:
    due.touch(Namespace, row.pk)
    due.finish(claimed(row), due.Outcome(again_in_s=3, is_applied=False))
    row.refresh_from_db()
    assert row.observed_generation < row.generation
    assert (row.leased_until, row.error_code) == (None, "")
