"""Jobs and notebooks in real containers: kubelet, containerd and runc are real, only the GPUs are not."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from cluster.manifests.metadata import RUN_LABEL
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.node.node import device_id
from tenants.models import Namespace
from tests.support.cluster.worker import Worker
from tests.workloads.cases.live import told
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [
    pytest.mark.real_node,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("watcher", "clean_cluster"),
]

COMPLETED = ("succeeded", "completed")


def pod_of(admin: Api, namespace: Namespace, run: str) -> Json:
    [pod] = admin.list("v1/pods", namespace=namespace.name, labels=f"{RUN_LABEL}={run}")
    return pod


def log_of(admin: Api, pod: Json) -> str:
    meta = pod["metadata"]
    return str(admin.request("GET", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log")["message"])


def test_a_job_gets_its_devices(
    job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, namespace_a: Namespace
) -> None:
    command = ("sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; id -u")
    actions.launch("team-a", replace(job, name="two", units=2, command=command), by=by_alice)
    worker(lambda: told()["two"] == COMPLETED, within_s=120)
    devices, user = log_of(admin, pod_of(admin, namespace_a, "two-1")).split()
    assert len(given := set(devices.split(","))) == 2
    assert given <= {device_id(place) for place in range(8)}
    assert user == "1000"


def test_a_notebook_serves_until_it_is_stopped(
    job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, namespace_a: Namespace
) -> None:
    """The pod's address answers from outside of the node, as for the gateway."""
    notebook = replace(job, name="lab", kind="notebook", image="lab")
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: told()["lab"] == ("ready", "ready"), within_s=180)
    address = pod_of(admin, namespace_a, "lab-1")["status"]["podIP"]
    with urllib.request.urlopen(f"http://{address}:8888/api", timeout=10) as answer:
        assert "version" in json.load(answer)
    actions.stop("team-a", "lab", by=by_alice)
    worker(lambda: told()["lab"][0] == "stopped" and not admin.list("v1/pods", namespace=namespace_a.name))
