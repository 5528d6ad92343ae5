"""The price of a class is kept with every change, and a change does not touch what was launched before."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from importlib import import_module

import pytest
from django.db import connection
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.classes import actions
from catalog.models import ClassPrice, GpuClass
from cluster.models import Cluster
from portal.core.errors import Refused
from tenants.models import Tenant
from tests.support.rows import running
from usage.reports.queries import read_report
from workloads.allocations import recording
from workloads.models import Run

pytestmark = pytest.mark.django_db


def made(cluster: Cluster, by: User, price: str) -> GpuClass:
    values = {"name": "h100", "resource": "nvidia.com/gpu", "node_labels": {"gpu": "h100"}}
    return actions.create_class(
        slug="h100", cluster=cluster, by=Actor(by, "page"), price_per_unit_hour=Decimal(price), **values
    )


def kept(one: GpuClass) -> list[tuple[str, User | None]]:
    rows = ClassPrice.objects.filter(gpu_class=one).order_by("since", "pk")
    return [(str(row.price_per_unit_hour), row.by) for row in rows]


def test_every_price_is_kept_with_its_time_and_who_set_it(cluster: Cluster, olga: User) -> None:
    begin = timezone.now()
    one = made(cluster, olga, "1.5")
    actions.edit_class(one.pk, price_per_unit_hour=Decimal("2.5"), summary="Fast.", by=Actor(olga, "page"))
    actions.edit_class(one.pk, price_per_unit_hour=Decimal("1.5"), by=system_actor("test"))
    assert kept(one) == [("1.5000", olga), ("2.5000", olga), ("1.5000", None)]
    times = [row.since for row in ClassPrice.objects.order_by("pk")]
    # Within one transaction too: the clock, not its begin.
    assert times == sorted(set(times))
    assert all(begin - timedelta(seconds=5) < at < begin + timedelta(minutes=1) for at in times)


def test_what_is_no_change_of_the_price_keeps_nothing(cluster: Cluster, olga: User) -> None:
    one = made(cluster, olga, "1.5")
    actions.edit_class(one.pk, borrowing_limit=3, by=Actor(olga, "page"))
    actions.edit_class(one.pk, price_per_unit_hour=Decimal("1.5000"), by=Actor(olga, "page"))
    with pytest.raises(Refused):
        actions.edit_class(one.pk, price_per_unit_hour=Decimal(-1), by=Actor(olga, "page"))
    assert kept(one) == [("1.5000", olga)]


def test_classes_from_before_the_upgrade_begin_with_their_price(a100: GpuClass) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="2.5")
    migration = import_module("catalog.migrations.0015_class_price").Migration
    with connection.cursor() as cursor:
        cursor.execute(migration.operations[-1].sql)
    assert kept(a100) == [("2.5000", None)]


def test_a_change_does_not_rewrite_what_was_launched_before(
    team_a: Tenant, a100: GpuClass, alice: User, olga: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="2")
    a100.refresh_from_db()
    found = running.workload(team_a.namespaces.get(), a100, by=alice)
    now = timezone.now()
    Run.objects.filter(workload=found).update(started_at=now - timedelta(minutes=5))
    recording.record_start(found.runs.get().pk)
    actions.edit_class(a100.pk, price_per_unit_hour=Decimal(90), by=Actor(olga, "page"))
    Run.objects.filter(workload=found).update(ended_at=now, outcome="succeeded")
    recording.record_end(found.runs.get().pk)
    held = found.runs.get().allocations.get()
    assert held.price_per_unit_hour == 2
    assert sum(one.cost for one in read_report(team_a, None).lines) <= Decimal("0.17")
