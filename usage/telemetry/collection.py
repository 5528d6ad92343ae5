"""Once a minute: reads what devices did since the last minute that was read, and then what could not be read before.

Prometheus is asked outside of any transaction. The row of the cluster is locked while hours are written, and minutes
that an hour has already are not counted twice, so that two workers, or the same minute read again, change nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from cluster.models import Cluster
from portal.core.connections.prometheus_server import PrometheusServer
from usage.telemetry.class_hours import sum_up
from usage.telemetry.folding import Holder, Holders, HourFigures, Measured, RunMinute, fold
from usage.telemetry.holder_sql import HOLDERS
from usage.telemetry.models import ClassHour, RunHour, TelemetrySource
from usage.telemetry.prometheus import AnswerTooLarge, PrometheusUnreadable, query_range
from usage.telemetry.promql import queries
from usage.telemetry.types import HOUR, MINUTE, RangeAnswer, hour_of

# A scrape at the end of a minute is in Prometheus a few seconds later.
LAG = timedelta(seconds=10)
# A task has 20 s. What is not read until then is read by the next one.
ROUND_S = 14.0
# Besides the newest minutes, so many periods of the past are read in a minute: three times five queries.
PAST_PERIODS = 2
PERIOD_MOST = HOUR
# What a process holds in memory at once: about 150 MB.
RUN_MINUTES_MOST = 100_000
# Prometheus keeps 15 days unless it is told otherwise.
PAST_MOST = timedelta(days=15)
RETENTION = timedelta(days=400)
PURGE_BATCH = 20_000

# query, start, end → answer. Raises PrometheusUnreadable.
Ask = Callable[[str, datetime, datetime], RangeAnswer]


@dataclass(frozen=True)
class Period:
    """Whole minutes, from the start of the first to the end of the last."""

    since: datetime
    until: datetime

    def shortened(self, minutes: int, *, keeps_end: bool) -> Period:
        if self.until - self.since <= minutes * MINUTE:
            return self
        if keeps_end:
            return Period(self.until - minutes * MINUTE, self.until)
        return Period(self.since, self.since + minutes * MINUTE)


@dataclass(frozen=True)
class WasRead:
    """`period`: perhaps a part of the one that was wanted."""

    period: Period
    measured: Measured
    is_partial: bool


def read_telemetry(*, server: PrometheusServer | None = None, at: datetime | None = None) -> bool:
    """Of all clusters. Returns whether a new minute was read. Without a Prometheus nothing is measured."""
    server = server or settings.PROMETHEUS
    if server is None:
        return False
    now = at or timezone.now()
    read = [read_cluster(one, asker(server), at=now, own=server.metrics) for one in Cluster.objects.order_by("pk")]
    return any(read)


def asker(server: PrometheusServer) -> Ask:
    """Asks within the time of one round."""
    until = time.monotonic() + ROUND_S

    def ask(query: str, start: datetime, end: datetime) -> RangeAnswer:
        return query_range(
            server, query, start=start.timestamp(), end=end.timestamp(), step_s=int(MINUTE.total_seconds()), until=until
        )

    return ask


def read_cluster(cluster: Cluster, ask: Ask, *, at: datetime, own: Mapping[str, str] | None = None) -> bool:
    """Returns whether a new minute was read. At most (1 + PAST_PERIODS) × 5 queries to Prometheus. Without a new
    minute: none, and one to the database.
    """
    source = TelemetrySource.objects.filter(cluster=cluster).first() or TelemetrySource(cluster=cluster)
    newest = (at - LAG).replace(second=0, microsecond=0)
    if source.read_until is not None and newest <= source.read_until:
        return False
    period = Period(max(source.read_until or newest - MINUTE, newest - PERIOD_MOST), newest)
    try:
        found = _read(cluster, ask, period, own, keeps_end=True)
    except PrometheusUnreadable as error:
        _record_problem(source, str(error), at)
        return False
    source = _write(source, found)
    for _ in range(PAST_PERIODS):
        source = _read_past(cluster, ask, source, newest, own)
    purge(before=at - RETENTION)
    return True


def _read_past(
    cluster: Cluster, ask: Ask, source: TelemetrySource, newest: datetime, own: Mapping[str, str] | None
) -> TelemetrySource:
    """One period of what could not be read before, the oldest first, because Prometheus deletes it first. If that
    fails, the present was read nevertheless.
    """
    if source.missing_since is None or source.missing_until is None:
        return source
    since = min(max(source.missing_since, newest - PAST_MOST), source.missing_until - MINUTE)
    period = Period(since, min(source.missing_until, since + PERIOD_MOST))
    try:
        return _write_past(source, _read(cluster, ask, period, own, keeps_end=False))
    except PrometheusUnreadable:
        return source


def _read(cluster: Cluster, ask: Ask, period: Period, own: Mapping[str, str] | None, *, keeps_end: bool) -> WasRead:
    """A shorter period if there would be too much to hold in memory. `keeps_end`: the newest part of it."""
    holders = holders_in(cluster, period)
    runs = sum(map(len, holders.values()))
    period = period.shortened(max(1, RUN_MINUTES_MOST // max(1, runs)), keeps_end=keeps_end)
    try:
        return _asked(ask, period, holders, own)
    except AnswerTooLarge:
        return _asked(ask, period.shortened(1, keeps_end=keeps_end), holders, own)


def _asked(ask: Ask, period: Period, holders: Holders, own: Mapping[str, str] | None) -> WasRead:
    measured, is_partial = Measured(), False
    for name, query in queries(own or {}).items():
        answer = ask(query, period.since + MINUTE, period.until)
        is_partial |= answer.is_partial
        measured.add(name, answer.series, holders)
        if not holders:
            # One query shows whether Prometheus can be read.
            break
    return WasRead(period, measured, is_partial)


def holders_in(cluster: Cluster, period: Period) -> Holders:
    """Runs that held units in this period. One query."""
    found: dict[tuple[str, str], list[Holder]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(HOLDERS, {"cluster": cluster.pk, "since": period.since, "until": period.until})
        for namespace, job, *values in cursor.fetchall():
            found[namespace, job].append(Holder(*values))
    return found


# ---- writing ---------------------------------------------------------------------------------------------------------


@transaction.atomic
def _write(source: TelemetrySource, found: WasRead) -> TelemetrySource:
    locked = _locked(source)
    if locked.read_until != source.read_until:
        return locked  # another worker was faster
    if locked.read_until is not None and locked.read_until < found.period.since:
        locked.missing_since = locked.missing_since or locked.read_until
        locked.missing_until = found.period.since
    _store(locked.cluster_id, found.measured)
    locked.read_until, locked.is_partial = found.period.until, found.is_partial
    locked.problem, locked.problem_since = "", None
    locked.save()
    return locked


@transaction.atomic
def _write_past(source: TelemetrySource, found: WasRead) -> TelemetrySource:
    locked = _locked(source)
    if locked.missing_since != source.missing_since or locked.missing_until is None:
        return locked
    _store(locked.cluster_id, found.measured)
    if found.period.until >= locked.missing_until:
        locked.missing_since = locked.missing_until = None
    else:
        locked.missing_since = found.period.until
    locked.save()
    return locked


@transaction.atomic
def _record_problem(source: TelemetrySource, problem: str, at: datetime) -> None:
    locked = _locked(source)
    locked.problem, locked.problem_since = problem[:300], locked.problem_since or at
    locked.save()


def _locked(source: TelemetrySource) -> TelemetrySource:
    if source._state.adding:
        TelemetrySource.objects.get_or_create(cluster_id=source.cluster_id)
    return TelemetrySource.objects.select_for_update(no_key=True).get(cluster_id=source.cluster_id)


_MEASURED = [one.name for one in fields(HourFigures) if one.name not in ("holder", "measure")]
# A larger set of bits has a later minute.
_LAST = {"activity_last", "memory_last_mib", "power_last_w"}
_LARGEST = {"activity_max", "busy_devices_max", "memory_max_mib", "memory_total_mib", "memory_share_max"}


def _store(cluster_id: int, measured: Measured) -> None:
    """Three queries, whatever the number of runs."""
    if not measured.minutes:
        return
    found = fold(measured, _counted({(run_id, hour_of(minute)) for run_id, minute in measured.minutes}))
    rows = [
        (run_id, hour, one.holder.namespace_id, one.holder.gpu_class_id, one.measure, *_values(one))
        for (run_id, hour), one in sorted(found.items())
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_ADD, list(map(list, zip(*rows, strict=True))))
        sum_up(cluster_id, {hour for _, hour in found})


def _values(figures: HourFigures) -> Iterable[float | None]:
    return (getattr(figures, name) for name in _MEASURED)


def _counted(keys: set[RunMinute]) -> dict[RunMinute, int]:
    runs, hours = zip(*keys, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [sorted(set(runs)), sorted(set(hours))])
        return {(run_id, hour.astimezone(UTC)): seen for run_id, hour, seen in cursor.fetchall()}


def purge(*, before: datetime) -> int:
    """Deletes at most a batch of hours older than that, of runs and of classes. Returns how many. Two queries."""
    gone = 0
    with connection.cursor() as cursor:
        for table in (_TABLE, ClassHour._meta.db_table):
            statement = f"DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} WHERE hour < %s LIMIT %s)"
            cursor.execute(statement, [before, PURGE_BATCH])
            gone += cursor.rowcount
    return gone


_TABLE = RunHour._meta.db_table
_COUNTED = f"SELECT run_id, hour, seen_minutes FROM {_TABLE} WHERE run_id = ANY(%s) AND hour = ANY(%s)"
_TYPES = {"seen_minutes": "bigint", "busy_minutes": "bigint"} | dict.fromkeys(
    ("busy_devices_max", "memory_samples", "power_samples"), "smallint"
)


def _sum_of(name: str) -> str:
    if name in _LARGEST:
        return f"greatest(known.{name}, excluded.{name})"
    if name in _LAST:
        return f"CASE WHEN excluded.seen_minutes > known.seen_minutes THEN excluded.{name} ELSE known.{name} END"
    return f"known.{name} {'|' if name.endswith('_minutes') else '+'} excluded.{name}"


_ADD = f"""
INSERT INTO {_TABLE} AS known (run_id, hour, namespace_id, gpu_class_id, measure, {", ".join(_MEASURED)})
SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::bigint[], %s::bigint[], %s::text[],
                     {", ".join(f"%s::{_TYPES.get(name, 'double precision')}[]" for name in _MEASURED)})
    ON CONFLICT (run_id, hour) DO UPDATE
   SET {", ".join(f"{name} = {_sum_of(name)}" for name in _MEASURED)}"""
