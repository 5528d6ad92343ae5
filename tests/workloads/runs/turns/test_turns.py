"""Workers take turns between teams: a team with a thousand launches does not hold up the launch of another."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core import due
from tenants.models import Namespace, Tenant
from tests.support.rows import make
from workloads.models import Workload

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nobody_served() -> Iterator[None]:
    due._served.clear()
    yield
    due._served.clear()


def launched(team: Tenant, gpu_class: GpuClass, by: User, *, rows: int, since_s: float) -> None:
    """These are rows as a launch leaves them for a worker, all but the run."""
    namespace = team.namespaces.get()
    found = [
        Workload(
            tenant=team,
            namespace=namespace,
            name=f"job-{number}",
            kind="job",
            origin=f"o{team.pk}-{number}",
            gpu_class=gpu_class,
            units=1,
            image="image",
            created_by=by,
        )
        for number in range(rows)
    ]
    Workload.objects.bulk_create(found, batch_size=2000)
    Workload.objects.filter(tenant=team).update(due_at=Now() - timedelta(seconds=since_s))


def served(times: int) -> list[str]:
    """The teams whose rows are claimed, in this order; each row is done at once."""
    found = []
    for _ in range(times):
        claimed = due.claim(Workload)
        assert claimed is not None
        found.append(claimed.row.tenant.slug)
        due.finish(claimed, due.DONE)
    return found


def test_one_teams_thousand_launches_do_not_hold_up_another_team(cluster: Cluster, a100: GpuClass, alice: User) -> None:
    many, few = (make.tenant(cluster, slug=slug) for slug in ("many", "few"))
    launched(many, a100, alice, rows=1000, since_s=3000)
    launched(few, a100, alice, rows=2, since_s=1)

    assert "few" in served(2)
    assert served(4).count("few") == 1, "its second row has the turn after that"


def test_teams_take_turns_and_each_has_its_oldest_row_first(cluster: Cluster, a100: GpuClass, alice: User) -> None:
    teams = [make.tenant(cluster, slug=f"team-{number}") for number in range(3)]
    for team in teams:
        launched(team, a100, alice, rows=3, since_s=60)
        for number in range(3):
            age = timedelta(seconds=60 - number)
            Workload.objects.filter(tenant=team, name=f"job-{number}").update(due_at=Now() - age)

    order = []
    for _ in range(9):
        claimed = due.claim(Workload)
        assert claimed is not None
        order.append((claimed.row.tenant.slug, claimed.row.name))
        due.finish(claimed, due.DONE)

    assert [slug for slug, _ in order] == ["team-0", "team-1", "team-2"] * 3
    assert [name for slug, name in order if slug == "team-1"] == ["job-0", "job-1", "job-2"]


def test_what_was_only_woken_comes_after_all_that_was_asked_for(cluster: Cluster, a100: GpuClass, alice: User) -> None:
    asked, woken = (make.tenant(cluster, slug=slug) for slug in ("asked", "woken"))
    launched(asked, a100, alice, rows=3, since_s=5)
    launched(woken, a100, alice, rows=1, since_s=900)
    Workload.objects.filter(tenant=woken).update(observed_generation=F("generation"))

    assert served(4) == ["asked"] * 3 + ["woken"]


def test_a_claim_is_one_statement_that_reads_only_what_was_asked_for(
    cluster: Cluster, a100: GpuClass, alice: User
) -> None:
    """20,000 rows at rest, 500 launches."""
    resting, many = (make.tenant(cluster, slug=slug) for slug in ("resting", "many"))
    launched(resting, a100, alice, rows=20_000, since_s=5)
    later = Now() + timedelta(minutes=10)
    Workload.objects.filter(tenant=resting).update(observed_generation=F("generation"), due_at=later)
    launched(many, a100, alice, rows=500, since_s=5)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE workloads_workload")
    with CaptureQueriesContext(connection) as asked:
        assert due.claim(Workload) is not None
    assert len(asked) == 1
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + asked[0]["sql"])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "workloads_workload_asked" in plan
    assert "Seq Scan" not in plan


def test_other_tables_go_by_age_alone(cluster: Cluster) -> None:
    assert Namespace.turns_by == ""
