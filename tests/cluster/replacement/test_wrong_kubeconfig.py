"""A kubeconfig names an empty cluster by mistake, under a running watcher and a worker: nothing is lost or written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from cluster.client.kube import Kube
from cluster.models import AppliedObject, Cluster, MirrorJob
from cluster.reads import queries as mirror
from cluster.replacement.server_check import ServerCheck
from devcluster.client.kube import Api
from devcluster.client.kubeconfig import read_kubeconfig, write_kubeconfig
from portal.core import due
from tenants.models import Namespace, Tenant
from tenants.provisioning import steps
from tests.cluster.replacement.other_server import empty_server
from tests.support.cluster.second_api_server import SecondApiServer
from tests.support.cluster.worker import Worker
from tests.support.processes.watchers import Watchers, eventually, is_current
from tests.workloads.cases.run_state import is_running, run_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.runs.restart import reconcile_and_restart

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def elsewhere(services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondApiServer]:
    with empty_server(services, tmp_path_factory.mktemp("mistake")) as found:
        yield found


class Kubeconfig:
    """One file that a running process reads again when it changes."""

    def __init__(self, path: Path, own: Path) -> None:
        self.path, self._own = path, own
        self.point_at(own)

    def point_at(self, other: Path) -> None:
        found = read_kubeconfig(other)
        write_kubeconfig(self.path.with_suffix(".new"), found["cluster"], found["user"]).rename(self.path)

    def correct(self) -> None:
        self.point_at(self._own)


def work(kube: Kube) -> None:
    """What workers do with all that is due."""
    while (workload := due.claim(Workload)) is not None:
        due.run_claimed(workload, partial(reconcile_and_restart, kube=kube))
    while (namespace := due.claim(Namespace)) is not None:
        due.run_claimed(namespace, partial(steps.work_on_namespace, kube=kube))


def test_a_kubeconfig_of_an_empty_cluster_costs_nothing(
    provisioned: Tenant, namespace_a: Namespace, cluster: Cluster, job: LaunchSpec, by_alice: Actor, worker: Worker,
    alice: User, services: dict[str, Any], admin: Api, elsewhere: SecondApiServer, tmp_path: Path,
) -> None:  # fmt: skip
    identities = services["kubeconfigs"]
    watched = Kubeconfig(tmp_path / "watcher", Path(identities["watcher"]))
    written = Kubeconfig(tmp_path / "worker", Path(identities["worker"]))
    kube = Kube(str(written.path), server_check=ServerCheck())
    watchers = Watchers(str(watched.path), tmp_path)
    watchers.start()
    try:
        eventually(lambda: is_current(cluster), watchers)
        actions.launch("team-a", job, by=by_alice)
        worker(lambda: is_running("train"))
        sent = set(AppliedObject.objects.values_list("kind", "name", "uid"))
        uid = admin.get("batch/v1/jobs", "train-1", namespace=namespace_a.name)["metadata"]["uid"]

        watched.point_at(elsewhere.kubeconfig)
        written.point_at(elsewhere.kubeconfig)
        eventually(lambda: bool(Cluster.objects.get().other_uid), watchers)
        eventually(lambda: not mirror.as_of(cluster.pk).is_current, watchers)
        due.touch(Workload, run_of("train").workload_id)
        due.touch(Namespace, namespace_a.pk)
        eventually(lambda: kube.login.current().host == elsewhere.url, watchers)
        actions.launch("team-a", replace(job, name="late"), by=by_alice)
        shown = MirrorJob.objects.get(uid=uid)
        shown.delete()
        work(kube)
        shown.save(force_insert=True)
        # Also if the mirror has lost the Job, and only the API server could say whether it is there.
        for row in (*Workload.objects.all(), Namespace.objects.get(pk=namespace_a.pk)):
            assert row.error_text.startswith("The portal reaches another cluster than before."), row
        assert [run_of(name).ended_at for name in ("train", "late")] == [None, None]
        assert mirror.as_of(cluster.pk).problem.startswith("The portal reaches another cluster than before.")
        assert namespace_a.name not in {
            one["metadata"]["name"] for one in Api(str(elsewhere.kubeconfig)).list("v1/namespaces")
        }
        browser = Client()
        browser.force_login(alice)
        assert "The portal reaches another cluster than before</b>" in browser.get("/catalog").content.decode()

        watched.correct()
        written.correct()
        eventually(lambda: not Cluster.objects.get().other_uid and is_current(cluster), watchers)
        eventually(lambda: kube.login.current().host != elsewhere.url, watchers)
        due.touch(Workload, run_of("train").workload_id)
        due.touch(Namespace, namespace_a.pk)
        due.touch(Workload, run_of("late").workload_id)
        work(kube)
        assert is_running("train")
        now = set(AppliedObject.objects.values_list("kind", "name", "uid"))
        assert {(kind, name) for kind, name, _uid in now - sent} == {("Job", "late-1")}
        assert sent <= now
        assert admin.get("batch/v1/jobs", "train-1", namespace=namespace_a.name)["metadata"]["uid"] == uid
    finally:
        watchers.end()
