"""Once a minute: reads which GPUs have faults, opens, refreshes and clears their rows, and tells people.

At most three queries to Prometheus, whatever the number of GPUs, and a fixed number to the database besides the mails.
Prometheus is asked outside of any transaction. What was not seen is not written: while Prometheus or an exporter is
silent, a fault neither opens nor clears.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from cluster.models import Cluster
from portal.core.connections.prometheus_server import PrometheusServer
from usage.faults import notifications, policy, promql
from usage.faults.models import FaultRun, FaultSource, GpuFault
from usage.faults.types import (
    MOMENTS,
    DeviceKey,
    DevicePod,
    FaultKey,
    FaultKind,
    Signal,
    measured_of,
    pods_of,
    signals_of,
)
from usage.telemetry.collection import LAG, Ask, Period, asker, holders_in
from usage.telemetry.folding import SHARED, Holder, holders_of
from usage.telemetry.prometheus import PrometheusUnreadable
from usage.telemetry.types import MINUTE

# After a time without a look, queries look back so far.
WINDOW_MOST_MINUTES = 60
RETENTION = timedelta(days=90)
PURGE_BATCH = 5_000
_REFRESHED = ("node", "gpu_model", "value", "last_seen", "measured_at", "cleared_at", "is_gone")


@dataclass(frozen=True)
class Look:
    """What one minute showed. `measured`: GPUs with open faults whose condition could be seen in all the time of its
    rule. `pods`: those on GPUs with faults. `is_partial`: series may be missing.
    """

    at: datetime
    signals: Mapping[FaultKey, Signal]
    measured: Collection[tuple[DeviceKey, FaultKind]]
    pods: Collection[DevicePod]
    is_partial: bool


def read_faults(*, server: PrometheusServer | None = None, at: datetime | None = None) -> None:
    """Of all clusters. Without a Prometheus nothing is known of faults."""
    server = server or settings.PROMETHEUS
    if server is None:
        return
    for cluster in Cluster.objects.order_by("pk"):
        read_cluster(cluster, asker(server), at=at or timezone.now())


def read_cluster(cluster: Cluster, ask: Ask, *, at: datetime) -> None:
    """Without a new minute: one query to the database."""
    source = FaultSource.objects.filter(cluster=cluster).first() or FaultSource(cluster=cluster)
    newest = (at - LAG).replace(second=0, microsecond=0)
    if source.read_until is not None and newest <= source.read_until:
        return
    try:
        look = _look(cluster, ask, newest, _window(source, newest))
    except PrometheusUnreadable as error:
        _record_problem(source, str(error), at)
        return
    _write(source, look)
    notifications.tell_all(cluster, at=newest)
    _purge(newest - RETENTION)


def _window(source: FaultSource, newest: datetime) -> int:
    since = promql.WINDOW_MINUTES if source.read_until is None else (newest - source.read_until) // MINUTE
    return min(max(promql.WINDOW_MINUTES, since), WINDOW_MOST_MINUTES)


def _look(cluster: Cluster, ask: Ask, at: datetime, window: int) -> Look:
    answer = ask(promql.firing(window), at, at)
    signals, is_partial = signals_of(answer.series), answer.is_partial
    found = {key_of(row) for row in _open(cluster)} - signals.keys()
    measured: set[tuple[DeviceKey, FaultKind]] = set()
    if found:
        answer = ask(promql.measured({one.device.device for one in found}), at, at)
        measured, is_partial = measured_of(answer.series), is_partial or answer.is_partial
    pods: list[DevicePod] = []
    if signals:
        answer = ask(promql.holders({one.device.device for one in signals}), at, at)
        pods, is_partial = pods_of(answer.series), is_partial or answer.is_partial
    return Look(at, signals, measured, pods, is_partial)


def _open(cluster: Cluster) -> Iterable[GpuFault]:
    return GpuFault.objects.filter(cluster=cluster, cleared_at=None)


def key_of(row: GpuFault) -> FaultKey:
    return FaultKey(DeviceKey(row.device, row.instance), FaultKind(row.kind), row.code)


# ---- writing ---------------------------------------------------------------------------------------------------------


@transaction.atomic
def _write(source: FaultSource, look: Look) -> None:
    locked = _locked(source)
    if locked.read_until != source.read_until:
        return  # another worker was faster
    cluster = locked.cluster
    rows = {
        key_of(row): row
        for row in GpuFault.objects.filter(
            Q(cleared_at=None) | Q(cleared_at__gte=look.at - policy.SAME_WITHIN), cluster=cluster
        ).order_by("cleared_at", "pk")
    }
    known = list(rows.values())
    begun = _opened(cluster, rows, look)
    _cleared(known, look)
    changed = [row for row in known if look.at in (row.measured_at, row.cleared_at)]
    GpuFault.objects.bulk_update(changed, _REFRESHED)
    _link(cluster, look, {key: row for key, row in rows.items() if key in begun or _is_state(key, look)})
    locked.read_until, locked.problem, locked.problem_since = look.at, "", None
    locked.save()


def _opened(cluster: Cluster, rows: dict[FaultKey, GpuFault], look: Look) -> set[FaultKey]:
    """Refreshes, reopens or creates the rows of what is there. Returns the keys of those that were not open."""
    begun = set()
    new = []
    for key, one in look.signals.items():
        row = rows.get(key)
        if row is None:
            row = GpuFault(
                cluster=cluster,
                device=key.device.device,
                instance=key.device.instance,
                kind=key.kind,
                code=key.code,
                first_seen=look.at,
            )
            new.append(row)
        if row.pk is None or row.cleared_at is not None:
            begun.add(key)
        row.node, row.gpu_model, row.value = one.node, one.model, one.value
        row.last_seen = row.measured_at = look.at
        row.cleared_at, row.is_gone = None, False
        rows[key] = row
    GpuFault.objects.bulk_create(new)
    return begun


def _cleared(rows: Iterable[GpuFault], look: Look) -> None:
    """Those that were seen to be over. Of an XID only if its GPU has no other one: a newer code hides the older."""
    with_xid = {one.device for one in look.signals if one.kind is FaultKind.XID}
    for row in rows:
        key = key_of(row)
        if row.cleared_at is not None or key in look.signals:
            continue
        if (key.device, key.kind) in look.measured:
            row.measured_at = look.at
            if not look.is_partial and not (key.kind is FaultKind.XID and key.device in with_xid):
                row.cleared_at = look.at
        elif look.at - row.measured_at >= policy.GONE_AFTER:
            row.cleared_at, row.is_gone = look.at, True


def _is_state(key: FaultKey, look: Look) -> bool:
    return key in look.signals and key.kind not in MOMENTS


def _link(cluster: Cluster, look: Look, rows: Mapping[FaultKey, GpuFault]) -> None:
    """Notes which runs held these GPUs a moment ago. Two queries, none if no pod did."""
    if not rows or not look.pods:
        return
    period = Period(look.at - (promql.HELD_MINUTES + 1) * MINUTE, look.at)
    holders = holders_in(cluster, period)
    by_device: dict[str, list[tuple[str, Holder]]] = {}
    for pod in look.pods:
        found = {one.run_id: one for one in holders_of(pod.namespace, pod.pod, holders)}
        # A name that two runs may have given is of neither.
        if len(found) == 1:
            by_device.setdefault(pod.device, []).append((pod.instance, next(iter(found.values()))))
    links = []
    for key, row in rows.items():
        here = {
            one.run_id: one
            for instance, one in by_device.get(key.device.device, ())
            if key.device.instance in ("", instance)
        }
        is_shared = any(one.measure == SHARED for one in here.values())
        if policy.may_name_runs(key.kind, key.code, runs=len(here), is_shared=is_shared):
            links += [FaultRun(fault=row, run_id=run_id, since=look.at) for run_id in here]
    FaultRun.objects.bulk_create(links, ignore_conflicts=True)


@transaction.atomic
def _record_problem(source: FaultSource, problem: str, at: datetime) -> None:
    locked = _locked(source)
    locked.problem, locked.problem_since = problem[:300], locked.problem_since or at
    locked.save()


def _locked(source: FaultSource) -> FaultSource:
    if source._state.adding:
        FaultSource.objects.get_or_create(cluster_id=source.cluster_id)
    rows = FaultSource.objects.select_for_update(of=("self",), no_key=True).select_related("cluster")
    return rows.get(cluster_id=source.cluster_id)


def _purge(before: datetime) -> None:
    old = GpuFault.objects.filter(cleared_at__lt=before).values("pk")[:PURGE_BATCH]
    GpuFault.objects.filter(pk__in=old).delete()
