"""`manage.py compare --new-cluster` before a move, while another cluster is reached, and after it, in rows alone."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.client.errors import NotFound
from cluster.client.types import ApiObject
from cluster.models import AdmissionPeriod, AppliedObject, Cluster, MirrorEpoch, MirrorJob, MirrorKind, MirrorObject
from cluster.reads import queries as mirror
from desk.health import queries as health_queries
from desk.health.catalog_checks import catalog_checks
from desk.installation.moving.actions import confirm_cluster
from desk.installation.moving.queries import move_of
from desk.installation.moving.shown import move_lines
from operations.maintenance.reconcile import reconcile_maintenance
from operations.models import Adoption, Maintenance, MaintenanceNode
from portal.core import due
from portal.core.due import owner_label
from portal.core.errors import Refused
from tenants.models import Namespace
from tenants.provisioning.teardown.reconcile import retained_claims
from tests.support.rows import running
from workloads.models import AllocationInterval, Run, Volume, Workload
from workloads.runs.reconcile import reconcile

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
    assert "adopted" not in told(settled)
    Namespace.objects.update(origin=Namespace.Origin.ADOPTED)
    text = told(settled)
    assert f"Its namespace was adopted. Unless {namespace_a.name} exists there" in text
    assert (
        f"Team team-a: namespace {namespace_a.name}, quota, queue, policies and role bindings are made again." in text
    )
    assert "notebook trains, run 1: lost, and its checkpoints with it unless they are outside of the cluster." in text
    assert "notebook waits, run 1: not submitted yet, so it is submitted there." in text
    assert "volume data, 10 GiB. Its files are not moved." in text
    assert "1 run lost, 1 submitted there, 1 volume (10 GiB) not moved." in text
    assert f"Maintenance #{repair.pk} of a100-1 is canceled by the move: nodes there are not changed." in text
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
    later = heard + timedelta(days=1)
    Workload.objects.update(attempts=9, error_code="other_cluster", error_text="Waits.", due_at=later)
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
    waited = Workload.objects.values_list("attempts", "error_code", "error_text")
    assert set(waited) == {(0, "", "")}
    assert due.claim(Namespace) is not None
    assert {claim.row.name for claim in iter(lambda: due.claim(Workload), None) if claim} == {"trains", "waits"}


def test_what_is_known_without_a_queue_was_held_until_the_watcher_last_heard(
    reached: Cluster, namespace_a: Namespace, a100: GpuClass
) -> None:
    heard = timezone.now() - timedelta(hours=3)
    MirrorKind.objects.filter(kind="Pod").update(heard_at=heard)
    of_class = {"namespace": namespace_a, "gpu_class": a100, "units": 1, "weight": 1, "price_per_unit_hour": 2}
    ended = heard - timedelta(hours=1)
    held = {
        "pod": AllocationInterval(pod_uid="old-pod", source="pods", starts_at=heard - timedelta(hours=2)),
        "run": AllocationInterval(
            run=Run.objects.get(workload__name="trains"), source="start", starts_at=heard + timedelta(minutes=1)
        ),
        "over": AllocationInterval(
            pod_uid="over", source="pods", starts_at=heard - timedelta(hours=2), ends_at=ended, end_reason="Deleted"
        ),
    }
    for one in held.values():
        for name, value in of_class.items():
            setattr(one, name, value)
        one.save()
    confirm_cluster(reached, "second", by=BY)
    for one in held.values():
        one.refresh_from_db()
    assert (held["pod"].ends_at, held["pod"].end_reason, held["pod"].is_exact) == (heard, "Unseen", False)
    assert held["run"].ends_at == held["run"].starts_at
    assert (held["over"].ends_at, held["over"].end_reason) == (ended, "Deleted")


def test_a_pass_during_which_the_cluster_is_confirmed_records_no_job_as_deleted(reached: Cluster) -> None:
    class NewCluster:
        """Has no Job of the previous one; it is confirmed just before it is asked."""

        def get(self, *_kind: str, **_name: str) -> None:
            confirm_cluster(reached, "second", by=BY)
            raise NotFound(404, "NotFound", "")

        def delete(self, *_kind: str, **_name: str) -> None:
            pass

    AppliedObject.objects.update(sent_at=timezone.now() - timedelta(minutes=5))
    Workload.objects.update(observed_generation=1)
    kube: Any = NewCluster()
    with pytest.raises(due.TryLater):
        reconcile(Workload.objects.get(name="trains"), due.Deadline(), kube=kube)
    assert not Run.objects.exclude(ended_at=None).exists()
    reconcile(Workload.objects.get(name="trains"), due.Deadline(), kube=kube)
    assert Run.objects.get(workload__name="trains").reason == "cluster_replaced"


def test_adopted_namespaces_that_became_the_portals_own_are_named(
    reached: Cluster, namespace_a: Namespace, olga: User
) -> None:
    Adoption.objects.create(namespace=namespace_a, proposed_by=olga, adopted_at=timezone.now())
    Namespace.objects.update(origin=Namespace.Origin.ADOPTED)
    confirm_cluster(reached, "second", by=BY)
    assert "portal's own" not in told(reached)
    Namespace.objects.update(origin=Namespace.Origin.PORTAL)
    assert "Adopted namespaces that are the portal's own now, and go with their teams: team-a." in told(reached)


def test_volumes_of_a_closed_team_are_not_called_deleted_before_their_day(
    reached: Cluster, namespace_a: Namespace
) -> None:
    now = timezone.now()
    times = {"closes_at": now - timedelta(days=1), "volumes_until": now + timedelta(days=9)}
    Namespace.objects.update(wanted=Namespace.Wanted.CLOSED, **times)
    namespace_a.refresh_from_db()
    assert "Team team-a is closed:" in told(reached)
    confirm_cluster(reached, "second", by=BY)
    assert retained_claims(namespace_a) == 1
    sent(reached, namespace_a, "Namespace", namespace_a.name)
    running.known(reached.pk, "Node", "Pod", "Job", "Workload", "PersistentVolumeClaim")
    assert retained_claims(namespace_a) == 1
    AppliedObject.objects.update(sent_at=now - timedelta(minutes=5))
    assert "Missing: the team is closed; an operator may restore the claim before its volumes go at" in told(reached)


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


def test_a_maintenance_of_the_previous_cluster_ends_and_touches_no_node_here(reached: Cluster, olga: User) -> None:
    now = timezone.now()
    moment = {"holds_from": now - timedelta(hours=2), "starts_at": now, "ends_at": now + timedelta(hours=1)}
    repair = Maintenance.objects.create(cluster=reached, kind="repartition", reason="Slices.", created_by=olga,
                                        mig_config="all-1g.10gb", cancel_requested_at=now, **moment)  # fmt: skip
    node = {"cluster": reached, "name": "a100-1", "before": {"labels": {}, "devices": {}, "cordoned": False}}
    MaintenanceNode.objects.create(maintenance=repair, step="waiting", written_step="changing", **node)
    stale = Maintenance.objects.get(pk=repair.pk)
    calls: list[str] = []

    class Node:
        def get(self, kind: str, *, name: str) -> ApiObject:
            return ApiObject({"metadata": {"name": name, "resourceVersion": "1"}, "spec": {}, "status": {}})

        def merge(self, kind: str, *, name: str, body: dict[str, Any]) -> ApiObject:
            calls.append(name)
            return self.get(kind, name=name)

    kube: Any = Node()
    confirm_cluster(reached, "second", by=BY)
    repair.refresh_from_db()
    assert (repair.outcome, repair.ended_at is not None) == ("canceled", True)
    assert [one.step for one in repair.nodes.all()] == ["done"]
    event = Event.objects.get(verb="maintenance.ended")
    assert (event.actor, event.after) == (BY.name, {"outcome": "canceled", "reason": "cluster_replaced"})
    assert "The cluster was replaced by another one." in Delivery.objects.get(user=olga).body
    # A pass that has read its rows before the confirmation writes nothing either.
    MaintenanceNode.objects.update(step="waiting")
    for row in (repair, stale):
        with suppress(due.TryLater):
            reconcile_maintenance(row, due.Deadline(), kube=kube)
    assert calls == []


def test_a_claim_that_was_restored_without_a_label_is_said_to_stay(
    reached: Cluster, namespace_a: Namespace, alice: User
) -> None:
    confirm_cluster(reached, "second", by=BY)
    running.known(reached.pk, "Node", "Pod", "Job", "Workload", "PersistentVolumeClaim")
    claim = MirrorObject.objects.create(
        cluster_id=reached.pk, kind="PersistentVolumeClaim", namespace=namespace_a.name, name="data", uid="new",
        resource_version=1, record={"phase": "Bound", "asked_bytes": 1}, created_at=timezone.now(),
    )  # fmt: skip
    browser = Client()
    browser.force_login(alice)
    said = "its files stay in the cluster until an operator deletes them"
    assert said in browser.get(reverse("volumes", args=["team-a"])).content.decode()
    MirrorObject.objects.filter(pk=claim.pk).update(owner=owner_label(Volume.objects.get()))
    assert said not in browser.get(reverse("volumes", args=["team-a"])).content.decode()


def test_health_says_that_another_cluster_is_reached(reached: Cluster) -> None:
    found = health_queries.health(reached, catalog_checks(reached, is_staff=False))
    assert "the portal reaches another cluster than before" in found.verdict
    assert not found.is_well
