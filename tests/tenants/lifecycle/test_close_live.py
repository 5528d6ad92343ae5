"""Closing on the real API server: what runs in the grace, what is kept with the volumes, and what blocks the end."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.apply.reconcile import create_once
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import ClaimSpec
from cluster.models import AppliedObject
from devcluster.client.kube import Api, ApiError
from portal.core.due import DONE, Outcome, owner_label
from tenants.lifecycle import actions as lifecycle_actions
from tenants.lifecycle.closing import schedule
from tenants.models import Namespace, Tenant
from tests.support.cluster.namespace_objects import KINDS, objects_of, stop_policy
from tests.support.cluster.queued import admitted, launch, spec
from tests.support.http.pages import page
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("clean_cluster")
CLAIMS = "v1/persistentvolumeclaims"
NAMESPACES = "v1/namespaces"
DAY = timedelta(days=1)
FINALIZER = "example.org/keep"


def text(answer: Any) -> str:
    return " ".join(html.unescape(answer.content.decode()).split())


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


@pytest.fixture
def claim(namespace_a: Namespace, kube_worker: Kube) -> Callable[[], None]:
    """A volume of the team, as a worker creates it."""

    def make_claim() -> None:
        owner = "workloads.volume.1"
        wanted = manifests.volume_claim(ClaimSpec(owner=owner, namespace=namespace_a.name, name="data", size_gib=5))
        create_once(kube=kube_worker, cluster_id=namespace_a.cluster_id, owner=owner, manifest=wanted)

    return make_claim


def test_in_the_grace_what_runs_goes_on_and_nothing_new_starts(
    look: Callable[[], Outcome],
    team_a: Tenant,
    a100: GpuClass,
    namespace_a: Namespace,
    kube_worker: Kube,
    admin: Api,
    olga: User,
) -> None:
    make.grant(team_a, a100, units=2)
    look()
    launch(kube_worker, a100, namespace_a, name="runs")
    wait_until(lambda: "runs-1" in admitted(admin, namespace_a))
    row = lifecycle_actions.set_namespace_state(namespace_a.pk, to="closed", by=page(olga))
    assert look().clock == row.closes_at
    assert stop_policy(admin, namespace_a) == "Hold"
    launch(kube_worker, a100, namespace_a, name="new")
    wait_until(lambda: len(admin.list("kueue.x-k8s.io/v1beta2/workloads", namespace=namespace_a.name)) == 2)
    look()
    assert set(admitted(admin, namespace_a)) == {"runs-1"}

    lifecycle_actions.set_namespace_state(namespace_a.pk, to="active", by=page(olga))
    look()
    wait_until(lambda: set(admitted(admin, namespace_a)) == {"runs-1", "new-1"})


def test_volumes_are_kept_alone_until_their_day(
    look: Callable[[], Outcome],
    claim: Callable[[], None],
    team_a: Tenant,
    a100: GpuClass,
    namespace_a: Namespace,
    kube_worker: Kube,
    admin: Api,
) -> None:
    make.grant(team_a, a100, units=2)
    look()
    claim()
    job = manifests.job(spec(a100, namespace_a, name="train"))
    create_once(kube=kube_worker, cluster_id=a100.cluster_id, owner="workloads.workload.1", manifest=job)
    wait_until(lambda: "train-1" in admitted(admin, namespace_a))
    make.close(namespace_a.name, keep=20 * DAY)
    outcome = wait_until(kept(look), within_s=60, every_s=0.5)

    namespace_a.refresh_from_db()
    assert namespace_a.volumes_until is not None
    assert outcome.clock == namespace_a.volumes_until - schedule.REMIND_BEFORE
    assert {item["kind"] for item in objects_of(admin, namespace_a)} == {"Namespace", "ResourceQuota"}
    assert admin.find("batch/v1/jobs", "train-1", namespace=namespace_a.name) is None
    hard = admin.get(KINDS["ResourceQuota"], "gpu-portal", namespace=namespace_a.name)["spec"]["hard"]
    assert set(hard.values()) == {"0"}
    assert {"pods", "requests.cpu", "requests.nvidia.com/gpu", "count/jobs.batch"} <= hard.keys()
    with pytest.raises(ApiError, match="exceeded quota"):
        admin.create(a_claim("more"), namespace=namespace_a.name)
    uid = admin.get(CLAIMS, "data", namespace=namespace_a.name)["metadata"]["uid"]

    # The namespace is reconciled again before `volumes_until`, which is an hour away: it stays.
    soon = timezone.now() + timedelta(hours=1)
    Namespace.objects.filter(pk=namespace_a.pk).update(closes_at=soon - 20 * DAY, volumes_until=soon)
    for _ in range(2):
        assert look().clock == soon
    assert Event.objects.filter(verb="namespace.reminded").count() == 1
    still = admin.get(CLAIMS, "data", namespace=namespace_a.name)["metadata"]
    assert (still["uid"], still.get("deletionTimestamp")) == (uid, None)

    Namespace.objects.filter(pk=namespace_a.pk).update(volumes_until=timezone.now())
    wait_until(lambda: look() == DONE, within_s=60, every_s=0.5)
    assert admin.find(NAMESPACES, namespace_a.name) is None
    namespace_a.refresh_from_db()
    assert namespace_a.gone_at is not None
    assert not AppliedObject.objects.filter(owner=owner_label(namespace_a)).exists()
    told = Delivery.objects.filter(user__email="alice@example.org").order_by("pk")
    subjects = list(told.values_list("subject", flat=True))
    assert [subject.split(" on ")[0] for subject in subjects] == [
        "The volumes of Team A will be deleted",
        "Team A was deleted from the cluster",
    ]


def test_without_kueue_jobs_go_before_volumes_are_kept(
    look: Callable[[], Outcome],
    claim: Callable[[], None],
    a100: GpuClass,
    namespace_a: Namespace,
    kube_worker: Kube,
    admin: Api,
) -> None:
    type(a100.cluster).objects.update(queue_system="none")
    look()
    claim()
    job = manifests.job(spec(a100, namespace_a, name="train"))
    create_once(kube=kube_worker, cluster_id=a100.cluster_id, owner="workloads.workload.1", manifest=job)
    make.close(namespace_a.name, keep=20 * DAY)
    wait_until(kept(look), within_s=60, every_s=0.5)
    assert admin.find("batch/v1/jobs", "train-1", namespace=namespace_a.name) is None
    assert admin.find(CLAIMS, "data", namespace=namespace_a.name)


def test_a_team_without_volumes_is_gone_at_once(
    look: Callable[[], Outcome], a100: GpuClass, namespace_a: Namespace, admin: Api
) -> None:
    look()
    make.close(namespace_a.name, keep=20 * DAY)
    wait_until(kept(look), within_s=60, every_s=0.5)
    assert admin.find(NAMESPACES, namespace_a.name), "nobody knows: there may be some that were not sent by us"
    mirrored.seen(a100.cluster)
    wait_until(lambda: look() == DONE, within_s=60, every_s=0.5)
    assert admin.find(NAMESPACES, namespace_a.name) is None


def test_what_blocks_a_namespace_is_said_until_it_is_taken_away(
    look: Callable[[], Outcome], a100: GpuClass, namespace_a: Namespace, admin: Api, alice: User, olga: User
) -> None:
    look()
    blocker = {"name": "mine", "namespace": namespace_a.name, "finalizers": [FINALIZER]}
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": blocker}, namespace=namespace_a.name)
    make.close(namespace_a.name)

    def is_blocked() -> bool:
        assert look() != DONE
        conditions = admin.get(NAMESPACES, namespace_a.name).get("status", {}).get("conditions", [])
        return any(one["type"] == "NamespaceFinalizersRemaining" and one["status"] == "True" for one in conditions)

    wait_until(is_blocked, within_s=60, every_s=0.5)
    raw = admin.get(NAMESPACES, namespace_a.name)
    raw["metadata"]["deletionTimestamp"] = f"{timezone.now() - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    mirrored.seen(a100.cluster, Namespace=[raw])
    said = f"Finalizer {FINALIZER} blocks the deletion of 1 object. Remaining objects: 1 configmaps."
    do = f"kubectl -n {namespace_a.name} get configmaps"
    team = text(signed_in(alice).get("/teams/team-a/members"))
    assert "Deletion in the cluster is blocked." in team
    assert said in team
    assert do in team
    health = text(signed_in(olga).get("/health"))
    assert said in health
    assert do in health
    assert "1 namespace stuck in termination" in health
    answer = json.loads(signed_in(alice).get("/api/v1/teams/team-a/namespace").content)
    assert [one["said"] for one in answer["stuck"]["blockers"]] == [said]

    patch = {"metadata": {"finalizers": None}}
    admin.patch("v1/configmaps", "mine", patch, namespace=namespace_a.name)
    wait_until(lambda: look() == DONE, within_s=60, every_s=0.5)
    assert admin.find(NAMESPACES, namespace_a.name) is None
    mirrored.seen(a100.cluster)
    assert "cannot go" not in text(signed_in(olga).get("/health"))
    team = text(signed_in(alice).get("/teams/team-a/members"))
    assert "still exists" not in team
    assert "All objects deleted on" in team


def kept(look: Callable[[], Outcome]) -> Callable[[], Outcome | None]:
    """Returns a function that reconciles and returns the outcome once all is applied and only a later time is left."""

    def answer() -> Outcome | None:
        outcome = look()
        return outcome if outcome.is_applied and outcome.clock else None

    return answer


def a_claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
