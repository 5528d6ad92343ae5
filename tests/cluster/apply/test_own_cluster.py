"""A worker whose CLUSTER_NAME is that of another cluster changes nothing for rows of the first."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings

import tenants.tasks
import workloads.tasks
from accounts.models import User
from catalog.models import GpuClass, Pool
from portal.core.due import DONE, Deadline, Due, Outcome
from tenants.models import Namespace, Plan, QuotaRequest, Tenant
from tests.support.rows import running
from workloads.models import Volume, Workload

pytestmark = pytest.mark.django_db
TASKS = {
    Namespace: (tenants.tasks, "work_namespaces", "steps.work_on_namespace"),
    Plan: (tenants.tasks, "work_plans", "steps.work_on_plan"),
    Pool: (tenants.tasks, "work_pools", "reconcile.reconcile_pool"),
    Workload: (workloads.tasks, "work_workloads", "restart.reconcile_and_restart"),
    Volume: (workloads.tasks, "work_volumes", "storage_reconcile.reconcile"),
}


@pytest.fixture
def rows(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> dict[type[Due], Due]:
    """One of each table whose worker writes to a cluster."""
    workload = running.workload(namespace_a, a100, by=alice)
    found: dict[type[Due], Due] = {
        Namespace: namespace_a,
        Pool: Pool.objects.create(cluster=namespace_a.cluster),
        Workload: workload,
        Volume: Volume.objects.create(namespace=namespace_a, name="data", size_gib=1),
        Plan: Plan.objects.create(
            request=QuotaRequest.objects.create(tenant=team_a, filed_by=alice, justification="More.")
        ),
    }
    for model in found:
        model._base_manager.update(due_at="2026-01-01T00:00:00Z")
    return found


@pytest.mark.parametrize("model", TASKS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("is_own", [True, False])
def test_rows_of_another_cluster_are_left_alone_and_say_why(
    rows: dict[type[Due], Due], model: type[Due], is_own: bool, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    reached: list[int] = []

    def reconcile(row: Due, deadline: Deadline, **_more: Any) -> Outcome:
        reached.append(row.pk)
        return DONE

    module, task, verb = TASKS[model]  # type: ignore[index]
    monkeypatch.setattr(f"{module.__name__}.connect", lambda: None)
    monkeypatch.setattr(f"{module.__name__}.{verb}", reconcile)
    if not is_own:
        settings.CLUSTER_NAME = "moved"

    getattr(module, task)()

    row = model._base_manager.get(pk=rows[model].pk)
    assert (reached, row.error_code) == (([row.pk], "") if is_own else ([], "other_cluster"))
