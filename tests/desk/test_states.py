"""What tells the doors process that a namespace's pages may have changed, when the hint was lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import MirrorPod
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
}


@pytest.fixture
def name(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> str:
    make.grant(team_a, a100, units=4)
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    Run.objects.update(admitted_at=None)
    return namespace_a.name


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_changes_the_version(name: str, what: str) -> None:
    before = versions([name])[name]
    assert versions([name])[name] == before

    CHANGES[what]()

    assert versions([name])[name] != before
