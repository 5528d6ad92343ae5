"""An idle portal with 1,000 provisioned namespaces does no write and no full list for a minute. In ten idle minutes on
a loaded machine it never calls its data old, and it says in time when they are.

The worker provisions the namespaces for real. Then the next reconciles of the rows are spread over RESYNC, as in a
portal that has run for a while: a tenth of the rows is reconciled in the measured minute.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.utils import timezone

from catalog.models import GpuClass, Pool
from cluster.models import Cluster, MirrorObject
from cluster.reads import queries
from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES
from devcluster.processes.supervisor import Command, Supervisor
from tenants.models import Grant, Namespace, Tenant
from tests.plugin import process_environment
from tests.support.processes.preloaded import ROOT
from tests.support.processes.watchers import Watchers, eventually, is_current
from tests.support.rows import make
from tests.support.waiting import wait_until

NAMESPACES = int(os.environ.get("SOAK_NAMESPACES", "1000"))
SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
QUIET_SECONDS = float(os.environ.get("SOAK_QUIET_SECONDS", "600"))
LOOK_EVERY_S = 1.0
# For one namespace, on a loaded machine.
EACH_WITHIN_S = 1.5
# Longer than until the second reconcile of a namespace with changes, or of one in doubt.
QUIET_FOR_S = 15.0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_cluster")
def test_a_minute_with_nothing_to_do(
    services: dict[str, Any],
    cluster: Cluster,
    a100: GpuClass,
    unique: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = _namespaces(cluster, a100, unique)
    with _portal(services, tmp_path) as (worker, watcher):
        wait_until(_is_settled, within_s=60 + EACH_WITHIN_S * NAMESPACES, every_s=1, story=_story)
        wait_until(lambda: _is_quiet(cluster, (worker, watcher)), within_s=120, every_s=0.5, story=_story)
        _spread(rows)
        began, before = timezone.now(), [len(proxy.calls()) for proxy in (worker, watcher)]
        ends = time.monotonic() + SECONDS
        wait_until(lambda: time.monotonic() > ends, within_s=SECONDS + 30, every_s=0.5)
        asked = [proxy.calls()[count:] for proxy, count in zip((worker, watcher), before, strict=True)]
    looked_at = Namespace.objects.filter(applied_as_of__gt=began).count()
    counts = [Counter(f"{done.call.verb} {done.call.resource}" for done in calls) for calls in asked]
    with capsys.disabled():
        print(f"\n{NAMESPACES} namespaces, {SECONDS:.0f} s, {looked_at} looked at: worker {dict(counts[0])}, ", end="")
        print(f"watcher {dict(counts[1])}")
    assert [done for calls in asked for done in calls if done.call.verb in WRITES] == []
    assert [done for calls in asked for done in calls if done.call.is_full_list] == []
    # The worker was active: it did about as many reconciles as RESYNC gives.
    assert looked_at >= NAMESPACES * SECONDS / settings.RESYNC_S / 2


@pytest.fixture
def proxied(services: dict[str, Any], cluster: Cluster, tmp_path: Path) -> Iterator[tuple[ApiProxy, Watchers]]:
    """A watcher that is current; its connections can be disturbed."""
    with ApiProxy(services["kubeconfigs"]["watcher"], tmp_path) as proxy:
        watchers = Watchers(str(proxy.kubeconfig), tmp_path)
        try:
            watchers.start()
            eventually(lambda: is_current(cluster), watchers)
            yield proxy, watchers
        finally:
            proxy.resume()
            watchers.end()


@pytest.mark.django_db(transaction=True)
def test_no_alarm_on_a_loaded_machine(
    cluster: Cluster, proxied: tuple[ApiProxy, Watchers], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every core is busy and nothing happens in the cluster: each look finds current data."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    looks, alarms, ends = 0, [], time.monotonic() + QUIET_SECONDS
    try:
        while time.monotonic() < ends:
            looks += 1
            found = queries.as_of(cluster.pk)
            if not found.is_current:
                alarms.append((timezone.now(), found))
            with suppress(subprocess.TimeoutExpired):
                busy[0].wait(LOOK_EVERY_S)
                raise AssertionError("the machine is no longer busy")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    with capsys.disabled():
        print(f"\n{looks} looks in {QUIET_SECONDS:.0f} s: {len(alarms)} alarms")
    assert alarms == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("fault", "within_s"),
    [
        ("the API server does not answer", queries.HEARD_LIMIT_S),
        ("connections are refused", queries.HEARD_LIMIT_S),
        ("the watcher is stopped", queries.BEAT_LIMIT_S),
    ],
)
def test_old_data_are_told_in_time(
    cluster: Cluster, proxied: tuple[ApiProxy, Watchers], fault: str, within_s: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limits are those that the page names."""
    proxy, watchers = proxied
    began = time.monotonic()
    if fault == "the API server does not answer":
        proxy.pause()
    elif fault == "connections are refused":
        proxy.refuse()
    else:
        os.kill(watchers.processes[0].pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not is_current(cluster), within_s=within_s + 2 * LOOK_EVERY_S + 5, every_s=LOOK_EVERY_S)
    finally:
        os.kill(watchers.processes[0].pid, signal.SIGCONT)
    with capsys.disabled():
        print(f"\n{fault}: told after {time.monotonic() - began:.0f} s: {queries.as_of(cluster.pk).problem}")


def _namespaces(cluster: Cluster, gpu_class: GpuClass, unique: str) -> list[Namespace]:
    Pool.objects.create(cluster=cluster)
    teams = Tenant.objects.bulk_create(Tenant(slug=f"idle-{unique}-{n}", name=f"Idle {n}") for n in range(NAMESPACES))
    whole = make.grant(teams[0], gpu_class, units=1)
    Grant.objects.bulk_create(
        Grant(tenant=team, gpu_class=gpu_class, units=1, kind=whole.kind, period=whole.period) for team in teams[1:]
    )
    return Namespace.objects.bulk_create(Namespace(tenant=team, cluster=cluster, name=team.slug) for team in teams)


@contextmanager
def _portal(services: dict[str, Any], directory: Path) -> Iterator[tuple[ApiProxy, ApiProxy]]:
    """Worker, beat and watcher as the demo runs them; a proxy for the worker and one for the watcher."""
    celery = [sys.executable, "-m", "celery", "-A", "portal"]
    command = [*celery, "worker", "-P", "prefork", "-Q", "people,background", "-c", "2", "--without-mingle"]
    env = {**process_environment(), "BEAT_SCHEDULE_FILE": str(directory / "beat")}
    with ExitStack() as stack:
        supervisor = stack.enter_context(Supervisor(directory / "log"))
        proxies = []
        for name, argv in (("worker", command), ("watcher", [sys.executable, "manage.py", "watch_cluster"])):
            (directory / name).mkdir()
            proxy = stack.enter_context(ApiProxy(services["kubeconfigs"][name], directory / name))
            proxies.append(proxy)
            own = env | {"PORTAL_KUBECONFIG": str(proxy.kubeconfig), "DATABASE_CONN_MAX_AGE": "300"}
            supervisor.start(Command(name, argv, env=own, cwd=ROOT, stop_within_s=10))
        supervisor.start(Command("beat", [*celery, "beat"], env=env, cwd=ROOT, stop_within_s=10))
        yield proxies[0], proxies[1]


def _is_settled() -> bool:
    behind = Namespace.objects.exclude(observed_generation=F("generation"), error_code="", leased_until=None)
    return not behind.exists()


def _spread(rows: Sequence[Namespace]) -> None:
    """The first row is due now, the others after it at equal distances."""
    table = connection.ops.quote_name(Namespace._meta.db_table)
    statement = f"""
        UPDATE {table} SET due_at = now() + (id - %s) * make_interval(secs => %s) WHERE id = ANY(%s)"""
    pks = [row.pk for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(statement, [min(pks), settings.RESYNC_S / len(pks), pks])


def _is_quiet(cluster: Cluster, proxies: Sequence[ApiProxy]) -> bool:
    """Everything is mirrored, and there was no write or list in the last seconds."""
    if not is_current(cluster) or MirrorObject.objects.filter(kind="ClusterQueue").count() < NAMESPACES:
        return False
    before = _loud(proxies)
    ends = time.monotonic() + QUIET_FOR_S
    wait_until(lambda: time.monotonic() > ends, within_s=QUIET_FOR_S + 30, every_s=0.5)
    return _loud(proxies) == before


def _loud(proxies: Sequence[ApiProxy]) -> int:
    calls = [done.call for proxy in proxies for done in proxy.calls(WRITES | {"list"})]
    return sum(call.verb in WRITES or call.is_full_list for call in calls)


def _story() -> str:
    rows = Namespace.objects.exclude(observed_generation=F("generation"), error_code="")
    return f"{rows.count()} not settled: {list(rows.values_list('name', 'error_code', 'error_text')[:5])}"
