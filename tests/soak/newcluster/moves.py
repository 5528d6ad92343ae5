"""A cluster vanishes and another, empty one takes its place, both with a control plane of their own.

Takes about five minutes. The steps of docs/operators.md are followed literally; an independent client compares what it
finds in the new cluster with what it had found in the previous one, whose rows have not changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Pool
from cluster.client.errors import ClusterUnavailable
from cluster.client.kube import Kube
from cluster.models import AdmissionPeriod, AppliedObject, Cluster, MirrorNode
from cluster.replacement.server_check import ServerCheck
from desk.installation.moving.queries import move_of
from devcluster.client.kube import MERGE, Api, ApiError
from devcluster.client.kubeconfig import read_kubeconfig, write_kubeconfig
from devcluster.services import stack as services_of_its_own
from operations.cordons.following import follow_cordons
from operations.maintenance.actions import plan_maintenance
from operations.maintenance.reconcile import reconcile_maintenance
from operations.models import Maintenance, NodeCordon
from portal.core import due
from portal.core.due import Due, TryLater
from tenants.models import Membership, Namespace, Tenant
from tenants.provisioning import reconcile as provisioning
from tenants.provisioning import steps
from tests.desk.installation.drill import manage
from tests.support.cluster.worker import provision
from tests.support.processes.watchers import Watchers, eventually, is_current
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import run_of
from workloads.credentials import sealing
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, TeamSecret, Volume, Workload
from workloads.runs.restart import reconcile_and_restart
from workloads.storage import reconcile as storage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1800)]
MADE_AGAIN = (
    "v1/namespaces", "v1/resourcequotas", "v1/limitranges", "networking.k8s.io/v1/networkpolicies",
    "rbac.authorization.k8s.io/v1/rolebindings", "kueue.x-k8s.io/v1beta2/resourceflavors",
    "kueue.x-k8s.io/v1beta2/cohorts", "kueue.x-k8s.io/v1beta2/clusterqueues", "kueue.x-k8s.io/v1beta2/localqueues",
)  # fmt: skip
CONTENT = ("spec", "roleRef", "subjects")
OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}
Found = dict[tuple[str, str, str], object]


@dataclass
class Identity:
    """One kubeconfig that a running process reads again when it changes."""

    path: Path
    name: str

    def move_to(self, services: dict[str, Any]) -> None:
        found = read_kubeconfig(Path(services["kubeconfigs"][self.name]))
        write_kubeconfig(self.path.with_suffix(".new"), found["cluster"], found["user"]).rename(self.path)


@dataclass
class Portal:
    """A watcher process, and the workers' part in this process."""

    cluster: Cluster
    watchers: Watchers
    kube: Kube

    def work(self) -> None:
        each: list[tuple[type[Due], Callable[..., Any]]] = [
            (Pool, provisioning.reconcile_pool),
            (Namespace, steps.work_on_namespace),
            (Workload, reconcile_and_restart),
            (Volume, storage.reconcile),
            (Maintenance, reconcile_maintenance),
        ]
        for model, reconcile in each:
            while (claimed := due.claim(model)) is not None:
                due.run_claimed(claimed, partial(reconcile, kube=self.kube))
        follow_cordons(self.cluster)

    def until(self, true: Callable[[], object], what: str, within_s: float = 120) -> None:
        def step() -> bool:
            self.work()
            return bool(true())

        wait_until(step, within_s=within_s, every_s=0.5, what=what, story=self._told)

    def _told(self) -> str:
        rows = [(model.__name__, str(row), row.error_code, row.error_text) for model in due.due_models()
                for row in model._base_manager.exclude(error_code="")]  # fmt: skip
        sent = AppliedObject.objects.exclude(result="applied").values_list("kind", "name", "result", "code", "text")
        return "\n".join(map(str, [*rows, *sent]))


@contextmanager
def control_plane(services: dict[str, Any], state: Path) -> Iterator[services_of_its_own.Stack]:
    """A cluster of its own, on the stores of the tests."""
    stores = {"database_url": services["database_url"], "redis_url": services["redis_url"]}
    with services_of_its_own.Stack(services_of_its_own.Options(state=state, notebooks=False, **stores)) as found:
        found.start()
        yield found


def listed(admin: Api, resource: str) -> list[dict[str, Any]]:
    """A server that has just begun asks to come back."""
    found: list[list[dict[str, Any]]] = []

    def answers() -> bool:
        try:
            found.append(admin.list(resource))
        except ApiError as error:
            if error.status != 429:
                raise
        return bool(found)

    wait_until(answers, within_s=60, what=f"a list of {resource}")
    return found[0]


def made(admin: Api) -> Found:
    """What the portal has made, without what differs in every cluster."""
    found: Found = {}
    for resource in MADE_AGAIN:
        for one in listed(admin, resource):
            about = one["metadata"]
            if about.get("labels", {}).items() >= OURS.items():
                labels = {key: value for key, value in about["labels"].items() if key.startswith("gpu-portal/")}
                key = (resource, about.get("namespace", ""), about["name"])
                found[key] = (labels, {part: one[part] for part in CONTENT if part in one and key[0] != MADE_AGAIN[0]})
    return found


def jobs(admin: Api) -> list[str]:
    return sorted(
        one["metadata"]["name"] for one in admin.list("batch/v1/jobs") if one["metadata"]["namespace"] != "gpu-portal"
    )


def held_nodes(admin: Api) -> list[str]:
    return sorted(
        node["metadata"]["name"]
        for node in admin.list("v1/nodes")
        if any(taint["key"] == "gpu-portal/maintenance" for taint in node["spec"].get("taints", ()))
    )


def test_a_lost_cluster_is_replaced_by_an_empty_one(
    granted: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, job: LaunchSpec, notebook: LaunchSpec,
    alice: User, olga: User, by_alice: Actor, services: dict[str, Any], unique: str, tmp_path: Path,
) -> None:  # fmt: skip
    other = make.tenant(cluster, slug="team-b", namespace=f"team-b-{unique}")
    make.member(other, alice, Membership.Role.OWNER)
    make.grant(other, a100, units=1)
    absent = make.gpu_class(cluster, slug=f"absent-{unique}", node_labels={"nvidia.com/gpu.product": "none-has-it"})
    TeamSecret.objects.create(namespace=namespace_a, created_by=alice, name="TOKEN", sealed=sealing.seal("a value"))
    watcher, worker = (Identity(tmp_path / name, name) for name in ("watcher", "worker"))
    page = Client()
    page.force_login(alice)

    with control_plane(services, tmp_path / "old") as old:
        watcher.move_to(old.services)
        worker.move_to(old.services)
        portal = Portal(
            cluster, Watchers(str(watcher.path), tmp_path), Kube(str(worker.path), server_check=ServerCheck())
        )
        portal.watchers.start()
        eventually(lambda: is_current(cluster), portal.watchers)
        provision(namespace_a, portal.kube)
        Namespace.objects.update(due_at=timezone.now())
        actions.launch("team-a", replace(job, options=Options(secrets=("TOKEN",))), by=by_alice)
        actions.launch("team-a", replace(notebook, volume="data", volume_gib=10), by=by_alice)
        actions.launch("team-a", replace(job, name="queued", units=2), by=by_alice)
        actions.launch("team-b", replace(job, name="theirs"), by=by_alice)
        portal.until(
            lambda: run_of("train").started_at and run_of("theirs").started_at and run_of("one").admitted_at,
            "runs of both teams",
        )
        portal.until(lambda: jobs(old.admin) == ["one-1", "queued-1", "theirs-1", "train-1"], "all Jobs")
        node = MirrorNode.objects.filter(name__startswith="a100-").order_by("-name")[0]
        spare = MirrorNode.objects.exclude(name__startswith="a100-").order_by("name")[0]
        now = timezone.now()
        by_olga = Actor(olga, "page")
        repair = plan_maintenance(
            cluster, [node.name], kind="hardware", reason="Fan.", by=by_olga,
            holds_from=now, starts_at=now + timedelta(hours=5), ends_at=now + timedelta(hours=6),
        )  # fmt: skip
        portal.until(lambda: held_nodes(old.admin) == [node.name], "the node is held")
        old.admin.patch("v1/nodes", spare.name, {"spec": {"unschedulable": True}}, content_type=MERGE)
        portal.until(lambda: NodeCordon.objects.filter(node=spare.name, ended_at=None).exists(), "a cordon of others")
        portal.until(lambda: not Namespace.objects.exclude(error_code="").exists(), "teams are settled")
        before = made(old.admin)
        cluster.refresh_from_db()
        first = cluster.uid
        assert first

    # It is gone. People go on.
    actions.launch("team-b", replace(job, name="asked"), by=by_alice)
    told = manage("compare", "--new-cluster")
    for text in (
        "job train, run 1: lost.", "notebook one, run 1: lost.", "job queued, run 1: lost.", "job theirs, run 1: lost.",
        "job asked, run 1: not submitted yet", "volume data, 10 GiB. Its files are not moved.",
        "4 runs lost, 1 submitted there, 1 volume (10 GiB) not moved.",
    ):  # fmt: skip
        assert text in told
    with suppress(ClusterUnavailable, TryLater):
        portal.work()
    assert not Run.objects.exclude(ended_at=None).exists()
    heard_until = timezone.now()

    with control_plane(services, tmp_path / "new") as new:
        empty = made(new.admin)
        watcher.move_to(new.services)
        worker.move_to(new.services)
        eventually(lambda: bool(Cluster.objects.get().other_uid), portal.watchers)
        for _ in range(3):
            for model in due.due_models():
                due.wake(model, model._base_manager.filter(due_at__isnull=False).values_list("pk", flat=True))
            portal.work()
        assert made(new.admin) == empty
        assert jobs(new.admin) == []
        assert not Run.objects.exclude(ended_at=None).exists()
        assert "The portal reaches another cluster than before</b>" in page.get("/catalog").content.decode()

        second = new.admin.get("v1/namespaces", "kube-system")["metadata"]["uid"]
        assert f"--confirm {second}" in manage("compare", "--new-cluster", code=1)
        assert "reaches no other cluster" in manage("compare", "--new-cluster", "--confirm", first, code=1)
        manage("compare", "--new-cluster", "--confirm", second)
        assert list(Event.objects.filter(verb="cluster.replaced").values_list("before", "after")) == [
            ({"uid": first}, {"uid": second})
        ]
        eventually(lambda: is_current(cluster), portal.watchers)

        with suppress(AssertionError):
            portal.until(lambda: made(new.admin) == before, "everything is made again as it was")
        assert made(new.admin) == before
        portal.until(lambda: run_of("asked").started_at, "what waited runs there")
        portal.until(lambda: Run.objects.filter(ended_at=None).count() == 1, "the other runs ended")
        lost = Run.objects.exclude(workload__name="asked")
        assert sorted(lost.values_list("workload__name", "number", "outcome", "reason")) == [
            (name, 1, "lost", "cluster_replaced") for name in ("one", "queued", "theirs", "train")
        ]
        assert jobs(new.admin) == ["asked-1"]
        assert not AdmissionPeriod.objects.filter(ended_at__gt=heard_until, admitted_at__lt=heard_until).exists()
        assert new.admin.list("v1/persistentvolumeclaims") == []
        assert "its files were not moved" in page.get(reverse("volumes", args=["team-a"])).content.decode()
        assert NodeCordon.objects.get().is_node_gone

        # The maintenance ended with the previous cluster: the node of this name is another machine.
        repair.refresh_from_db()
        assert repair.outcome == "canceled"
        assert held_nodes(new.admin) == []
        told = manage("compare", "--new-cluster", code=1)
        for text in (
            "4 runs of the previous cluster recorded as lost", "Namespaces as their rows want them: 2 of 2.",
            absent.slug,
            "volume data, 10 GiB. Missing: an operator restores the claim, or the team deletes the volume.",
        ):  # fmt: skip
            assert text in told

        # People begin again, with a restored volume of the same name.
        claim = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": namespace_a.name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
        }  # fmt: skip
        new.admin.create(claim)
        eventually(lambda: not move_of(Cluster.objects.get()).left, portal.watchers)
        actions.start("team-a", "train", by=by_alice)
        actions.start("team-a", "one", by=by_alice)
        portal.until(lambda: run_of("train").started_at and run_of("one").admitted_at, "runs start again")
        assert jobs(new.admin) == ["asked-1", "one-2", "train-2"]
        secret = new.admin.get("v1/secrets", "train-2", namespace=namespace_a.name)
        assert "secret.TOKEN" in secret["data"]
        assert len(new.admin.list("v1/persistentvolumeclaims")) == 1
        assert "Nothing is left to do for teams." in manage("compare", "--new-cluster")
        portal.until(lambda: made(new.admin) == before, "nothing of it has changed")
    portal.watchers.end()
