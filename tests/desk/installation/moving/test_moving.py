"""`manage.py compare --new-cluster` before a move, while another cluster is reached, and after it, in rows alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import Event, User
from catalog.models import GpuClass
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.models import AdmissionPeriod, AppliedObject, Cluster, MirrorEpoch, MirrorJob, MirrorKind
from cluster.reads import queries as mirror
from desk.health import queries as health_queries
from desk.health.catalog_checks import catalog_checks
from desk.installation.moving.actions import confirm_cluster
from desk.installation.moving.queries import move_of
from desk.installation.moving.shown import move_lines
from operations.models import Maintenance, MaintenanceNode
from portal.core import due
from portal.core.due import owner_label
from portal.core.errors import Refused
from tenants.models import Namespace
from tests.support.rows import running
from workloads.models import Run, Volume, Workload

BY = system_actor("manage.py")
Result = AppliedObject.Result


def sent(cluster: Cluster, row: due.Due, kind: str, name: str, namespace: str = "", **more: str) -> AppliedObject:
    values = {"result": Result.APPLIED, "uid": f"old-{name}", "manifest_hash": "hash", **more}
    return AppliedObject.objects.create(
        cluster=cluster, owner=owner_label(row), kind=kind, namespace=namespace, name=name, **values
    )


@pytest.fixture
def settled(cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> Cluster:
    """A team with a run in the cluster, one that waits for submission, and a volume; the mirror is current."""
    Cluster.objects.update(uid="first")
    cluster.refresh_from_db()
    running.known(cluster.pk, "Node", "Pod", "Job", "Workload", "PersistentVolumeClaim")
    trains = running.workload(namespace_a, a100, name="trains", by=alice)
    running.workload(namespace_a, a100, name="waits", by=alice)
    Run.objects.filter(workload=trains).update(spec={**Run.objects.get(workload=trains).spec, "checkpoints": True})
    volume = Volume.objects.create(namespace=namespace_a, name="data", size_gib=10, due_at=None)
    for kind in ("Namespace", "ClusterQueue"):
        sent(cluster, namespace_a, kind, namespace_a.name)
    sent(cluster, trains, "Job", "trains-1", namespace_a.name)
    sent(cluster, trains, "Secret", "trains-1", namespace_a.name)
    sent(cluster, volume, "PersistentVolumeClaim", "data", namespace_a.name)
    return cluster


@pytest.fixture
def reached(settled: Cluster) -> Cluster:
    """The watcher reaches another cluster."""
    Cluster.objects.update(other_uid="second", other_since=timezone.now())
    settled.refresh_from_db()
    return settled


def told(cluster: Cluster) -> str:
    cluster.refresh_from_db()
    return "\n".join(move_lines(move_of(cluster)))


def test_before_a_move_it_says_what_would_become_of_each_thing(
    settled: Cluster, namespace_a: Namespace, olga: User
) -> None:
    now = timezone.now()
    moment = {"holds_from": now, "starts_at": now, "ends_at": now + timedelta(hours=1)}
    repair = Maintenance.objects.create(cluster=settled, kind="other", reason="Repair.", created_by=olga, **moment)
    MaintenanceNode.objects.create(maintenance=repair, cluster=settled, name="a100-1")
    text = told(settled)
    assert (
        f"Team team-a: namespace {namespace_a.name}, quota, queue, policies and role bindings are made again." in text
    )
    assert "notebook trains, run 1: lost, and its checkpoints with it unless they are outside of the cluster." in text
    assert "notebook waits, run 1: not submitted yet, so it is submitted there." in text
    assert "volume data, 10 GiB. Its files are not moved." in text
    assert "1 run lost, 1 submitted there, 1 volume (10 GiB) not moved." in text
    assert f"Maintenance #{repair.pk} goes on with nodes of these names: a100-1." in text
    assert "Classes without nodes: unknown" in text
    before = list(AppliedObject.objects.order_by("pk").values())
    call_command("compare", "--new-cluster")
    assert list(AppliedObject.objects.order_by("pk").values()) == before
    assert not Event.objects.exists()


def test_another_cluster_is_used_only_after_it_was_confirmed_by_its_uid(reached: Cluster) -> None:
    text = told(reached)
    assert "The watcher reaches another cluster" in text
    assert "compare --new-cluster --confirm second" in text
    with pytest.raises(SystemExit) as left:
        call_command("compare", "--new-cluster")
    assert left.value.code == 1
    for wrong in ("first", "third"):
        with pytest.raises(CommandError):
            call_command("compare", "--new-cluster", "--confirm", wrong)
        with pytest.raises(Refused):
            confirm_cluster(reached, wrong, by=BY)
    reached.refresh_from_db()
    assert (reached.uid, reached.other_uid) == ("first", "second")


def test_members_of_a_team_decide_nothing(reached: Cluster, by_alice: Actor) -> None:
    with pytest.raises(Refused) as refused:
        confirm_cluster(reached, "second", by=by_alice)
    assert refused.value.code == "not_allowed"


def test_a_confirmed_cluster_is_read_and_written_from_the_beginning(reached: Cluster, namespace_a: Namespace) -> None:
    MirrorJob.objects.create(
        cluster_id=reached.pk, namespace=namespace_a.name, name="trains-1", uid="old", resource_version=9, record={},
        created_at=timezone.now(),
    )  # fmt: skip
    heard = timezone.now() - timedelta(hours=3)
    MirrorKind.objects.filter(kind="Workload").update(heard_at=heard)
    AdmissionPeriod.objects.create(
        cluster_id=reached.pk, uid="w", job_uid="old-trains-1", admitted_at=heard - timedelta(hours=1)
    )
    # What the previous cluster refused was never there.
    waits = Workload.objects.get(name="waits")
    sent(reached, waits, "Job", "waits-1", namespace_a.name, result=Result.REFUSED)
    call_command("compare", "--new-cluster", "--confirm", "second")

    reached.refresh_from_db()
    assert (reached.uid, reached.other_uid, reached.other_since) == ("second", "", None)
    left = AppliedObject.objects.order_by("kind").values_list("kind", "code")
    assert list(left) == [
        ("Job", PREVIOUS_CLUSTER),
        ("PersistentVolumeClaim", PREVIOUS_CLUSTER),
        ("Secret", ""),
    ]
    assert not MirrorJob.objects.exists()
    assert not MirrorEpoch.objects.exists()
    assert not mirror.is_known(reached.pk, "Job")
    period = AdmissionPeriod.objects.get()
    assert (period.ended_at, period.is_exact) == (heard, False)
    event = Event.objects.get()
    assert (event.verb, event.before, event.after) == ("cluster.replaced", {"uid": "first"}, {"uid": "second"})
    assert due.claim(Namespace) is not None
    assert {claim.row.name for claim in iter(lambda: due.claim(Workload), None) if claim} == {"trains", "waits"}


def test_after_a_move_it_says_what_is_left_and_who_has_to_act(
    reached: Cluster, namespace_a: Namespace, alice: User
) -> None:
    confirm_cluster(reached, "second", by=BY)
    with pytest.raises(SystemExit) as unknown:
        call_command("compare", "--new-cluster")
    assert unknown.value.code == 2
    assert "Whether its claim was restored is unknown." in told(reached)

    running.known(reached.pk, "Node", "Pod", "Job", "Workload", "PersistentVolumeClaim")
    AppliedObject.objects.update(sent_at=timezone.now() - timedelta(minutes=5))
    text = told(reached)
    assert f"namespace {namespace_a.name} is not made yet: workers do it." in text
    assert "run 1 of trains was in the previous cluster: a worker records it as lost." in text
    assert "volume data, 10 GiB. Missing: an operator restores the claim, or the team deletes the volume." in text
    assert "waits" not in text
    browser = Client()
    browser.force_login(alice)
    assert "The cluster was replaced by another one, and its files were not moved." in (
        browser.get(reverse("volumes", args=["team-a"])).content.decode()
    )
    found = health_queries.health(reached, catalog_checks(reached, is_staff=False))
    assert "was in the cluster that another one has replaced" in str(found.objects)

    Run.objects.filter(workload__name="trains").update(
        ended_at=timezone.now(), outcome="lost", reason="cluster_replaced"
    )
    AppliedObject.objects.filter(kind="PersistentVolumeClaim").delete()
    sent(reached, namespace_a, "Namespace", namespace_a.name)
    Namespace.objects.update(observed_generation=namespace_a.generation)
    text = told(reached)
    assert "1 run of the previous cluster recorded as lost" in text
    assert "Namespaces as their rows want them: 1 of 1." in text
    assert "Nothing is left to do for teams." in text


def test_health_says_that_another_cluster_is_reached(reached: Cluster) -> None:
    found = health_queries.health(reached, catalog_checks(reached, is_staff=False))
    assert "the portal reaches another cluster than before" in found.verdict
    assert not found.is_well
