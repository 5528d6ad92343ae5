"""Due rows: work is a column, not a message. Losing a task, a worker or Redis costs seconds, never work.

A row says when to look at it next (`due_at`) and who is on it (`leased_until`). Actions `touch` it when what is wanted
changes, the watcher `wake`s it when the cluster changed, a task `claim`s the oldest due row with SKIP LOCKED, and ends
with `finish` or `fail`. Both are guarded by our own lease, so that a worker whose lease lapsed changes nothing.
Two columns are needed: with one for both, a touch during a run is overwritten by its end. All comparisons use the
database's clock.
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
from django.db import connection, models, transaction
from django.db.models.functions import Now

from portal.core.hints import PEOPLE, worker_hint
from portal.core.sql import columns, instance

log = structlog.get_logger(__name__)
ERROR_TEXT_LIMIT = 300


class Due(models.Model):
    generation = models.BigIntegerField(default=1, editable=False)
    observed_generation = models.BigIntegerField(default=0, editable=False)
    due_at = models.DateTimeField(null=True, blank=True, db_default=Now(), db_index=True, editable=False)
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)
    attempts = models.PositiveIntegerField(default=0, editable=False)
    error_code = models.CharField(max_length=60, blank=True, default="", editable=False)
    error_text = models.CharField(max_length=ERROR_TEXT_LIMIT, blank=True, default="", editable=False)

    # Which worker queue drains this table: people wait for "people".
    queue = PEOPLE

    class Meta:
        abstract = True
        indexes = [
            # What `claim` looks for first; it stays small however many rows are due.
            models.Index(
                fields=["due_at"],
                condition=models.Q(generation__gt=models.F("observed_generation"), attempts=0),
                name="%(app_label)s_%(class)s_asked",
            )
        ]


Row = TypeVar("Row", bound=Due)


@dataclass(frozen=True)
class Claim(Generic[Row]):
    """One row that is ours until `leased_until`; `generation` and `due_at` as read when it was claimed."""

    row: Row
    generation: int
    due_at: datetime
    leased_until: datetime
    attempts: int

    @property
    def model(self) -> type[Row]:
        return type(self.row)


class TryLater(Exception):
    """What a reconciler raises when it could not finish: recorded on the row and tried again with back-off.

    `clock`: as in Outcome; what is wanted changes by itself then, whatever failed.
    """

    def __init__(self, code: str, text: str, *, clock: datetime | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.clock = clock


@dataclass(frozen=True)
class Outcome:
    """What a reconciler returns: look again in `again_in_s` (None: RESYNC) or at `clock`, whichever is first.

    `clock`: the next instant at which what is wanted changes by itself. `rests`: nothing is left to do and nothing
    outside can change that; not before the row is touched. `is_applied`: False while something is still on its way, so
    that the row does not pass for settled.
    """

    again_in_s: float | None = None
    clock: datetime | None = None
    rests: bool = False
    is_applied: bool = True


SETTLED = Outcome()
DONE = Outcome(rests=True)


def table_label(model: type[Due]) -> str:
    return model._meta.label_lower


def owner_label(row: Due) -> str:
    """Value of the Kubernetes label `gpu-portal/owner`: the only link from an object to its row."""
    return f"{table_label(type(row))}.{row.pk}"


def touch(model: type[Due], pk: int) -> None:
    """What is wanted has changed: new generation, due now. Call inside the transaction of the change."""
    model._base_manager.filter(pk=pk).update(generation=models.F("generation") + 1, due_at=Now())
    worker_hint(table_label(model), queue=model.queue)


def wake(model: type[Due], pks: Iterable[int]) -> int:
    """The world may have changed: due now, same generation. Call it when what was seen is committed.

    Rows that are due and free are left alone: they will be looked at anyway. A row that somebody is on is made due
    again, since what was read at its start may be what has changed. Inside a transaction all of them are locked until
    its end: claimed before, a row would be looked at without what is about to be committed, and then not again.
    """
    waiting = models.Q(due_at__lte=Now()) & _free()
    # Where a transaction is open its own end counts; a savepoint would be two more statements for nothing.
    with transaction.atomic(savepoint=False):
        wanted = pks if isinstance(pks, models.QuerySet) else list(pks)
        rows = model._base_manager.filter(pk__in=wanted).order_by("pk")
        locked = list(rows.select_for_update(no_key=True).values_list("pk", flat=True))
        woken = model._base_manager.filter(pk__in=locked).exclude(waiting).update(due_at=Now())
    if woken:
        worker_hint(table_label(model), queue=model.queue)
    return woken


def wake_owners(owners: Iterable[str]) -> None:
    """Wake the rows that owner labels name; labels that name no Due table (an old version's, a forgery) are ignored."""
    by_model: dict[type[Due], set[int]] = {}
    for owner in owners:
        app_and_model, _, pk = owner.rpartition(".")
        try:
            model = apps.get_model(app_and_model)
        except (LookupError, ValueError):
            continue
        if issubclass(model, Due) and pk.isdigit():
            by_model.setdefault(model, set()).add(int(pk))
    for model, pks in by_model.items():
        wake(model, pks)


def claim(model: type[Row]) -> Claim[Row] | None:
    """Lease the oldest due row of the table that nobody is on, or None. Counts the attempt: a killed task cannot.

    What was asked for and nobody has tried yet comes before what only may have changed: a person waits for it, and
    thousands of rows may be woken at once. One statement, and one round trip, for the same reason.
    """
    table = connection.ops.quote_name(model._meta.db_table)
    due_and_free = "due_at <= statement_timestamp() AND (leased_until IS NULL OR leased_until <= statement_timestamp())"
    statement = f"""
        UPDATE {table} SET leased_until = statement_timestamp() + make_interval(secs => %s), attempts = attempts + 1
         WHERE id = coalesce(
               (SELECT id FROM {table} WHERE generation > observed_generation AND attempts = 0 AND {due_and_free}
                 ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED),
               (SELECT id FROM {table} WHERE {due_and_free}
                 ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED))
        RETURNING {columns(model)}"""
    with connection.cursor() as cursor:
        cursor.execute(statement, [settings.LEASE_S])
        found = cursor.fetchone()
    if found is None:
        return None
    row = instance(model, iter(found))
    assert row.due_at is not None
    assert row.leased_until is not None
    return Claim(row, row.generation, row.due_at, row.leased_until, row.attempts)


def finish(claimed: Claim[Row], outcome: Outcome = SETTLED) -> bool:
    """What could be done now is done. Returns whether the row is due again already.

    A touch or wake since the claim keeps its due_at. A lapsed lease changes nothing and returns False.
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


def fail(claimed: Claim[Row], *, code: str, text: str, clock: datetime | None = None) -> None:
    """It could not be done now: recorded on the row, again in min(5·2^(attempts-1), 300) s ± 20 %, at `clock` if that
    is earlier, or at a newer touch.
    """
    table = connection.ops.quote_name(claimed.model._meta.db_table)
    statement = f"""
        UPDATE {table} SET leased_until = NULL, error_code = %s, error_text = %s,
               due_at = CASE WHEN due_at IS NOT DISTINCT FROM %s
                             THEN least(statement_timestamp() + make_interval(secs => %s * (0.8 + 0.4 * random())), %s)
                             ELSE due_at END
         WHERE id = %s AND leased_until = %s
        RETURNING due_at <= statement_timestamp()"""
    wait_s = min(5.0 * 2 ** min(claimed.attempts - 1, 10), 300.0)
    told = [code, text[:ERROR_TEXT_LIMIT]]
    _guarded(statement, [*told, claimed.due_at, wait_s, clock, claimed.row.pk, claimed.leased_until])


def _guarded(statement: str, parameters: list[Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found = cursor.fetchone()
    return bool(found and found[0])


class Deadline:
    """Budget of one reconcile, checked before every write; shorter than the lease, so a lapsed lease writes nothing."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + settings.RECONCILE_BUDGET_S

    def check(self) -> None:
        if time.monotonic() > self._ends:
            raise TryLater("out_of_time", f"Not finished within {settings.RECONCILE_BUDGET_S} s; it continues shortly.")


def drain(model: type[Row], reconcile: Callable[[Row, Deadline], Outcome], *, for_s: float | None = None) -> int:
    """Drain the table: claim, reconcile, finish or fail. Returns how many rows were looked at.

    No row is begun after `for_s`. The default leaves one whole reconcile, and the last call that its budget lets
    through, within the task's limit: a task that is killed holds its row until the lease ends.
    Hints again when time ran out with rows left. An unexpected exception is recorded on the row like any other failure
    and logged with its traceback: one poisonous row must not stop the table.
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
        outcome = reconcile(claimed.row, Deadline())
    except TryLater as later:
        fail(claimed, code=later.code, text=later.text, clock=later.clock)
    except Exception as error:
        log.exception("reconcile_failed", row=owner_label(claimed.row))
        fail(claimed, code="unexpected", text=f"{type(error).__name__}; see the worker log for details.")
    else:
        finish(claimed, outcome)


def due_models() -> list[type[Due]]:
    return [model for model in apps.get_models() if issubclass(model, Due)]


def sweep() -> list[str]:
    """Hint every table that has a row due and free. One small query a table."""
    hinted = []
    for model in due_models():
        if model._base_manager.filter(due_at__lte=Now()).filter(_free()).exists():
            worker_hint(table_label(model), queue=model.queue)
            hinted.append(table_label(model))
    return hinted


def overdue_s() -> dict[str, float]:
    """Per table: how long its oldest due and free row has waited, in seconds; 0.0 when nothing waits."""
    found = {}
    for model in due_models():
        oldest = (
            model._base_manager.filter(due_at__lte=Now())
            .filter(_free())
            .aggregate(age=models.ExpressionWrapper(Now() - models.Min("due_at"), output_field=models.DurationField()))[
                "age"
            ]
        )
        found[table_label(model)] = oldest.total_seconds() if isinstance(oldest, timedelta) else 0.0
    return found


def _free() -> models.Q:
    return models.Q(leased_until=None) | models.Q(leased_until__lte=Now())
