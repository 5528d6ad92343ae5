"""Quota that ended or was reduced is named as the reason of a wait, with what can be requested instead."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Grant, Namespace, Tenant
from tests.support.rows import make, mirrored
from tests.support.rows.waiting_runs import waits
from workloads.core import workload_sql
from workloads.models import Workload
from workloads.status import queries
from workloads.status.workload_row import WorkloadRow

pytestmark = pytest.mark.django_db
NOW = timezone.now()
OVER = (
    "insufficient quota for nvidia.com/gpu in flavor a100-1, previously considered podsets requests (0) + current "
    "podset request (2) > maximum capacity (0)"
)
NEEDED = "insufficient unused quota for nvidia.com/gpu in flavor a100-1, 2 more needed"


@pytest.fixture(autouse=True)
def hardware(cluster: Cluster, a100: GpuClass) -> None:
    mirrored.hardware_seen(cluster)


def grant(team: Tenant, one: GpuClass, units: int, begins: datetime, ends: datetime) -> Grant:
    found = make.grant(team, one, units=units)
    Grant.objects.filter(pk=found.pk).update(period=DateTimeTZRange(begins, ends), grace=timedelta(0))
    return found


def shown() -> WorkloadRow:
    (row,) = queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    return row


AGO, LONG_AGO = NOW - timedelta(hours=2), NOW - timedelta(days=30)


def test_an_expired_grant_is_the_reason_and_can_be_requested_again(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    grant(team_a, a100, 4, LONG_AGO, AGO)
    waits(namespace_a, a100, alice, text=OVER)
    row = shown()
    assert row.status.reason == "exceeds_maximum"
    assert row.status.sentence.startswith(f"Your team's quota of {a100.name} (4) expired on ")
    assert (row.status.facts["granted_before"], row.status.facts["granted_units"]) == (4, 0)
    assert row.status.facts["grant_ended_at"] == AGO.isoformat()
    assert row.status.explained is not None
    assert row.status.explained.remedy.startswith("Request quota again.")
    assert any("expired on" in step.problem + step.note for step in row.steps), "the step says the same"
    client = Client()
    client.force_login(alice)
    page = client.get("/teams/team-a/workloads/waits").text
    assert "Request this quota again" in page
    assert f"/teams/team-a/requests/new?units-{a100.slug}=4" in page
    form = client.get(f"/teams/team-a/requests/new?units-{a100.slug}=4").text
    assert 'value="4"' in form


def test_a_reduced_quota_is_named_with_both_numbers(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    grant(team_a, a100, 4, LONG_AGO, AGO)
    grant(team_a, a100, 1, AGO, NOW + timedelta(days=9))
    waits(namespace_a, a100, alice)
    assert f"quota of {a100.name} was reduced from 4 to 1 on " in shown().status.sentence


def test_a_grant_that_comes_is_what_to_wait_for(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    grant(team_a, a100, 4, LONG_AGO, AGO)
    grant(team_a, a100, 3, NOW + timedelta(days=1), NOW + timedelta(days=9))
    waits(namespace_a, a100, alice, text=OVER)
    told = shown().status.explained
    assert told is not None
    assert told.remedy.startswith("A grant of 3 starts on ")


def test_a_retiring_class_offers_its_successor_with_the_message(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, cluster: Cluster, alice: User
) -> None:
    newer = make.gpu_class(cluster, slug="h100", name="H100", node_labels={"nvidia.com/gpu.product": "H100"})
    GpuClass.objects.filter(pk=a100.pk).update(
        life_cycle="retiring", successor=newer, retiring_message="The old racks are moved"
    )
    grant(team_a, a100, 4, LONG_AGO, AGO)
    waits(namespace_a, a100, alice, text=OVER)
    row = shown()
    assert row.status.explained is not None
    assert "Its successor is H100. The old racks are moved." in row.status.explained.remedy
    assert row.loss is not None
    assert row.loss.slug == "h100"


def test_the_queues_number_gives_way_to_a_larger_quota_in_force(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    """Beside it stand the units that can start, which are of the quota in force."""
    GpuClass.objects.filter(pk=a100.pk).update(borrowing_limit=0)
    grant(team_a, a100, 3, LONG_AGO, NOW + timedelta(days=9))
    waits(namespace_a, a100, alice, units=4, text=OVER.replace("(2)", "(4)").replace("capacity (0)", "capacity (2)"))
    row = shown()
    assert row.status.sentence == f"4 units of {a100.name} requested, but your team may use at most 3 now."
    assert row.status.facts["most_units"] == 3


@pytest.mark.parametrize("case", ["enough", "other class", "too large before", "long ago", "replaced by as many"])
def test_quota_that_is_not_the_reason_is_not_named(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, cluster: Cluster, alice: User, case: str
) -> None:
    other = make.gpu_class(cluster, slug="h100", name="H100", node_labels={"nvidia.com/gpu.product": "H100"})
    if case == "enough":
        grant(team_a, a100, 4, LONG_AGO, AGO)
        grant(team_a, a100, 2, AGO, NOW + timedelta(days=9))
    elif case == "other class":
        grant(team_a, other, 4, LONG_AGO, AGO)
    elif case == "too large before":
        grant(team_a, a100, 1, LONG_AGO, AGO)
    elif case == "long ago":
        grant(team_a, a100, 4, NOW - timedelta(days=300), NOW - timedelta(days=100))
    else:
        grant(team_a, a100, 1, LONG_AGO, AGO)
        grant(team_a, a100, 1, AGO, NOW + timedelta(days=9))
    waits(namespace_a, a100, alice)
    assert "quota of" not in shown().status.sentence


def test_no_query_for_runs_that_have_enough_quota(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    grant(team_a, a100, 4, LONG_AGO, NOW + timedelta(days=9))
    waits(namespace_a, a100, alice)
    with CaptureQueriesContext(
        connection,
    ) as enough:
        shown()
    Grant.objects.all().delete()
    with CaptureQueriesContext(connection) as lacking:
        shown()
    assert len(lacking) <= len(enough) + 1


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (0, "cannot be borrowed from other teams (borrowing limit 0), even if units are free."),
        (3, "Your team can borrow up to 3 in all, while other teams do not use them."),
    ],
)
def test_the_limit_that_keeps_it_from_borrowing_is_named(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, alice: User, limit: int, words: str
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(borrowing_limit=limit)
    grant(team_a, a100, 2, LONG_AGO, NOW + timedelta(days=9))
    waits(namespace_a, a100, alice, units=2, text=NEEDED)
    told = shown().status
    assert told.sentence.endswith(f"your team's quota is in use. {a100.name + ' ' if not limit else ''}{words}")
    assert told.facts["borrowing_limit"] == limit
    assert told.explained is not None
    assert told.explained.sentence == told.sentence
