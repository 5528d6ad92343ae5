"""What tells the doors process that a namespace's pages may have changed, when the hint was lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import AppliedObject, Cluster, MirrorKind, MirrorPod
from desk import queries
from desk.states import versions
from tenants.models import Namespace, Tenant
from tests import make
from tests.workloads import running
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db

CHANGES: dict[str, Callable[[], object]] = {
    "suspended": lambda: Namespace.objects.update(wanted=Namespace.Wanted.SUSPENDED),
    "the namespace meets a problem": lambda: Namespace.objects.update(error_code="cluster_unavailable"),
    "a workload meets a problem": lambda: Workload.objects.update(error_code="cluster_unavailable"),
    "admitted": lambda: Run.objects.update(admitted_at=timezone.now()),
    "preempted": lambda: Run.objects.update(preemptions=1),
    "a pod goes": lambda: MirrorPod.objects.all().delete(),
    "a workload is gone": lambda: Workload.objects.update(deleted_at=timezone.now()),
    "its job is sent": lambda: sent(AppliedObject.Result.REFUSED),
    "its job is sent again": lambda: AppliedObject.objects.update(sent_at=timezone.now()),
}


def sent(result: AppliedObject.Result) -> AppliedObject:
    namespace = Namespace.objects.get()
    return AppliedObject.objects.create(
        cluster=namespace.cluster,
        namespace=namespace.name,
        kind="Job",
        name=f"one-{result}",
        result=result,
        sent_at=timezone.now() - timedelta(minutes=1),
    )


@pytest.fixture
def name(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> str:
    make.grant(team_a, a100, units=4)
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    Run.objects.update(admitted_at=None)
    sent(AppliedObject.Result.APPLIED)
    return namespace_a.name


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_changes_the_version(name: str, what: str) -> None:
    before = versions([name])[name]
    assert versions([name])[name] == before

    CHANGES[what]()

    assert versions([name])[name] != before


def test_without_kueue_its_kinds_are_not_waited_for(namespace_a: Namespace) -> None:
    """They are not followed where they are not served."""
    Cluster.objects.update(queue_system=Cluster.QueueSystem.NONE)
    running.known(namespace_a.cluster_id, "Node", "Job", "Pod")

    state = queries.home(Namespace.objects.get())

    assert state.as_of is not None
    assert not state.is_stale
    assert versions([namespace_a.name])[namespace_a.name] != never_read(namespace_a)


def test_a_queue_that_is_not_heard_of_makes_the_page_old(namespace_a: Namespace) -> None:
    """Jobs and pods alone do not say what waits where."""
    running.known(namespace_a.cluster_id)
    before = versions([namespace_a.name])
    assert not queries.home(Namespace.objects.get()).is_stale

    MirrorKind.objects.filter(kind="Workload").update(problem="The API server refused to show it.")

    assert queries.home(Namespace.objects.get()).is_stale
    assert versions([namespace_a.name]) != before
    MirrorKind.objects.filter(kind="Workload").update(listed_at=None)
    assert queries.home(Namespace.objects.get()).as_of is None


def never_read(namespace: Namespace) -> object:
    MirrorKind.objects.all().delete()
    return versions([namespace.name])[namespace.name]
