"""A held, missing or broken queue, checks that send work back, and a namespace that is deleted: on real Kueue.

The test does in the cluster what operators would do; the portal's workers do their own part.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube, connect
from cluster.observe_only.actions import set_observe_only
from devcluster.client.kube import Api, ApiError
from devcluster.client.types import Json
from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES
from portal.core import due
from portal.core.due import Deadline
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile as tenants
from tests.support.cluster.policies import created, denies, refusal
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, is_open, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import by_hand, follow, help_of
from tests.workloads.situations.test_problems_live import cpu
from tests.workloads.situations.test_problems_shared_live import own
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.runs.restart import reconcile_and_restart

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# Fixtures of other modules, by name.
__all__ = ["by_hand", "cpu", "own"]

KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE = (f"{KUEUE}/localqueues", "gpu-portal")
Stand = Callable[[str, str], None]


@pytest.fixture
def stand(by_alice: Actor, worker: Worker) -> Stand:
    """Waits until the run is reported as the situation of that name was written."""

    def stand(situation: str, name: str) -> None:
        reason = IN_QUEUE[situation].reason
        worker(lambda: told()[name][1] == reason)
        as_written(IN_QUEUE[situation], shown(name).status, help_of(by_alice, name))

    return stand


def until_open(namespace: Namespace, kube: Kube) -> None:
    """Opens the namespace as the worker does."""
    wait_until(lambda: is_open(namespace, kube))


# ---- queues that do not start workloads ------------------------------------------------------------------------------


def unnoticed(admin: Api, namespace: str, name: str) -> AbstractContextManager[None]:
    """A policy prevents Kueue from creating Workloads for Jobs named `ignored`."""
    rules = created("workloads", group=KUEUE.partition("/")[0], versions="*")
    container = {"name": "one", "image": "none"}
    trial: Json = {
        "apiVersion": KUEUE, "kind": "Workload", "metadata": {"name": "job-ignored-trial", "namespace": namespace},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}]},
    }  # fmt: skip
    return denies(
        admin, namespace, name, rules=rules, unless="!object.metadata.name.startsWith('job-ignored-')",
        message="not here", until=lambda: "not here" in refusal(admin, trial),
    )  # fmt: skip


class Check:
    """An admission check whose controller is the test."""

    def __init__(self, admin: Api, namespace: str, name: str) -> None:
        self._admin, self._namespace, self._name = admin, namespace, name

    def ask(self) -> None:
        """From now on the team's ClusterQueue requires the check."""
        checks = {"admissionChecks": [{"name": self._name}]}
        body = {"spec": {"admissionChecksStrategy": checks}}
        self._admin.patch(f"{KUEUE}/clusterqueues", self._namespace, body)

    def make(self) -> None:
        spec = {"controllerName": "example.org/tests"}
        made = {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": self._name}, "spec": spec}
        self._admin.create(made)
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": now()}
        status = {"status": {"conditions": [active]}}
        self._admin.patch(f"{KUEUE}/admissionchecks", self._name, status, subresource="status")

    def say(self, job: str, state: str, **more: int) -> bool:
        """Sets the check's state on the job's Workload; False while it has no quota, or if it has changed meanwhile."""
        for one in self._admin.list(f"{KUEUE}/workloads", namespace=self._namespace):
            status = one.get("status", {})
            if one["metadata"]["ownerReferences"][0]["name"] != job or "admission" not in status:
                continue
            entry = {"name": self._name, "state": state, "message": "", "lastTransitionTime": now(), **more}
            one["status"]["admissionChecks"] = [entry]
            path = f"/apis/{KUEUE}/namespaces/{self._namespace}/workloads/{one['metadata']['name']}/status"
            try:
                self._admin.request("PUT", path, one)
            except ApiError as error:
                if error.status != 409:
                    raise
                return False
            return True
        return False

    def remove(self) -> None:
        self._admin.patch(f"{KUEUE}/clusterqueues", self._namespace, {"spec": {"admissionChecksStrategy": None}})
        self._admin.delete(f"{KUEUE}/admissionchecks", self._name)


def now() -> str:
    return f"{datetime.now(UTC):%FT%TZ}"


def test_a_queue_that_holds_back_what_could_start(
    own: GpuClass, job: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, by_hand: Client, worker: Worker, admin: Api, stand: Stand, unique: str,
) -> None:  # fmt: skip
    """Six GPUs are granted and free; the run is blocked by one cause after the other, never by a lack of GPUs."""
    GpuClass.objects.filter(pk=own.pk).update(borrowing_limit=0)
    make.grant(team_a, own, units=6)
    provision(namespace_a, kube_worker)
    wanted = replace(job, gpu_class=own.slug)

    def launch(name: str) -> None:
        actions.launch("team-a", replace(wanted, name=name), by=by_alice)

    check = Check(admin, namespace_a.name, f"check-{unique}")
    with unnoticed(admin, namespace_a.name, f"unnoticed-{unique}"):
        # Operators hold the queue.
        admin.patch(*QUEUE, {"spec": {"stopPolicy": "Hold"}}, namespace=namespace_a.name)
        launch("old")
        stand("local queue held", "old")

        # The nodes are relabelled meanwhile, and the class with them.
        relabel(admin, own, f"NEW-{unique}")
        tenants.reconcile_pool(Pool.objects.get(), Deadline(), kube=kube_worker)
        until_open(namespace_a, kube_worker)
        admin.patch(*QUEUE, {"spec": {"stopPolicy": "None"}}, namespace=namespace_a.name)
        launch("ignored")
        stand("flavor mismatch", "old")
        follow(by_hand, help_of(by_alice, "old").steps[0].href)
        worker(lambda: told()["old"] == RUNNING)

        # The queue was deleted; the portal creates it again.
        admin.delete(*QUEUE, namespace=namespace_a.name)
        launch("orphan")
        stand("local queue missing", "orphan")
        until_open(namespace_a, kube_worker)
        worker(lambda: told()["orphan"] == RUNNING)

        # The queue requires a check that does not exist.
        check.ask()
        launch("checked")
        stand("cluster queue inactive", "checked")
        check.make()
        stand("check not ready", "checked")
        wait_until(lambda: check.say("checked-1", "Retry", requeueAfterSeconds=4))
        stand("requeued with back-off", "checked")
        worker(lambda: told()["checked"] == ("queued", "checked"))
        wait_until(lambda: check.say("checked-1", "Ready"))
        worker(lambda: told()["checked"] == RUNNING)
        check.remove()

        stand("suspended without a Workload", "ignored")
    worker(lambda: told() == dict.fromkeys(("old", "orphan", "checked", "ignored"), RUNNING))


def relabel(admin: Api, own: GpuClass, product: str) -> None:
    key = "nvidia.com/gpu.product"
    for node in admin.list("v1/nodes", labels=f"{key}={own.node_labels[key]}"):
        admin.patch("v1/nodes", node["metadata"]["name"], {"metadata": {"labels": {key: product}}})
    GpuClass.objects.filter(pk=own.pk).update(node_labels={key: product})


# ---- a namespace that is deleted and created again -------------------------------------------------------------------


def test_a_namespace_that_goes_and_comes_again(
    cpu: GpuClass, job: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, worker: Worker, admin: Api, stand: Stand,
) -> None:  # fmt: skip
    """An object in the namespace blocks its deletion; then the namespace does not exist at all."""
    make.grant(team_a, cpu, units=2)
    provision(namespace_a, kube_worker)
    name = namespace_a.name
    stays = {"name": "stays", "namespace": name, "finalizers": ["example.org/stays"]}
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": stays})
    admin.delete("v1/namespaces", name)
    actions.launch("team-a", replace(job, gpu_class=cpu.slug), by=by_alice)
    stand("namespace terminating", "train")

    admin.patch("v1/configmaps", "stays", {"metadata": {"finalizers": None}}, namespace=name)
    stand("namespace missing", "train")
    until_open(namespace_a, kube_worker)
    worker(lambda: told()["train"] == RUNNING)


# ---- an API server that the worker cannot reach ----------------------------------------------------------------------


def test_an_api_server_that_does_not_respond_to_the_worker(
    cpu: GpuClass, job: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, worker: Worker, services: dict[str, Any], tmp_path: Path,
) -> None:  # fmt: skip
    """The watcher reads on. The worker tries it once, and again when it is due."""
    make.grant(team_a, cpu, units=2)
    provision(namespace_a, kube_worker)
    actions.launch("team-a", replace(job, gpu_class=cpu.slug), by=by_alice)
    with ApiProxy(services["kubeconfigs"]["worker"], tmp_path) as proxy:
        proxy.when(WRITES, times=None).drop_before()
        claimed = due.claim(Workload)
        assert claimed is not None
        due.run_claimed(claimed, partial(reconcile_and_restart, kube=Kube(str(proxy.kubeconfig))))
    as_written(IN_QUEUE["API server down"], shown("train").status, help_of(by_alice, "train"))
    worker(lambda: told()["train"] == RUNNING)


# ---- a portal that may not write -------------------------------------------------------------------------------------


def test_a_portal_that_only_observes_the_cluster(
    cpu: GpuClass, job: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, worker: Worker, services: dict[str, Any], olga: User,
) -> None:  # fmt: skip
    """The worker tries it once, is refused by its own client, and again when an operator has ended that."""
    make.grant(team_a, cpu, units=2)
    provision(namespace_a, kube_worker)
    set_observe_only(namespace_a.cluster, wanted=True, by=Actor(olga, "page"))
    actions.launch("team-a", replace(job, gpu_class=cpu.slug), by=by_alice)
    own = connect(services["kubeconfigs"]["worker"])

    def work() -> None:
        while (claimed := due.claim(Workload)) is not None:
            due.run_claimed(claimed, partial(reconcile_and_restart, kube=own))

    work()
    as_written(IN_QUEUE["observe only"], shown("train").status, help_of(by_alice, "train"))
    set_observe_only(namespace_a.cluster, wanted=False, by=Actor(olga, "page"))
    work()
    assert Workload.objects.get().error_code == ""
    worker(lambda: told()["train"] == RUNNING)
