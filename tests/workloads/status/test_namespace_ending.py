"""While the namespace is being deleted nothing starts in it, whatever Job and queue say; pages say so alike."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorObject, MirrorPod
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.interruptions import asked, condition, queue_says
from workloads.core import workload_sql
from workloads.forecast import queries as forecast
from workloads.models import Run, Workload
from workloads.status import queries
from workloads.status.explain.admission import NAMESPACE_ENDING
from workloads.status.types import Status

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(team_a: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User) -> Run:
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    found = asked(namespace_a, a100, alice)
    MirrorObject.objects.filter(kind="Namespace", name=namespace_a.name).delete()
    MirrorObject.objects.create(
        cluster_id=cluster.pk, kind="Namespace", name=namespace_a.name, uid="namespace", resource_version=1,
        created_at=timezone.now(), record={"phase": "Active", "labels": {}, "conditions": []},
    )  # fmt: skip
    return found


def delete_namespace() -> None:
    MirrorObject.objects.filter(kind="Namespace").update(deleting_since=timezone.now())


def admitted(run: Run) -> None:
    MirrorPod.objects.all().delete()
    queue_says(run, condition("QuotaReserved", "True"), condition("Admitted", "True"), preemptions=0)


def queued(run: Run) -> None:
    """As it was made: Kueue's message is about units."""


def its_pod_ends(run: Run) -> None:
    admitted(run)
    running.pod_of(run.workload, uid="one")
    MirrorPod.objects.update(deleting_since=timezone.now())


def shown() -> Status:
    (row,) = queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    return row.status


@pytest.mark.parametrize(
    ("state", "before"), [(admitted, "creating_pod"), (queued, "waiting_for_quota"), (its_pod_ends, "replacing_pod")]
)
def test_a_run_without_a_pod_does_not_start(run: Run, state: object, before: str) -> None:
    assert callable(state)
    state(run)
    assert shown().reason == before
    delete_namespace()
    status = shown()
    assert (status.phase, status.reason) == ("blocked", "namespace_ending")
    assert status.sentence.startswith(NAMESPACE_ENDING)
    assert status.since is not None


def test_a_pod_that_runs_still_runs(run: Run) -> None:
    admitted(run)
    running.pod_of(run.workload, uid="one")
    delete_namespace()
    assert shown().phase == "running"


def test_nothing_starts_now_there(run: Run, namespace_a: Namespace, a100: GpuClass) -> None:
    """Launch form, home and suggestions all use these figures."""
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    size = forecast.LaunchSize()
    assert forecast.class_figures(namespace_a, [a100], size)[a100.slug].units_now == 4
    delete_namespace()
    figures = forecast.class_figures(namespace_a, [a100], size)[a100.slug]
    assert (figures.units_now, figures.closed) == (0, NAMESPACE_ENDING)
