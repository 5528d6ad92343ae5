"""The host of a process vanishes: its connections stay open and no packet arrives. Another process goes on within 30 s,
and nothing is done twice, also when the host is back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from devcluster.faults.rules import WRITES
from devcluster.faults.vanishing_host import NoNamespaces, VanishingHost
from devcluster.processes.supervisor import Command
from tests.recovery.portal import ROOT, Portal

pytestmark = pytest.mark.timeout(300)

WITHIN_S = 30.0
LEADER = """SELECT host(a.client_addr) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
             WHERE l.locktype = 'advisory' AND l.granted"""
HERE = "127.0.0.1"


@pytest.fixture
def away() -> Iterator[VanishingHost]:
    try:
        with VanishingHost(os.getpid() % 64) as host:
            yield host
    except NoNamespaces as reason:
        # Nothing else drops packets without an answer: a user without rights cannot run these tests.
        pytest.skip(str(reason))


@contextmanager
def moved(portal: Portal, host: VanishingHost, name: str) -> Iterator[str]:
    """Stops the process of this name and runs it on the host, under the name that is returned, until the end."""
    here = portal.supervisor.running[name].command
    there = Command(f"{name}-away", [*host.prefix, *here.argv], env=here.env, cwd=ROOT, stop_within_s=10)
    portal.supervisor.stop(name)
    portal.supervisor.start(there)
    try:
        yield there.name
    finally:
        portal.supervisor.stop(there.name)
        if name not in portal.supervisor.running:
            portal.supervisor.start(here)


def with_env(command: Command, env: dict[str, str]) -> Command:
    return replace(command, env={**(command.env or {}), **env})


@contextmanager
def changed(portal: Portal, command: Command) -> Iterator[None]:
    """Runs the process of this name in another way, until the end."""
    before = portal.supervisor.running[command.name].command
    portal.supervisor.stop(command.name)
    portal.supervisor.start(command)
    try:
        yield
    finally:
        portal.supervisor.stop(command.name)
        portal.supervisor.start(before)


def said(portal: Portal, name: str, word: str) -> bool:
    return word in portal.supervisor.running[name].log.read_text()


def said_since(log: Path, word: str, at: str) -> bool:
    """Whether the process said it after `at`. If it ended then, another one was started, with a log of its own."""
    logs = (one for one in (log, log.with_suffix(".previous.log")) if one.exists())
    lines = (json.loads(line) for one in logs for line in one.read_text().splitlines() if line.startswith("{"))
    return any(line["event"] == word and line["timestamp"] > at for line in lines)


def written(portal: Portal, team: str) -> dict[str, Any]:
    """Of every object of the team: its uid, and when the portal wrote it last."""
    found = {"clusterqueue": portal.admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", team)}
    for kind in ("v1/resourcequotas", "v1/limitranges", "kueue.x-k8s.io/v1beta2/localqueues"):
        found[kind] = portal.admin.find(kind, "gpu-portal", namespace=team)
    return {
        kind: (one["metadata"]["uid"], [entry["time"] for entry in one["metadata"]["managedFields"] if is_ours(entry)])
        for kind, one in found.items()
    }


def is_ours(entry: dict[str, Any]) -> bool:
    return bool(entry["manager"] == "gpu-portal")


def test_the_watcher(portal: Portal, away: VanishingHost, team: str) -> None:
    standby = portal.supervisor.running["watcher"].command
    with moved(portal, away, "watcher") as vanished:
        portal.wait(lambda: portal.ask(LEADER) not in (None, HERE), what="the watcher on the host leads")
        portal.supervisor.start(standby)
        portal.wait(lambda: said(portal, "watcher", "watcher_waits"), what="the other one waits")

        away.vanish()
        at = time.monotonic()
        portal.provision(team, units=3)
        portal.wait(lambda: portal.is_mirrored(team), what="the mirror knows the team", within_s=WITHIN_S)
        assert time.monotonic() - at < WITHIN_S
        assert portal.ask(LEADER) == HERE

        away.come_back()
        portal.wait(lambda: said(portal, vanished, "watcher_waits"), what="the first one waits now")
        assert said(portal, vanished, "database_lost")
        assert portal.ask(LEADER) == HERE


def test_a_watcher_that_hangs(portal: Portal, team: str) -> None:
    """Its kernel still answers for it."""
    running = portal.supervisor.running["watcher"]
    other = Command("watcher-2", running.command.argv, env=running.command.env, cwd=ROOT)
    portal.wait(lambda: portal.ask(LEADER) == HERE, what="the watcher leads")
    portal.supervisor.start(other)
    portal.wait(lambda: said(portal, other.name, "watcher_waits"), what="the other one waits")
    os.kill(running.pid, signal.SIGSTOP)
    try:
        portal.wait(lambda: said(portal, other.name, "watcher_follows"), what="the other leads", within_s=WITHIN_S)
        at = datetime.now(UTC).isoformat()
        os.kill(running.pid, signal.SIGCONT)
        portal.wait(lambda: said_since(running.log, "database_lost", at), what="the first one saw that")
    finally:
        with suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGCONT)
        portal.supervisor.stop(other.name)


def test_a_worker_between_two_writes_to_the_cluster(portal: Portal, away: VanishingHost, team: str) -> None:
    """With the lease and the sweep of production."""
    reached, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        is_over.wait(60)

    as_shipped = {"DJANGO_SETTINGS_MODULE": "portal.settings"}
    replica = with_env(portal.supervisor.running["worker"].command, as_shipped)
    beat = with_env(portal.supervisor.running["beat"].command, as_shipped)
    with changed(portal, replica), changed(portal, beat), moved(portal, away, "worker"):
        portal.proxy.when(WRITES, nth=4).call_after(hold)
        portal.provision(team, units=3)
        try:
            assert reached.wait(60), portal.story()
            portal.supervisor.start(replica)
            away.vanish()
        finally:
            is_over.set()
        at = time.monotonic()
        portal.wait(lambda: portal.is_provisioned(team, 3), what="the team is provisioned", within_s=WITHIN_S)
        portal.wait(portal.is_settled, what="no row is due or on lease")
        assert time.monotonic() - at < WITHIN_S
        before = written(portal, team)

        away.come_back()
        portal.supervisor.stop("worker")
        next_team = f"next-{team}"
        portal.provision(next_team, units=2)
        portal.wait(lambda: portal.is_provisioned(next_team, 2), what="the first worker works again")
        portal.wait(portal.is_settled, what="no row is due or on lease")
        assert written(portal, team) == before


@pytest.mark.parametrize("doing", ["nothing", "a query"])
def test_a_worker_in_a_transaction(portal: Portal, away: VanishingHost, team: str, doing: str) -> None:
    portal.provision(team, units=1)
    portal.wait(lambda: portal.is_provisioned(team, 1), what="the team is provisioned")
    portal.wait(portal.is_settled, what="no row is due or on lease")
    row = "SELECT generation FROM tenants_namespace WHERE name = %s"
    before = portal.ask(row, team)
    argv = [*away.prefix, sys.executable, "-m", "tests.recovery.provision", "hold", team, doing]
    with (
        subprocess.Popen(
            argv, env=portal.env, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as held,
        psycopg.connect(portal.database_url, autocommit=True) as other,
    ):
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("SELECT FROM tenants_namespace WHERE name = %s FOR UPDATE NOWAIT", [team])
        away.vanish()
        at = time.monotonic()
        other.execute(f"SET lock_timeout = '{WITHIN_S:g}s'")
        other.execute(
            "UPDATE tenants_namespace SET generation = generation + 5, due_at = now() WHERE name = %s", [team]
        )
        assert time.monotonic() - at < WITHIN_S

        away.come_back()
        told, _ = held.communicate("\n", timeout=60)
        assert told == "OperationalError\n"
    assert portal.ask(row, team) == before + 5
