"""What a node's devices and its silence do to runs, with a real kubelet and node controller."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accounts.core.actor import Actor
from devcluster.client.kube import Api
from devcluster.node import node
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import told
from tests.workloads.cases.staged import until_as_written
from tests.workloads.situations.real_node.written import LOST, UNHEALTHY
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [
    pytest.mark.real_node,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("watcher", "clean_cluster"),
]


@pytest.fixture
def folder(services: dict[str, Any]) -> Path:
    return Path(services["real_node"]["folder"])


def allocatable(admin: Api) -> int:
    return int(admin.get("v1/nodes", node.NAME)["status"]["allocatable"][node.RESOURCE])


def test_devices_that_are_not_healthy_are_not_offered(
    job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, folder: Path
) -> None:
    try:
        node.write_devices(folder, 8, healthy=0)
        wait_until(lambda: allocatable(admin) == 0)
        actions.launch("team-a", replace(job, name="waits", command=("true",)), by=by_alice)
        until_as_written(worker, by_alice, {"waits": UNHEALTHY})
    finally:
        node.write_devices(folder, 8, healthy=8)
    worker(lambda: told()["waits"] == ("succeeded", "completed"), within_s=120)


@pytest.fixture
def silent_kubelet(folder: Path) -> Iterator[list[int]]:
    """Paused kubelets: nothing is, until the test pauses the node's own with `pause`."""
    paused: list[int] = []
    yield paused
    for pid in paused:
        os.kill(pid, signal.SIGCONT)


def kubelet_of(folder: Path) -> int:
    [found] = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if f"{folder}/kubelet.json".encode() in path.read_bytes().split(b"\0") and b"/kubelet" in path.read_bytes()
    ]
    return found


def test_a_node_whose_kubelet_is_silent_is_lost(
    job: LaunchSpec, by_alice: Actor, worker: Worker, folder: Path, silent_kubelet: list[int]
) -> None:
    actions.launch("team-a", replace(job, name="long", command=("sleep", "600")), by=by_alice)
    worker(lambda: told()["long"][0] == "running", within_s=120)
    silent_kubelet.append(pid := kubelet_of(folder))
    os.kill(pid, signal.SIGSTOP)
    until_as_written(worker, by_alice, {"long": LOST})
    os.kill(silent_kubelet.pop(), signal.SIGCONT)
    worker(lambda: told()["long"][0] == "running", within_s=120)
