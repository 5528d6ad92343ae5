"""A real JupyterLab gives its units back: a computing or silent notebook is not idle, an unused one is stopped."""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from websockets.sync.client import ClientConnection, connect

from accounts.core.actor import Actor
from accounts.models import Event
from catalog.models import GpuClass
from cluster.client import jupyter
from cluster.manifests.namespace import NOTEBOOK_PORT
from devcluster.client.kube import Api
from devcluster.demo.notebook_client import request_of
from portal.core.due import DONE, Deadline
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.processes.process_tree import processes_of
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_ready, named, run_of
from workloads.credentials.notebook_token import notebook_token
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.lifetime.idle.policy import IdleFacts, IdleStep, judge
from workloads.models import NotebookWatch

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
FOR_EVER = "import time\nwhile True: time.sleep(0.1)"


class Lab:
    """The running notebook, called as its owner would call it."""

    def __init__(self, admin: Api, namespace: str) -> None:
        [self.pod] = [pod for pod in admin.list("v1/pods", namespace=namespace) if pod["status"].get("podIP")]
        self.ip = self.pod["status"]["podIP"]
        run = run_of("one")
        self.token = notebook_token(settings.NOTEBOOK_TOKEN_KEY, workload_id=run.workload_id, run_number=run.number)

    def call(self, method: str, path: str) -> Any:
        connection = http.client.HTTPConnection(self.ip, NOTEBOOK_PORT, timeout=10)
        connection.request(method, path, body="{}", headers={"Authorization": f"token {self.token}"})
        answer = connection.getresponse().read()
        connection.close()
        return json.loads(answer) if answer else None

    @contextmanager
    def computing(self) -> Iterator[tuple[str, ClientConnection]]:
        """A kernel that computes for ever, with a browser connection."""
        kernel = self.call("POST", "/api/kernels")["id"]
        address = f"ws://{self.ip}:{NOTEBOOK_PORT}/api/kernels/{kernel}/channels"
        headers = {"Authorization": f"token {self.token}"}
        with connect(address, additional_headers=headers, max_size=None) as channel:
            channel.send(json.dumps(request_of("session", FOR_EVER)))
            wait_until(lambda: self.states() == ["busy"], what="the kernel computes")
            yield kernel, channel

    def states(self) -> list[str]:
        return [kernel.state for kernel in self.asked().kernels]

    def asked(self) -> jupyter.NotebookActivity:
        return jupyter.read_activity(self.ip, self.token)

    def servers(self) -> list[int]:
        return processes_of(self.pod["metadata"]["uid"])


def look(at: datetime) -> NotebookWatch:
    """Does what the worker would do at that time."""
    watch = NotebookWatch.objects.get()
    idle_reconcile.check_idle(watch, Deadline(), at=at)
    watch.refresh_from_db()
    return watch


def is_asked_to_stop() -> bool:
    return run_of("one").stop_requested_at is not None


@pytest.fixture
def lab(
    granted: Tenant,
    namespace_a: Namespace,
    a100: GpuClass,
    notebook: LaunchSpec,
    by_alice: Actor,
    worker: Worker,
    admin: Api,
) -> Lab:
    GpuClass.objects.filter(pk=a100.pk).update(idle_stop_minutes=60)
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: is_ready("one") and NotebookWatch.objects.exists())
    return Lab(admin, namespace_a.name)


def test_a_real_jupyterlab_is_stopped_when_idle_and_neither_while_it_computes_nor_while_it_is_silent(
    lab: Lab, namespace_a: Namespace, worker: Worker, admin: Api
) -> None:
    much_later = timezone.now() + timedelta(hours=50)
    with lab.computing() as (kernel, _channel):
        for at in (much_later, much_later + timedelta(hours=1)):
            watch = look(at)
            assert (watch.problem, watch.stops_at, watch.evidence["computing"]) == ("", None, 1)
        lab.call("POST", f"/api/kernels/{kernel}/interrupt")
        wait_until(lambda: lab.states() == ["idle"], what="the kernel was interrupted")
    wait_until(lambda: lab.asked().connections == 0, what="the browser is gone")
    warned = look(much_later)
    assert warned.stops_at == much_later + timedelta(minutes=10)
    assert warned.evidence["idle"] == 1

    stopped = lab.servers()
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        silent = look(much_later + timedelta(hours=9))
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert silent.problem == "It did not respond within 3 s."
    assert not is_asked_to_stop()

    look(much_later + timedelta(hours=9))
    assert is_asked_to_stop()
    worker(lambda: run_of("one").ended_at)
    run = run_of("one")
    assert (run.outcome, run.reason) == ("stopped", "idle")
    assert "1 kernel idle; checked at" in run.message
    assert Event.objects.get(verb="notebook.idle_stopped").after["run"] == 1
    wait_until(lambda: named(admin, "v1/pods", namespace_a.name) == [], what="its units are free")
    assert idle_reconcile.check_idle(NotebookWatch.objects.get(), Deadline()) == DONE


def test_being_asked_is_no_use(lab: Lab) -> None:
    """Otherwise no notebook would ever be idle."""
    before = lab.call("GET", "/api/status")["last_activity"]
    asked = [lab.asked() for _ in range(20)]
    assert len(set(asked)) == 1
    assert lab.call("GET", "/api/status")["last_activity"] == before
    lab.call("GET", "/api/kernels")
    wait_until(lambda: lab.call("GET", "/api/status")["last_activity"] > before, what="a browser's question counts")


def test_an_open_tab_alone_is_no_use_but_is_shown(lab: Lab) -> None:
    with lab.computing() as (kernel, _channel):
        lab.call("POST", f"/api/kernels/{kernel}/interrupt")
        wait_until(lambda: lab.states() == ["idle"], what="the kernel was interrupted")
        found = lab.asked()
        # JupyterLab sends this every few seconds while its tab is visible.
        lab.call("GET", "/api/kernels")
        polled = lab.asked()
        assert polled.last_activity > found.last_activity
        assert polled.connections == 1
        later = found.kernels[0].last_activity + timedelta(minutes=55)
        assert judge(polled, IdleFacts(timedelta(hours=1)), now=later).step is IdleStep.WARN
        assert look(later).evidence["connections"] == 1


def test_a_notebook_that_is_shut_down_from_inside_gives_its_units_back(
    lab: Lab, namespace_a: Namespace, worker: Worker, admin: Api
) -> None:
    lab.call("POST", "/api/shutdown")
    worker(lambda: run_of("one").ended_at)
    run = run_of("one")
    assert (run.outcome, run.reason, run.exit_code) == ("stopped", "shut_down", 0)
    worker(lambda: named(admin, "batch/v1/jobs", namespace_a.name) == [])
    wait_until(lambda: named(admin, "v1/pods", namespace_a.name) == [], what="its pod is gone")
    queues = admin.list("kueue.x-k8s.io/v1beta2/workloads", namespace=namespace_a.name)
    assert queues == []
