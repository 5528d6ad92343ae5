"""Kueue, the scheduler and the controllers are stopped one after the other: pages say so, then that it continues.

Takes about five minutes, and no other test may use the cluster meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accounts.core.actor import Actor
from cluster.models import Cluster
from cluster.reads import queries as mirror
from desk.health.catalog_checks import catalog_checks
from desk.health.queries import health
from tenants.models import Tenant
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import help_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

PROGRAMS = {"kueue": "kueue", "scheduler": "kube-scheduler", "controllers": "kube-controller-manager"}


def descendants(pid: int) -> list[int]:
    found = [pid]
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found += descendants(int(entry.parent.name))
    return found


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    pids = descendants(pid)
    for one in pids:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in pids:
            os.kill(one, signal.SIGCONT)


@pytest.mark.parametrize("component", sorted(PROGRAMS))
def test_a_component_that_stops_is_told_and_then_the_run_starts(
    component: str, provisioned: Tenant, job: LaunchSpec, by_alice: Actor, cluster: Cluster, worker: Worker,
    services: dict[str, Any],
) -> None:  # fmt: skip
    pids: dict[str, int] = json.loads(Path(os.environ["PORTAL_TEST_SERVICES"]).read_text())["pids"]
    worker(lambda: mirror.components(cluster.pk).keys() == PROGRAMS.keys())
    with stopped(pids[PROGRAMS[component]]):
        actions.launch("team-a", replace(job, name="one"), by=by_alice)
        worker(lambda: told()["one"] == ("blocked", f"{component}_silent"), within_s=120)
        written = next(one for one in IN_QUEUE.values() if one.reason == f"{component}_silent")
        as_written(written, shown("one").status, help_of(by_alice, "one"))
        found = health(cluster, catalog_checks(cluster, is_staff=True))
        assert [one.name for one in found.silent] != []
        assert found.is_urgent
    worker(lambda: told()["one"] == RUNNING, within_s=120)
    wait_until(lambda: not mirror.as_of(cluster.pk, "Job").silent, within_s=60, what="everything responds again")
