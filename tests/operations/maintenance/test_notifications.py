"""Who is told that a maintenance was canceled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Delivery, User
from catalog.models import GpuClass
from cluster.models import Cluster
from operations.maintenance.notifications import tell_canceled
from operations.models import Maintenance, MaintenanceNotice
from tenants.models import Namespace
from tests.support.rows import running


@pytest.mark.django_db
def test_a_run_that_was_moved_already_is_not_told_that_it_continues(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User, olga: User
) -> None:
    now = timezone.now()
    row = Maintenance.objects.create(
        cluster=cluster, kind="hardware", reason="A fan.", holds_from=now, starts_at=now,
        ends_at=now + timedelta(hours=1), created_by=olga,
    )  # fmt: skip
    for name, stages in (("stays", ["announced"]), ("moved", ["announced", "moved"])):
        run = running.workload(namespace_a, a100, name=name, by=alice).runs.get()
        for stage in stages:
            MaintenanceNotice.objects.create(maintenance=row, run=run, stage=stage)
    for _twice in range(2):
        tell_canceled(row)
    [mail] = Delivery.objects.all()
    assert "stays continues." in mail.body
