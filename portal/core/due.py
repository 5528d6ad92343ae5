"""Due rows: pending work is stored in columns, not in messages. A lost task, worker or Redis costs seconds, never work.

`due_at` is the time of the row's next reconcile. `leased_until` is the end of the lease of the worker that holds it.
Actions `touch` a row when its desired state changes, the watcher `wake`s it when the cluster changed, and a task
`claim`s the oldest due row with SKIP LOCKED and ends with `finish` or `fail`. Both check the lease of the claim, so a
worker whose lease has expired changes nothing. Two columns are needed: with a single column, the end of a reconcile
would overwrite a touch that happened during it. All comparisons use the database's clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import structlog
from django.apps import apps
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, models, transaction
from django.db.models.functions import Now

from portal.core.hints import PEOPLE, worker_hint
from portal.core.postgresql.clock import SetBack
from portal.core.sql import any_of, columns, instance, is_key

log = structlog.get_logger(__name__)
ERROR_TEXT_LIMIT = 300
# After many failed attempts.
LONGEST_WAIT_S = 300.0
DATABASE_AGAIN_S = 0.5
_DUE_AND_FREE = "due_at <= statement_timestamp() AND (leased_until IS NULL OR leased_until <= statement_timestamp())"


class Due(models.Model):
    generation = models.BigIntegerField(default=1, editable=False)
    observed_generation = models.BigIntegerField(default=0, editable=False)
    due_at = models.DateTimeField(null=True, blank=True, db_default=Now(), db_index=True, editable=False)
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)
    attempts = models.PositiveIntegerField(default=0, editable=False)
    error_code = models.CharField(max_length=60, blank=True, default="", editable=False)
    error_text = models.CharField(max_length=ERROR_TEXT_LIMIT, blank=True, default="", editable=False)

    # The worker queue that drains this table. Users wait for the work in "people".
    queue = PEOPLE
    # False: the watcher has no right to wake its rows.
    is_in_cluster = True
    # The column of a row's team, in tables that one team alone may fill with rows: `claim` takes turns between teams.
    turns_by = ""

    class Meta:
        abstract = True
        indexes = [
            # For the first subquery of `claim`. The index stays small, however many rows are due.
            models.Index(
                fields=["due_at"],
                condition=models.Q(generation__gt=models.F("observed_generation"), attempts=0),
                name="%(app_label)s_%(class)s_asked",
            )
        ]


Row = TypeVar("Row", bound=Due)
# The team whose row this process claimed last, for each table. A worker has one thread; lost with the process, it costs
# nobody more than a turn.
_served: dict[type[Due], int] = {}


@dataclass(frozen=True)
class Claim(Generic[Row]):
    """A row that this worker holds until `leased_until`, with `generation` and `due_at` as read by the claim."""

    row: Row
    generation: int
    due_at: datetime
    leased_until: datetime
    attempts: int

    @property
    def model(self) -> type[Row]:
        return type(self.row)


class TryLater(Exception):
    """A reconciler raises this when it could not finish. The error is recorded on the row and retried with back-off.

    `clock`: as in Outcome. The desired state changes by itself at that time, whatever failed. `after_s`: no attempt
    makes sense before.
    """

    def __init__(self, code: str, text: str, *, clock: datetime | None = None, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.clock = clock
        self.after_s = after_s


@dataclass(frozen=True)
class Outcome:
    """Result of a reconcile: the row is due in `again_in_s` seconds (None: RESYNC_S) or at `clock`, whichever is first.

    `clock`: the next time at which the desired state changes by itself. `rests`: nothing is left to do and nothing
    outside can change that, so the row is not due until it is touched. `is_applied`: False while a change is still in
    progress, so that the row does not count as settled.
    """

    again_in_s: float | None = None
    clock: datetime | None = None
    rests: bool = False
    is_applied: bool = True


SETTLED = Outcome()
DONE = Outcome(rests=True)
# Consecutive keys times this are spread evenly over a period, however many there are.
_GOLDEN_RATIO = 0.6180339887498949


def until_turn_s(pk: int, period: timedelta, *, at: datetime) -> float:
    """Seconds until the row's turn in the period after `at`, more than 0 and at most the period. A row has the same
    turn in each period, so rows that were woken together are not due together again. Pure.
    """
    period_s = period.total_seconds()
    turn_s = pk * _GOLDEN_RATIO % 1 * period_s
    return period_s - (at.timestamp() - turn_s) % period_s


def table_label(model: type[Due]) -> str:
    return model._meta.label_lower


def owner_label(row: Due) -> str:
    """Value of the Kubernetes label `gpu-portal/owner`: the only link from an object to its row."""
    return f"{table_label(type(row))}.{row.pk}"


def touch(model: type[Due], pk: int) -> None:
    """The desired state has changed: new generation, due now. Call it inside the transaction of the change."""
    model._base_manager.filter(pk=pk).update(generation=models.F("generation") + 1, due_at=Now())
    worker_hint(table_label(model), queue=model.queue)


def wake(model: type[Due], pks: Iterable[int]) -> int:
    """The cluster may have changed: due now, same generation. Call it after the observed change is committed.

    Rows that are due and not leased are left unchanged: a worker will claim them anyway. A leased row is made due
    again, because the change may have come after its worker read the state. Inside a transaction, all given rows stay
    locked until its end: otherwise a worker could claim a row, not see the changes that are about to be committed, and
    not return to the row.
    """
    # SQL text: Django needs longer to compose these statements than PostgreSQL to answer them.
    table = connection.ops.quote_name(model._meta.db_table)
    wanted, parameters = any_of(pks)
    lock = f"SELECT id FROM {table} WHERE id = ANY({wanted}) ORDER BY id FOR NO KEY UPDATE"
    update = f"UPDATE {table} SET due_at = statement_timestamp() WHERE id = ANY(%s) AND ({_DUE_AND_FREE}) IS NOT TRUE"
    # Inside an open transaction its own end releases the locks; a savepoint would only add two statements.
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(lock, parameters)
        if not (locked := [pk for (pk,) in cursor.fetchall()]):
            return 0
        cursor.execute(update, [locked])
        woken: int = cursor.rowcount
    if woken:
        worker_hint(table_label(model), queue=model.queue)
    return woken


def wake_failed(code: str) -> int:
    """What the last attempts of these rows in the cluster failed for is over. Returns how many were made due. A small
    query for each table, with an index: no row waits longer than LONGEST_WAIT_S after a failure.
    """
    woken = 0
    for model in (one for one in due_models() if one.is_in_cluster):
        waits = models.Q(due_at__gt=Now(), due_at__lte=Now() + timedelta(seconds=1.2 * LONGEST_WAIT_S))
        failed = list(model._base_manager.filter(waits, error_code=code).values_list("pk", flat=True))
        woken += wake(model, failed) if failed else 0
    return woken


def begin_again(model: type[Due]) -> None:
    """Everything may have changed: all rows that would be due at some time are due now, as at a first attempt."""
    with transaction.atomic(savepoint=False):
        rows = model._base_manager.filter(due_at__isnull=False)
        wake(model, rows.values_list("pk", flat=True))
        failed = rows.filter(models.Q(attempts__gt=0) | ~models.Q(error_code=""))
        failed.update(attempts=0, error_code="", error_text="")


def wake_owners(owners: Iterable[str]) -> None:
    """Wake the rows that owner labels name. Labels without a Due table (of an old version, or forged) are ignored."""
    by_model: dict[type[Due], set[int]] = {}
    for owner in owners:
        app_and_model, _, pk = owner.rpartition(".")
        try:
            model = apps.get_model(app_and_model)
        except (LookupError, ValueError):
            continue
        if issubclass(model, Due) and is_key(pk):
            by_model.setdefault(model, set()).add(int(pk))
    for model, pks in by_model.items():
        wake(model, pks)


def claim(model: type[Row]) -> Claim[Row] | None:
    """Lease and return the table's oldest due row that no worker holds, or None. Counts the attempt now: a killed task
    could not count it later.

    A new generation that no worker has tried yet comes before rows that were only woken: a user waits for it, and
    thousands of rows may be woken at once. For the same reason it is one statement, and one round trip.

    With `turns_by`, such rows are taken from the team after the one that this process served last, and the oldest of
    that team: however many rows a team has, another team's row waits for one row of each team at most.
    """
    table = connection.ops.quote_name(model._meta.db_table)
    turn = f"{model.turns_by} <= %s, {model.turns_by}," if model.turns_by else ""
    served = [_served.get(model, 0)] if model.turns_by else []
    statement = f"""
        UPDATE {table} SET leased_until = statement_timestamp() + make_interval(secs => %s), attempts = attempts + 1
         WHERE id = coalesce(
               (SELECT id FROM {table} WHERE generation > observed_generation AND attempts = 0 AND {_DUE_AND_FREE}
                 ORDER BY {turn} due_at LIMIT 1 FOR UPDATE SKIP LOCKED),
               (SELECT id FROM {table} WHERE {_DUE_AND_FREE}
                 ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED))
        RETURNING {columns(model)}"""
    with connection.cursor() as cursor:
        cursor.execute(statement, [settings.LEASE_S, *served])
        found = cursor.fetchone()
    if found is None:
        return None
    row = instance(model, iter(found))
    assert row.due_at is not None
    assert row.leased_until is not None
    if model.turns_by:
        _served[model] = getattr(row, model.turns_by)
    return Claim(row, row.generation, row.due_at, row.leased_until, row.attempts)


def finish(claimed: Claim[Row], outcome: Outcome = SETTLED) -> bool:
    """Store a successful reconcile and release the lease. Returns whether the row is already due again.

    A `due_at` that a touch or wake wrote after the claim stays. With an expired lease nothing changes: returns False.
    """
    model = claimed.model
    table = connection.ops.quote_name(model._meta.db_table)
    statement = f"""
        UPDATE {table} SET leased_until = NULL, attempts = 0, error_code = '', error_text = '',
               observed_generation = greatest(observed_generation, %s),
               due_at = CASE WHEN due_at IS DISTINCT FROM %s OR generation <> %s THEN due_at
                             WHEN %s THEN NULL
                             ELSE least(statement_timestamp() + make_interval(secs => %s), %s) END
         WHERE id = %s AND leased_until = %s
        RETURNING due_at <= statement_timestamp()"""
    wait_s = settings.RESYNC_S if outcome.again_in_s is None else outcome.again_in_s
    observed = claimed.generation if outcome.is_applied else 0
    as_read = [claimed.due_at, claimed.generation]
    ours = [claimed.row.pk, claimed.leased_until]
    return _guarded(statement, [observed, *as_read, outcome.rests, wait_s, outcome.clock, *ours])


def fail(claimed: Claim[Row], *, code: str, text: str, clock: datetime | None = None, after_s: float = 0.0) -> None:
    """Record a failed reconcile on the row and release the lease. The row is due again in min(5·2^(attempts-1),
    LONGEST_WAIT_S) s ± 20 %, not before `after_s`, or at `clock` if that is earlier. A `due_at` that a touch or wake
    wrote after the claim stays.
    """
    table = connection.ops.quote_name(claimed.model._meta.db_table)
    statement = f"""
        UPDATE {table} SET leased_until = NULL, error_code = %s, error_text = %s,
               due_at = CASE WHEN due_at IS NOT DISTINCT FROM %s
                             THEN least(statement_timestamp() + make_interval(
                                        secs => greatest(%s * (0.8 + 0.4 * random()), %s)), %s)
                             ELSE due_at END
         WHERE id = %s AND leased_until = %s
        RETURNING due_at <= statement_timestamp()"""
    wait_s = min(5.0 * 2 ** min(claimed.attempts - 1, 10), LONGEST_WAIT_S)
    told = [code, text[:ERROR_TEXT_LIMIT]]
    _guarded(statement, [*told, claimed.due_at, wait_s, after_s, clock, claimed.row.pk, claimed.leased_until])


def _guarded(statement: str, parameters: list[Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found = cursor.fetchone()
    return bool(found and found[0])


class Deadline:
    """Time budget of one reconcile, checked before every write. It is shorter than the lease, so that a worker whose
    lease has expired writes nothing.
    """

    def __init__(self) -> None:
        self._ends = time.monotonic() + settings.RECONCILE_BUDGET_S

    def check(self) -> None:
        if time.monotonic() > self._ends:
            raise TryLater("out_of_time", f"Not finished within {settings.RECONCILE_BUDGET_S} s; it continues shortly.")


def drain(model: type[Row], reconcile: Callable[[Row, Deadline], Outcome], *, for_s: float | None = None) -> int:
    """Drain the table: claim, reconcile, finish or fail. Returns the number of claimed rows.

    No row is claimed after `for_s` seconds. The default leaves time within the task limit for one whole reconcile and
    its last Kubernetes call: the row of a killed task stays leased until the lease ends.
    Sends another hint when the time ends before the table is empty. An unexpected exception is recorded on the row like
    any other failure and logged with its traceback: one faulty row must not stop the table.
    """
    if for_s is None:
        for_s = settings.TASK_LIMIT_S - settings.RECONCILE_BUDGET_S - settings.KUBE_TIMEOUT_S - 1
    stop_at = time.monotonic() + for_s
    looked_at = 0
    while time.monotonic() < stop_at:
        claimed = claim(model)
        if claimed is None:
            return looked_at
        looked_at += 1
        run_claimed(claimed, reconcile)
    worker_hint(table_label(model), queue=model.queue)
    return looked_at


def run_claimed(claimed: Claim[Row], reconcile: Callable[[Row, Deadline], Outcome]) -> None:
    try:
        _reconcile(claimed, reconcile)
    except (OperationalError, InterfaceError) as error:
        if connection.in_atomic_block:
            raise
        log.warning("database_lost", row=owner_label(claimed.row), error=type(error).__name__)
        _fail_when_database_is_back(claimed)


def _fail_when_database_is_back(claimed: Claim[Row]) -> None:
    """Otherwise the row would wait for the end of its lease. This process can do nothing else without a database; the
    task limit ends its wait.
    """
    while True:
        connection.close()
        try:
            fail(claimed, code="unexpected", text="The database was not available.")
        except (OperationalError, InterfaceError):
            time.sleep(DATABASE_AGAIN_S)
        else:
            return


def _reconcile(claimed: Claim[Row], reconcile: Callable[[Row, Deadline], Outcome]) -> None:
    try:
        outcome = reconcile(claimed.row, Deadline())
    except TryLater as later:
        fail(claimed, code=later.code, text=later.text, clock=later.clock, after_s=later.after_s)
    except Exception as error:
        log.exception("reconcile_failed", row=owner_label(claimed.row))
        fail(claimed, code="unexpected", text=f"{type(error).__name__}; see the worker log for details.")
    else:
        finish(claimed, outcome)


def due_models() -> list[type[Due]]:
    return [model for model in apps.get_models() if issubclass(model, Due)]


# Each process of a worker has its own: it finds only what happens between two of its sweeps.
_clock_of_database = SetBack()


def sweep() -> list[str]:
    """Send a hint for every table that has a due row that no worker holds. After the clock of the database was set back
    by an hour, rows that are due would wait for an hour.
    """
    now, is_due = _of_due_rows("true")
    if back_s := _clock_of_database.seconds(now):
        log.warning("clock_set_back", by_s=round(back_s))
        longest = Now() + timedelta(seconds=settings.LEASE_S)
        for model in due_models():
            # Its worker, if it still lives, changes nothing at the end: the row is worked on again.
            model._base_manager.filter(leased_until__gt=longest).update(leased_until=longest)
            begin_again(model)
        _now, is_due = _of_due_rows("true")
    for model in (hinted := [one for one in is_due if is_due[one]]):
        worker_hint(table_label(model), queue=model.queue)
    return [table_label(model) for model in hinted]


def overdue_s() -> dict[str, float]:
    """Per table: how long the oldest due row that no worker holds has waited, in seconds; 0.0 when no row waits."""
    _now, waited = _of_due_rows("extract(epoch FROM statement_timestamp() - min(due_at))")
    return {table_label(model): float(seconds or 0) for model, seconds in waited.items()}


def _of_due_rows(what: str) -> tuple[datetime, dict[type[Due], Any]]:
    """The time in the database, and for each table the SQL `what` of its due rows that no worker holds. One query."""
    asked = {
        model: f"(SELECT {what} FROM {connection.ops.quote_name(model._meta.db_table)} WHERE {_DUE_AND_FREE} LIMIT 1)"
        for model in due_models()
    }
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(['statement_timestamp()', *asked.values()])}")
        now, *found = cursor.fetchone()
    return now, dict(zip(asked, found, strict=True))
