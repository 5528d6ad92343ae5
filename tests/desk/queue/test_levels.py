"""What the queue page says about a gang that requires one rack: what it needs, and how much fits now."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorKind
from desk.queue import queries
from desk.queue.levels import LevelNeed
from desk.queue.queries import QueuedRun, QueueFilter
from tenants.models import Namespace
from tests.desk.classes.test_domains import KINDS, RACK, node, pods, racked
from tests.support.rows import mirrored
from tests.support.rows.waiting_runs import waits
from workloads.core import workload_sql
from workloads.models import Run, Workload
from workloads.status import queries as workloads

# A fixture of another module, by name.
__all__ = ["racked"]

pytestmark = pytest.mark.django_db
NO_QUOTA = (
    "couldn't assign flavors to pod set main: "
    "insufficient unused quota for nvidia.com/gpu in flavor a100-1, 2 more needed"
)
SIX = 'couldn\'t assign flavors to pod set main: topology "gpu-portal-racks" allows to fit only 8 out of 12 pod(s)'


def gang(
    namespace: Namespace, one: GpuClass, by: User, name: str = "gang", text: str = NO_QUOTA, *, required: bool = True
) -> None:
    found = waits(namespace, one, by, name, text, kind="job", units=1, origin=f"n{name}")
    level = {"topology_levels": [RACK, "kubernetes.io/hostname"], "topology_level": RACK, "topology_required": required}
    run = found.runs.get()
    Run.objects.filter(pk=run.pk).update(spec={**run.spec, "workers": 12, **level})


def listed(cluster: Cluster) -> list[QueuedRun]:
    return queries.read_queue(cluster, QueueFilter()).rows


@pytest.fixture
def nodes_seen(racked: GpuClass) -> None:
    nodes = [*KINDS["Node"], node("e", "r1")]
    mirrored.seen(racked.cluster, Node=nodes, Topology=KINDS["Topology"], Pod=pods(), Job=[], Workload=[])


@pytest.mark.usefixtures("nodes_seen")
def test_it_says_what_it_needs_and_what_fits(
    cluster: Cluster, racked: GpuClass, namespace_a: Namespace, alice: User, olga: User
) -> None:
    gang(namespace_a, racked, alice)
    [row] = listed(cluster)
    assert row.needs == LevelNeed(RACK, 12, 1, 12)
    mirrored.seen(cluster, Node=KINDS["Node"])
    [row] = listed(cluster)
    assert row.needs == LevelNeed(RACK, 12, 1, 8)
    client = Client()
    client.force_login(olga)
    text = client.get("/queue").text
    assert "Needs all 12 workers with 1 unit each in one example.org/rack; 8 of them fit in the best one now." in text
    [item] = client.get("/api/v1/queue").json()["items"]
    assert (item["needs"], item["units"]) == ({"level": RACK, "workers": 12, "units": 1, "fit": 8}, 12)


@pytest.mark.usefixtures("nodes_seen")
def test_it_gives_the_same_reason_as_the_teams_page(
    cluster: Cluster, racked: GpuClass, namespace_a: Namespace, alice: User
) -> None:
    mirrored.seen(cluster, Node=KINDS["Node"])
    gang(namespace_a, racked, alice, text=SIX)
    [row] = listed(cluster)
    [theirs] = workloads.workload_rows(workload_sql.with_related(Workload.objects.all()))
    assert (row.status.reason, row.status.sentence) == (theirs.status.reason, theirs.status.sentence)
    assert row.status.reason == "level_fits_in_part"


@pytest.mark.usefixtures("nodes_seen")
def test_a_preferred_level_is_no_need(cluster: Cluster, racked: GpuClass, namespace_a: Namespace, alice: User) -> None:
    gang(namespace_a, racked, alice, required=False)
    assert [row.needs for row in listed(cluster)] == [None]


@pytest.mark.usefixtures("nodes_seen")
def test_while_nodes_are_unknown_so_is_what_fits(
    cluster: Cluster, racked: GpuClass, namespace_a: Namespace, alice: User
) -> None:
    MirrorKind.objects.filter(kind="Pod").delete()
    gang(namespace_a, racked, alice, text=SIX)
    [row] = listed(cluster)
    assert row.needs == LevelNeed(RACK, 12, 1, None)
    assert row.needs.sentence.endswith("; how many fit is unknown.")
    assert row.status.reason == "level_fits_in_part", "by Kueue's message alone"
    assert "Only 8 of 12 workers with 1 unit of" in row.status.sentence


@pytest.mark.usefixtures("nodes_seen")
def test_the_cost_does_not_grow_with_gangs(
    cluster: Cluster, racked: GpuClass, namespace_a: Namespace, alice: User
) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as asked:
            listed(cluster)
        return len(asked)

    counts: list[Any] = []
    for number in range(4):
        gang(namespace_a, racked, alice, name=f"g{number}")
        counts.append(cost())
    assert counts[0] == counts[-1] <= 11
