"""Volumes of Rancher's local-path-provisioner: made where their first pod runs, tied to that node, removed with the
portal's volume; and what it and Kubernetes say of those that cannot be made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.node import local_path, node
from portal.core.due import DONE, Deadline
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import told
from tests.workloads.cases.staged import until_as_written
from tests.workloads.situations.real_node.test_containers import COMPLETED, log_of, pod_of
from tests.workloads.situations.real_node.written import NOT_PROVISIONED
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume, Workload
from workloads.storage import actions as storage_actions
from workloads.storage import reconcile as storage_reconcile
from workloads.storage.policy import GRACE

pytestmark = [
    pytest.mark.real_node,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("watcher", "clean_cluster"),
]


@pytest.fixture
def volumes(services: dict[str, Any]) -> Path:
    """The node's folder of volumes, as this machine sees it."""
    return Path(services["real_node"]["folder"]) / "lib" / Path(local_path.VOLUMES).relative_to("/var/lib")


def storage_of(admin: Api, namespace: Namespace, name: str) -> Json:
    claim = admin.get("v1/persistentvolumeclaims", name, namespace=namespace.name)
    return admin.get("v1/persistentvolumes", claim["spec"]["volumeName"])


def test_a_volume_is_made_on_the_node_keeps_its_runs_there_and_goes_with_its_files(
    job: LaunchSpec,
    a100: GpuClass,
    team_a: Tenant,
    by_alice: Actor,
    worker: Worker,
    admin: Api,
    namespace_a: Namespace,
    kube_worker: Kube,
    volumes: Path,
) -> None:
    kept = replace(job, volume="kept", volume_gib=1, volume_class=local_path.CLASS)
    actions.launch("team-a", replace(kept, name="writes", command=("sh", "-c", "echo 42 > ~/answer")), by=by_alice)
    # Until the end is recorded, the volume is in use.
    worker(Run.objects.filter(workload__name="writes", outcome=Run.Outcome.SUCCEEDED).exists, within_s=120)
    made = storage_of(admin, namespace_a, "kept")
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "rancher.io/local-path"
    folder = volumes / Path(made["spec"]["hostPath"]["path"]).name
    assert (folder / "answer").read_text() == "42\n"

    make.grant(team_a, a100, units=1)
    elsewhere = replace(kept, name="elsewhere", gpu_class=a100.slug)
    with pytest.raises(Refused, match=f"can be mounted only on node {node.NAME}, and no node of") as no:
        actions.launch("team-a", elsewhere, by=by_alice)
    assert no.value.refusal.code == "volume_elsewhere"

    notebook = replace(kept, name="lab", kind="notebook", image="lab")
    for attempt in (partial(actions.launch, "team-a", notebook), partial(actions.start, "team-a", "lab")):
        attempt(by=by_alice)
        worker(lambda: told()["lab"] == ("ready", "ready"), within_s=180)
        assert node.NAME in str(job_of(admin, namespace_a, "lab")["affinity"])
        actions.stop("team-a", "lab", by=by_alice)
        worker(lambda: not Run.objects.filter(ended_at=None).exists(), within_s=60)

    lists = ("sh", "-c", "cat ~/answer; ls -A ~")
    actions.launch("team-a", replace(kept, name="reads", command=lists), by=by_alice)
    worker(lambda: told()["reads"] == COMPLETED, within_s=120)
    answer, *files = log_of(admin, pod_of(admin, namespace_a, "reads-1")).splitlines()
    assert answer == "42"
    assert any("jupyter" in name or name == ".local" for name in files), files

    # Kubernetes keeps a claim while a pod with it exists, also one that has ended. The portal removes those in an hour.
    for name in ("writes", "lab", "reads"):
        actions.delete("team-a", name, by=by_alice)
    worker(lambda: not Workload.objects.filter(deleted_at=None).exists(), within_s=60)
    storage_actions.request_delete("team-a", "kept", by=by_alice)
    Volume.objects.update(delete_requested_at=timezone.now() - GRACE)
    going = Volume.objects.get()
    wait_until(lambda: storage_reconcile.reconcile(going, Deadline(), kube=kube_worker) == DONE, within_s=60)
    wait_until(lambda: not admin.find("v1/persistentvolumes", made["metadata"]["name"]), within_s=60)
    assert not folder.exists()


def job_of(admin: Api, namespace: Namespace, name: str) -> Json:
    """The pod template of the newest Job of a workload."""
    jobs = admin.list("batch/v1/jobs", namespace=namespace.name)
    of_workload = [one for one in jobs if one["metadata"]["name"].startswith(f"{name}-")]
    newest: Json = max(of_workload, key=lambda one: str(one["metadata"]["creationTimestamp"]))["spec"]["template"][
        "spec"
    ]
    return newest


@pytest.fixture
def mistaken_site(watcher: None, admin: Api, cluster: Cluster) -> Iterator[None]:
    """A site profile that offers a mode that the storage does not have, and a class that does not exist."""

    def offer(classes: str) -> None:
        admin.patch("v1/configmaps", "site", {"data": {"storage-classes": classes}}, namespace="gpu-portal")

    offer(f"{local_path.CLASS} ReadWriteMany\ngone")
    try:
        wait_until(lambda: "gone" in str(Cluster.objects.get(pk=cluster.pk).site), within_s=30)
        yield
    finally:
        offer(node.STORAGE_CLASSES)


@pytest.mark.usefixtures("mistaken_site")
def test_why_a_volume_is_not_provisioned(job: LaunchSpec, by_alice: Actor, worker: Worker) -> None:
    for name, storage_class in (("shared", local_path.CLASS), ("gone", "gone")):
        asked = replace(job, name=name, volume=name, volume_gib=1, volume_class=storage_class, command=("true",))
        actions.launch("team-a", asked, by=by_alice)
    until_as_written(worker, by_alice, NOT_PROVISIONED)
