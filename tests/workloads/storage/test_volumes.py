"""Volumes: one run at a time uses one, deletion has a grace and can be undone, and the worker deletes the claim."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.models import AppliedObject
from portal.core import due
from portal.core.due import DONE, Deadline
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.rows import make, mirrored
from tests.support.rows.claims import claim
from tests.support.threads import in_threads
from tests.support.waiting import wait_until
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume
from workloads.storage import actions as storage_actions
from workloads.storage import reconcile as storage_reconcile
from workloads.storage.policy import GRACE
from workloads.storage.queries import deletes_at


def ended(name: str = "one") -> None:
    Run.objects.filter(workload__name=name, ended_at=None).update(ended_at=Now(), outcome="stopped")


def long_asked() -> None:
    Volume.objects.update(delete_requested_at=timezone.now() - GRACE)


@pytest.fixture
def with_data(granted: Tenant, notebook: LaunchSpec, by_alice: Actor, db: None) -> LaunchSpec:
    """Alice's notebook, with the volume that it created."""
    wanted = replace(notebook, volume="data")
    actions.launch(granted.slug, wanted, by=by_alice)
    return wanted


@pytest.mark.django_db
class TestOneRunAtATime:
    def test_a_second_launch_is_told_who_has_it(self, with_data: LaunchSpec, by_bob: Actor) -> None:
        with pytest.raises(
            Refused, match=r"used by one, started by Alice on .*\. Only one run at a time.*Stop one"
        ) as no:
            actions.launch("team-a", replace(with_data, name="two"), by=by_bob)
        assert (no.value.refusal.code, no.value.refusal.field) == ("volume_in_use", "volume")
        assert not Run.objects.filter(workload__name="two").exists()
        ended()
        actions.launch("team-a", replace(with_data, name="two"), by=by_bob)

    def test_so_is_who_starts_again(self, with_data: LaunchSpec, by_alice: Actor) -> None:
        ended()
        actions.launch("team-a", replace(with_data, name="two"), by=by_alice)
        with pytest.raises(Refused, match="used by two"):
            actions.start("team-a", "one", by=by_alice)
        ended("two")
        assert actions.start("team-a", "one", by=by_alice).number == 2

    def test_another_workload_may_be_declared_with_it_meanwhile(self, with_data: LaunchSpec, by_alice: Actor) -> None:
        workload, _ = actions.declare("team-a", replace(with_data, name="two"), by=by_alice)
        assert workload.volume == Volume.objects.get()

    def test_a_volume_of_that_name_in_another_team_is_another(
        self, with_data: LaunchSpec, namespace_a: Namespace, a100: GpuClass
    ) -> None:
        team_b = make.tenant(namespace_a.cluster, slug="team-b")
        other = Volume.objects.create(namespace=Namespace.objects.get(tenant=team_b), name="data", size_gib=1)
        storage_actions.attach(other, other.namespace, a100)


@pytest.mark.django_db(transaction=True)
def test_of_two_starts_at_the_same_moment_one_gets_it(with_data: LaunchSpec, by_alice: Actor) -> None:
    ended()
    actions.declare("team-a", replace(with_data, name="two"), by=by_alice)
    names, refused = iter(["one", "two"]), []

    def start() -> None:
        try:
            actions.start("team-a", next(names), by=by_alice)
        except Refused as no:
            refused.append(no.refusal.code)

    in_threads(2, start)
    assert refused == ["volume_in_use"]
    assert Run.objects.filter(ended_at=None).count() == 1


@pytest.mark.django_db
class TestDeleting:
    def test_not_while_a_run_has_it(self, with_data: LaunchSpec, by_alice: Actor) -> None:
        with pytest.raises(Refused, match=r"used by one, started by Alice on .*\. Stop one first"):
            storage_actions.request_delete("team-a", "data", by=by_alice)
        assert Volume.objects.get().delete_requested_at is None

    def test_it_has_a_grace_in_which_nothing_starts_with_it(self, with_data: LaunchSpec, by_alice: Actor) -> None:
        ended()
        volume = storage_actions.request_delete("team-a", "data", by=by_alice)
        storage_actions.request_delete("team-a", "data", by=by_alice)
        assert Event.objects.filter(verb="volume.delete_asked").count() == 1
        for attempt in (
            lambda: actions.start("team-a", "one", by=by_alice),
            lambda: actions.launch("team-a", replace(with_data, name="two"), by=by_alice),
            lambda: actions.declare("team-a", replace(with_data, name="two"), by=by_alice),
        ):
            with pytest.raises(Refused, match="The volume data is marked for deletion on") as no:
                attempt()
            assert no.value.refusal.code == "volume_going"
        outcome = storage_reconcile.reconcile(volume, Deadline(), kube=None)  # type: ignore[arg-type]
        assert outcome.clock == deletes_at(volume)

    def test_it_can_be_kept_after_all(self, with_data: LaunchSpec, by_alice: Actor, by_bob: Actor) -> None:
        ended()
        with pytest.raises(Refused, match="data is not marked for deletion"):
            storage_actions.cancel_delete("team-a", "data", by=by_bob)
        storage_actions.request_delete("team-a", "data", by=by_alice)
        storage_actions.cancel_delete("team-a", "data", by=by_bob)
        assert storage_reconcile.reconcile(Volume.objects.get(), Deadline(), kube=None) == DONE  # type: ignore[arg-type]
        actions.start("team-a", "one", by=by_alice)

    def test_when_its_time_is_over_it_is_too_late(self, with_data: LaunchSpec, by_alice: Actor) -> None:
        ended()
        storage_actions.request_delete("team-a", "data", by=by_alice)
        Volume.objects.update(delete_requested_at=timezone.now() - GRACE + timedelta(minutes=1))
        storage_actions.cancel_delete("team-a", "data", by=by_alice)
        storage_actions.request_delete("team-a", "data", by=by_alice)
        long_asked()
        with pytest.raises(Refused, match=r"deletion of data started on .* and cannot be canceled"):
            storage_actions.cancel_delete("team-a", "data", by=by_alice)

    def test_a_member_deletes_what_nobody_else_used(
        self, with_data: LaunchSpec, by_alice: Actor, by_bob: Actor, alice: User
    ) -> None:
        ended()
        with pytest.raises(Refused, match="Only owners and managers") as no:
            storage_actions.request_delete("team-a", "data", by=by_bob)
        assert no.value.refusal.status == 403
        Membership.objects.filter(user=alice).update(role="member")
        storage_actions.request_delete("team-a", "data", by=by_alice)
        storage_actions.cancel_delete("team-a", "data", by=by_alice)
        actions.launch("team-a", replace(with_data, name="two"), by=by_bob)
        ended("two")
        with pytest.raises(Refused, match="Only owners and managers"):
            storage_actions.request_delete("team-a", "data", by=by_alice)

    def test_a_stranger_knows_of_none(self, with_data: LaunchSpec, by_charlie: Actor) -> None:
        for verb in (storage_actions.request_delete, storage_actions.cancel_delete):
            with pytest.raises(Refused) as no:
                verb("team-a", "data", by=by_charlie)
            assert no.value.refusal.status == 404

    def test_viewers_look_on(self, with_data: LaunchSpec, granted: Tenant) -> None:
        ended()
        viewer = make.user("Vera")
        make.member(granted, viewer, Membership.Role.VIEWER)
        with pytest.raises(Refused, match="Only owners and managers"):
            storage_actions.request_delete("team-a", "data", by=Actor(user=viewer, via="page"))


PAGE, API = "/teams/team-a/volumes", "/api/v1/volumes"


@pytest.fixture
def at(with_data: LaunchSpec, alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def text_of(client: Client, page: str = PAGE) -> str:
    return " ".join(client.get(page).content.decode().split())


@pytest.mark.django_db
class TestPages:
    def test_the_list_says_who_has_it_and_leads_to_a_launch_when_nobody_does(self, at: Client) -> None:
        page = text_of(at)
        assert 'Used by <a href="/teams/team-a/workloads/one">one</a>, started by Alice' in page
        assert "?volume=data" not in page
        assert "Stop one first" in page
        ended()
        page = text_of(at)
        assert "Not in use." in page
        assert 'href="/teams/team-a/launch?volume=data"' in page
        assert 'href="/teams/team-a/volumes"' in text_of(at, "/teams/team-a/workloads")

    def test_deleting_asks_for_the_name_and_can_be_undone(self, at: Client) -> None:
        ended()
        assert at.post(f"{PAGE}/data/delete", {"confirm": "dat"}).status_code == 422
        assert Volume.objects.get().delete_requested_at is None
        at.post(f"{PAGE}/data/delete", {"confirm": "data"})
        page = text_of(at)
        assert "Marked for deletion" in page
        assert "Cancel deletion</button>" in page
        assert "?volume=data" not in page
        at.post(f"{PAGE}/data/keep")
        assert Volume.objects.get().delete_requested_at is None

    def test_states_are_what_the_cluster_shows(self, at: Client, namespace_a: Namespace) -> None:
        def state() -> tuple[str, str]:
            [one] = at.get(API).json()["items"]
            return one["state"], one["message"]

        assert state() == ("unknown", "The cluster has not been read yet.")
        volume = Volume.objects.get()
        owner = f"workloads.volume.{volume.pk}"
        cluster = namespace_a.cluster
        mirrored.seen(cluster)
        assert state()[0] == "unmade"
        names = {"kind": "PersistentVolumeClaim", "namespace": namespace_a.name, "name": "data"}
        at_minus_1 = timezone.now() - timedelta(minutes=1)
        sent = AppliedObject.objects.create(
            cluster=cluster, owner=owner, **names, result="applied", uid="u", sent_at=at_minus_1, manifest_hash="x"
        )
        assert state()[0] == "missing"
        assert "Its claim was deleted in the cluster" in text_of(at)
        for version, phase in (("10", "Pending"), ("11", "Bound"), ("12", "Lost")):
            raw = claim("data", namespace_a.name, 10)
            raw["metadata"]["resourceVersion"] = version
            mirrored.seen(cluster, PersistentVolumeClaim=[{**raw, "status": {"phase": phase}}])
            assert state()[0] == phase.lower()
        assert "?volume=data" not in text_of(at)
        raw = claim("data", namespace_a.name, 10)
        raw["metadata"] |= {"resourceVersion": "13", "deletionTimestamp": "2026-11-21T09:00:00Z"}
        mirrored.seen(cluster, PersistentVolumeClaim=[{**raw, "status": {"phase": "Bound"}}])
        assert state() == ("terminating", "It is being deleted in the cluster. Runs with it cannot start.")
        AppliedObject.objects.filter(pk=sent.pk).update(result="refused", text="exceeded quota")
        assert state() == ("refused", "The cluster rejected it: exceeded quota")

    def test_the_api_lists_deletes_and_keeps(self, at: Client, with_data: LaunchSpec) -> None:
        [one] = at.get(API).json()["items"]
        assert (one["name"], one["size_gib"], one["deletes_at"]) == ("data", 10, None)
        assert (one["used_by"]["workload"], one["used_by"]["person"]) == ("one", "Alice")
        assert at.post(f"{API}/data/delete", content_type="application/json").json()["code"] == "volume_in_use"
        ended()
        assert at.post(f"{API}/data/delete", content_type="application/json").json()["deletes_at"] is not None
        assert at.post(f"{API}/data/keep", content_type="application/json").json()["deletes_at"] is None
        assert at.post(f"{API}/data/keep", content_type="application/json").json()["code"] == "not_deleting"
        assert at.post(f"{API}/other/keep", content_type="application/json").status_code == 404

    def test_a_stranger_gets_nothing(self, at: Client, charlie: User) -> None:
        at.force_login(charlie)
        assert at.get(PAGE).status_code == 404
        assert at.get(f"{API}?team=team-a").status_code == 404
        assert at.post(f"{PAGE}/data/delete", {"confirm": "no"}).status_code == 404
        assert at.post(f"{PAGE}/data/keep").status_code == 404

    def test_what_the_list_asks_the_database(
        self, at: Client, namespace_a: Namespace, django_assert_num_queries: Any
    ) -> None:
        mirrored.seen(namespace_a.cluster)
        for number in range(20):
            Volume.objects.create(namespace=namespace_a, name=f"v{number}", size_gib=1, due_at=None)
        # session, user, team; volumes, age of the mirror, claims, what was sent, runs; teams of the bar
        with django_assert_num_queries(9):
            assert at.get(PAGE).status_code == 200

    def test_a_workload_says_where_its_files_are(self, at: Client, with_data: LaunchSpec, by_alice: Actor) -> None:
        page = text_of(at, "/teams/team-a/workloads/one")
        assert "/home/work on the volume data; kept when it stops" in page
        assert "The volume data and all data there are kept." in page
        actions.launch("team-a", replace(with_data, name="bare", volume=""), by=by_alice)
        page = text_of(at, "/teams/team-a/workloads/bare")
        assert "deleted when it stops" in page
        assert "It has no volume: its files are deleted." in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("provisioned", "watcher")
def test_the_worker_deletes_the_claim_and_the_name_is_free(
    notebook: LaunchSpec, by_alice: Actor, namespace_a: Namespace, kube_worker: Kube, worker: Worker
) -> None:
    def theirs() -> Any:
        try:
            return kube_worker.get("PersistentVolumeClaim", name="data", namespace=namespace_a.name)
        except NotFound:
            return None

    def drained() -> None:
        while (claimed := due.claim(Volume)) is not None:
            due.run_claimed(claimed, lambda row, deadline: storage_reconcile.reconcile(row, deadline, kube=kube_worker))

    wanted = replace(notebook, volume="data")
    actions.launch("team-a", wanted, by=by_alice)
    worker(theirs)
    uid = theirs().uid
    actions.stop("team-a", "one", by=by_alice)
    worker(lambda: not Run.objects.filter(ended_at=None).exists())
    storage_actions.request_delete("team-a", "data", by=by_alice)
    drained()
    assert theirs().uid == uid
    long_asked()
    Volume.objects.update(due_at=Now())

    def is_gone() -> bool:
        Volume.objects.filter(gone_at=None).update(due_at=Now())
        drained()
        return Volume.objects.get().gone_at is not None

    wait_until(is_gone, within_s=30)
    assert theirs() is None
    event = Event.objects.get(verb="volume.gone")
    assert (event.tenant, event.after["size_gib"]) == ("team-a", 10)
    with pytest.raises(Refused, match="The volume data was deleted"):
        actions.start("team-a", "one", by=by_alice)
    actions.launch("team-a", replace(wanted, name="two"), by=by_alice)
    worker(lambda: (now := theirs()) is not None and now.uid != uid)
