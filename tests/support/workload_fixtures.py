"""Fixtures: team A provisioned on the real control plane, with a watcher process; the test itself does the worker's
part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Image
from cluster.client.kube import Kube
from cluster.models import AppliedObject, Cluster, MirrorJob, MirrorKind, MirrorWorkload
from portal.core import due
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.processes.preloaded import watch
from tests.support.processes.streaming import Doors
from tests.support.processes.watchers import is_current
from tests.support.rows import make
from tests.support.waiting import wait_until
from workloads.core import workload_sql
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs.restart import reconcile_and_restart
from workloads.status import queries


@pytest.fixture
def images(db: None) -> list[Image]:
    return [
        Image.objects.create(name="minimal", reference="quay.io/jupyter/minimal-notebook:2026-09-01", kind="notebook"),
        Image.objects.create(name="absent", reference="missing/notebook:1", kind="notebook"),
        Image.objects.create(name="python", reference="docker.io/library/python:3.14-slim", kind="job"),
    ]


@pytest.fixture
def by_alice(alice: User) -> Actor:
    return Actor(user=alice, via="page")


@pytest.fixture
def by_bob(bob: User) -> Actor:
    return Actor(user=bob, via="page")


@pytest.fixture
def by_charlie(charlie: User) -> Actor:
    return Actor(user=charlie, via="page")


@pytest.fixture
def notebook(a100: GpuClass, images: list[Image]) -> LaunchSpec:
    return LaunchSpec(name="one", kind="notebook", gpu_class=a100.slug, units=1, image="minimal")


@pytest.fixture
def job(a100: GpuClass, images: list[Image]) -> LaunchSpec:
    return LaunchSpec(
        name="train", kind="job", gpu_class=a100.slug, units=1, image="python", command=("python", "train.py")
    )


@pytest.fixture
def granted(team_a: Tenant, a100: GpuClass) -> Tenant:
    """Two units of the A100 class in force."""
    make.grant(team_a, a100, units=2)
    return team_a


@pytest.fixture
def provisioned(granted: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None) -> Tenant:
    """Team A's namespace, quota and queue are in the cluster."""
    provision(namespace_a, kube_worker)
    return granted


@pytest.fixture
def watcher(cluster: Cluster, services: dict[str, Any], tmp_path: Path) -> Iterator[None]:
    """The real process with the watcher's own rights; the mirror is current when the test begins."""
    log = tmp_path / "watcher.log"
    process = watch(kubeconfig=services["kubeconfigs"]["watcher"], log=log)
    try:
        wait_until(
            lambda: is_current(cluster),
            within_s=90,
            what="the mirror knows every kind",
            story=log.read_text,
        )
        yield
    finally:
        # A clean shutdown takes seconds; tests of the watcher cover it.
        process.kill()
        process.wait(10)
        # PostgreSQL finishes the query of a killed client, which would conflict with emptying the tables.
        wait_until(_nobody_else_reads, within_s=30, what="the end of what the watcher asked last")


@pytest.fixture
def doors(running_doors: Doors, transactional_db: None) -> Iterator[Doors]:
    """Waits until doors has finished its queries: emptying the tables could otherwise deadlock with them."""
    yield running_doors
    wait_until(_nobody_else_reads, within_s=30, what="doors have read what they wanted")


def _nobody_else_reads() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) = 0 FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        return bool(cursor.fetchone()[0])


@pytest.fixture
def worker(kube_worker: Kube, tmp_path: Path) -> Worker:
    """`worker(until)` does the workers' part in this process until the condition holds."""

    def drain() -> None:
        while (claimed := due.claim(Workload)) is not None:
            due.run_claimed(claimed, partial(reconcile_and_restart, kube=kube_worker))

    def work(until: Callable[[], object], *, within_s: float = 60) -> None:
        def step() -> bool:
            drain()
            if not until():
                return False
            # Pages read the mirror, which may be ahead of the rows by one visit of the worker.
            drain()
            return bool(until())

        wait_until(step, within_s=within_s, story=partial(_told, tmp_path / "watcher.log"))

    return work


def _told(watcher_log: Path) -> str:
    """Describes the portal's state of every workload and the watcher's log, to show why a test waited in vain."""
    lines, ours = [], list(Namespace.objects.all())
    for namespace in ours:
        for row in queries.workload_rows(workload_sql.with_related(Workload.objects.filter(namespace=namespace))):
            workload = row.workload
            lines.append(
                f"{workload.name}: due {workload.due_at}; {workload.error_code} {workload.error_text}; {row.status}"
            )
    lines += map(str, Event.objects.values_list("at", "verb", "after"))
    lines += map(str, Run.objects.values_list("workload__name", "number", "outcome", "reason", "preemptions"))
    for model in (MirrorJob, MirrorWorkload):
        there = model._base_manager.filter(namespace__in=[one.name for one in ours])
        lines += map(str, there.values_list("name", "resource_version", "record"))
    sent = AppliedObject.objects.exclude(result="applied").values_list("kind", "name", "result", "code", "text")
    known = [str(one) for one in MirrorKind.objects.values_list("kind", "heard_at", "resource_version", "problem")]
    log = watcher_log.read_text().splitlines()[-40:] if watcher_log.exists() else []
    return "\n".join([*lines, *map(str, sent), *known, *log])
