"""Pods in a team's namespace that the portal did not create are charged to the team, to the minute, and marked."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorPod
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.homes import stranger
from usage.gpu_hours.month import OUTSIDE, month_figures
from workloads.allocations.outside_pods import record_outside_pods
from workloads.models import AllocationInterval

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nodes(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)


def rows() -> list[tuple[str, int, str, bool]]:
    found = AllocationInterval.objects.order_by("pod_uid")
    return [(row.pod_uid, row.units, row.source, row.ends_at is None) for row in found]


def test_one_is_recorded_from_its_creation_until_it_is_gone(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    GpuClass.objects.update(price_per_unit_hour="2")
    pod = stranger(namespace_a, "by-hand")
    assert record_outside_pods(cluster)
    assert record_outside_pods(cluster)
    assert rows() == [("by-hand", 2, "pods", True)]
    row = AllocationInterval.objects.get()
    assert (row.starts_at, row.gpu_class, row.run, row.is_exact) == (pod.created_at, a100, None, False)
    GpuClass.objects.update(price_per_unit_hour="9")
    pod.delete()
    assert record_outside_pods(cluster)
    assert rows() == [("by-hand", 2, "pods", False)]

    AllocationInterval.objects.update(ends_at=row.starts_at + timedelta(hours=3))
    month = month_figures(namespace_a, at=row.starts_at + timedelta(hours=1))
    assert [(one.name, one.whole, one.cost) for one in month.members] == [(OUTSIDE, 2.0, Decimal(4))]


def test_one_that_is_over_has_ended(cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass) -> None:
    stranger(namespace_a, "by-hand")
    record_outside_pods(cluster)
    MirrorPod.objects.update(phase="Succeeded")
    record_outside_pods(cluster)
    assert rows() == [("by-hand", 2, "pods", False)]


def test_pods_of_runs_and_pods_without_devices_are_not_outside(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    stranger(namespace_a, "without", record={"requests": {"cpu": 1}})
    stranger(namespace_a, "unbound", node="")
    stranger(namespace_a, "forged", owner=f"workloads.workload.{found.pk}", record={
        "requests": {"nvidia.com/gpu": 1}, "job_uid": "",
    })  # fmt: skip
    record_outside_pods(cluster)
    assert rows() == [("forged", 1, "pods", True)]


def test_one_that_two_classes_could_be_charged_for_is_left_out(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    make.gpu_class(cluster, slug="same", node_labels=a100.node_labels, resource=a100.resource)
    stranger(namespace_a, "by-hand")
    record_outside_pods(cluster)
    assert rows() == []


def test_from_a_mirror_that_is_not_current_nothing_ends(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    pod = stranger(namespace_a, "by-hand")
    record_outside_pods(cluster)
    pod.delete()
    MirrorEpoch.objects.update(beat_at=timezone.now() - timedelta(minutes=5))
    assert not record_outside_pods(cluster)
    assert rows() == [("by-hand", 2, "pods", True)]
