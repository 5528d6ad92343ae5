"""A node that others cordon: a row, and the people of its runs are told once, and once that it is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorNode
from operations.cordons.following import follow_cordons
from operations.models import CordonNotice, NodeCordon
from tenants.models import Membership, Namespace
from tests.support.rows import mirrored, running
from workloads.models import Run

pytestmark = pytest.mark.django_db
NODE = "a100-1"
AT = datetime(2026, 11, 27, 14, 2, tzinfo=UTC)


@pytest.fixture
def run(cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """It runs on the node."""
    mirrored.hardware_seen(cluster, Pod=[], Workload=[], Job=[])
    pod = running.make_ready(running.workload(namespace_a, a100, name="mine", by=alice))
    pod.node = NODE
    pod.save()
    return Run.objects.get()


def cordon(manager: str = "kubectl", at: str = AT.isoformat(), *taints: str, name: str = NODE) -> None:
    node = MirrorNode.objects.get(name=name)
    node.schedulable = False
    added = [{"key": key, "value": "", "effect": "NoSchedule"} for key in taints]
    node.record = {**node.record, "cordon": {"manager": manager, "at": at}, "taints": added}
    node.save()


def uncordon() -> None:
    node = MirrorNode.objects.get(name=NODE)
    node.schedulable, node.record = True, {**node.record, "cordon": None, "taints": []}
    node.save()


def mails() -> list[tuple[str, str]]:
    return list(Delivery.objects.order_by("pk").values_list("subject", "body"))


def test_a_cordon_is_a_row_and_is_told_once(run: Run, cluster: Cluster, alice: User, settings: Any) -> None:
    follow_cordons(cluster)
    assert (NodeCordon.objects.count(), mails()) == (0, [])

    cordon()
    for _twice in range(2):
        follow_cordons(cluster)
    row = NodeCordon.objects.get()
    assert (row.node, row.manager, row.since, row.ended_at) == (NODE, "kubectl", AT, None)
    [(subject, body)] = mails()
    assert Delivery.objects.get().user == alice
    assert subject == "The node of mine of Team A was cordoned"
    address = f"{settings.PORTAL_URL}/teams/team-a/workloads/mine"
    assert body == (
        "Node a100-1 takes no new workloads since 27 Nov 2026, 14:02 (cordoned with kubectl). mine continues there. If "
        "the node is drained, its programs get SIGTERM and up to 30 s to save their state. It restarts automatically; "
        "kernels and their variables are lost. It has no volume: files are deleted when it stops, and "
        f"memory is lost.\n\n{address}"
    )
    event = Event.objects.get(verb="workload.node_cordoned")
    assert (event.after["node"], event.after["manager"]) == (NODE, "kubectl")

    uncordon()
    for _twice in range(2):
        follow_cordons(cluster)
    row.refresh_from_db()
    assert row.ended_at is not None
    assert not row.is_node_gone
    assert mails()[1:] == [
        (
            "The node of mine of Team A is no longer cordoned",
            f"Node a100-1 takes new workloads again. It was cordoned since 27 Nov 2026, 14:02.\n\n{address}",
        )
    ]

    cordon("kured", "")
    follow_cordons(cluster)
    assert mails()[2][1].startswith(
        "Node a100-1 takes no new workloads: cordoned by kured, since when is unknown. mine continues there."
    )


def test_until_its_time_limit(run: Run, cluster: Cluster) -> None:
    Run.objects.update(ends_at=AT + timedelta(hours=4))
    cordon("", AT.isoformat())
    follow_cordons(cluster)
    assert (
        "since 27 Nov 2026, 14:02 (cordoned, by whom is unknown). mine continues there until its time limit ends at "
        "27 Nov 2026, 18:02." in mails()[0][1]
    )


@pytest.mark.parametrize("taint", ["gpu-portal/maintenance", "ToBeDeletedByClusterAutoscaler"])
def test_maintenance_and_removal_have_notices_of_their_own(run: Run, cluster: Cluster, taint: str) -> None:
    cordon("gpu-portal", AT.isoformat(), taint)
    follow_cordons(cluster)
    assert mails() == []
    assert NodeCordon.objects.exists() is (taint == "ToBeDeletedByClusterAutoscaler")


def test_a_cordon_that_maintenance_takes_over_is_not_over(run: Run, cluster: Cluster) -> None:
    cordon()
    follow_cordons(cluster)
    cordon("kubectl", AT.isoformat(), "gpu-portal/maintenance")
    follow_cordons(cluster)
    assert NodeCordon.objects.get().ended_at is None
    assert len(mails()) == 1


def test_nobody_is_told_that_a_node_is_open_that_is_gone(run: Run, cluster: Cluster) -> None:
    cordon()
    follow_cordons(cluster)
    MirrorNode.objects.filter(name=NODE).delete()
    follow_cordons(cluster)
    row = NodeCordon.objects.get()
    assert row.ended_at is not None
    assert row.is_node_gone
    assert len(mails()) == 1


def test_a_node_that_was_replaced_has_a_cordon_of_its_own(run: Run, cluster: Cluster) -> None:
    cordon()
    follow_cordons(cluster)
    MirrorNode.objects.filter(name=NODE).update(uid="another")
    follow_cordons(cluster)
    assert list(NodeCordon.objects.order_by("pk").values_list("is_node_gone", flat=True)) == [True, False]
    assert [subject for subject, _ in mails()] == ["The node of mine of Team A was cordoned"] * 2


def test_nothing_is_concluded_from_a_mirror_that_is_behind(run: Run, cluster: Cluster) -> None:
    cordon()
    follow_cordons(cluster)
    uncordon()
    MirrorEpoch.objects.update(beat_at=timezone.now() - timedelta(minutes=5))
    follow_cordons(cluster)
    assert NodeCordon.objects.get().ended_at is None
    assert len(mails()) == 1


def test_who_left_the_team_and_who_stops_is_not_told(run: Run, cluster: Cluster, alice: User) -> None:
    Run.objects.update(stop_requested_at=timezone.now())
    cordon()
    follow_cordons(cluster)
    assert not CordonNotice.objects.exists()
    Run.objects.update(stop_requested_at=None)
    Membership.objects.filter(user=alice).delete()
    follow_cordons(cluster)
    assert not Delivery.objects.filter(user=alice).exists()


def test_a_pass_costs_the_same_for_one_node_and_for_several(run: Run, cluster: Cluster) -> None:
    with CaptureQueriesContext(connection) as idle:
        follow_cordons(cluster)
    assert len(idle) == 4
    found = []
    for names in (["a100-1"], ["a100-2", "h100"]):
        for name in names:
            cordon(name=name)
        follow_cordons(cluster)
        with CaptureQueriesContext(connection) as queries:
            follow_cordons(cluster)
        found.append(len(queries))
    assert found == [8, 8]
