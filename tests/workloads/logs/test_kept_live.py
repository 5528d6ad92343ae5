"""Logs that outlive their pods, on the real control plane: read by the worker, answered by doors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.kubelet.scripted import ScriptedKubelet
from portal.core import due
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.processes.streaming import Doors, session_of
from tests.support.waiting import wait_until
from workloads.credentials.secrets import actions as secret_actions
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, RunLog, Workload
from workloads.runs.kept.kept_logs import KEEP_FINISHED_JOB

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
SECRET = "q7G-not-in-any-log-9k"
KWOK_LOGS = "kwok.x-k8s.io/v1alpha1"


def write_log(admin: Api, pod: Json, file: Path, *lines: str) -> None:
    """Tells kwok, which is the kubelet, what the container has written."""
    file.write_text("".join(f"2026-11-21T05:00:00.000000000Z stdout F {line}\n" for line in lines))
    container, name = pod["spec"]["containers"][0]["name"], pod["metadata"]["name"]
    namespace = pod["metadata"]["namespace"]
    spec = {"logs": [{"containers": [container], "logsFile": str(file), "follow": True}]}
    metadata = {"name": name, "namespace": namespace}
    admin.apply({"apiVersion": KWOK_LOGS, "kind": "Logs", "metadata": metadata, "spec": spec})
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
    wait_until(lambda: admin.raw("GET", path)[1].decode().splitlines()[-1:] == [lines[-1]])


def test_the_log_of_a_stopped_notebook_is_answered_without_its_pod(
    granted: Tenant, notebook: LaunchSpec, by_alice: Actor, by_bob: Actor, by_charlie: Actor, worker: Worker,
    doors: Doors,
) -> None:  # fmt: skip
    address = "/live/logs/team-a/one"
    _row, text = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=1, by=by_bob)
    bearer = f"Bearer {text}"
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: Run.objects.get().ready_at, within_s=60)
    wait_until(lambda: b"Jupyter Server" in doors.get(f"{address}?follow=0", authorization=bearer)[2])
    assert doors.get(f"{address}?follow=0", authorization=bearer)[1]["x-log-source"] == "pod"

    actions.stop("team-a", "one", by=by_alice)
    worker(lambda: Run.objects.get().ended_at)
    status, headers, kept = doors.get(address, authorization=bearer)
    assert (status, headers["x-log-source"]) == (200, "kept")
    assert "of run 1, kept " in headers["x-log-note"]
    assert "retry-after" not in headers
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert b"Jupyter Server" in kept
    assert b"token=***" in kept
    assert doors.get(f"{address}?run=1&worker=0", authorization=bearer)[2] == kept
    headers = doors.get(f"{address}?download=1", authorization=bearer)[1]
    assert headers["content-disposition"] == 'attachment; filename="one-1.log"'
    fragment = doors.get(address, authorization=bearer, hx_request="true")[2].decode()
    assert f'href="{address}?run=1&amp;worker=0&amp;download=1" download>Download</a>' in fragment
    assert "It is deleted on " in fragment
    assert 'class="term term-log"' in fragment
    RunLog.objects.update(text="<script>alert(1)</script>\n")
    fragment = doors.get(address, authorization=bearer, hx_request="true")[2].decode()
    assert "&lt;script&gt;alert(1)" in fragment
    assert "<script" not in fragment
    for absent in ("run=2", "run=9999999999", "run=99999999999", "run=x", "worker=-1"):
        assert b"not_found" in doors.get(f"{address}?{absent}", authorization=bearer)[2]
    stranger = f"session={session_of(by_charlie.person)}"
    assert doors.get(address, cookie=stranger)[0] == 404
    assert b"not_found" in doors.get(address, cookie=stranger)[2]

    RunLog.objects.update(text="", problem="unreachable")
    status, headers, body = doors.get(address, authorization=bearer)
    assert (status, headers["content-type"]) == (404, "application/json")
    assert b'"code": "no_log"' in body
    assert b"the node did not answer" in body
    status, headers, body = doors.get(address, authorization=bearer, accept="text/html")
    assert (status, headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert body.startswith(b"There is no log of run 1")
    assert b"the node did not answer" in doors.get(address, authorization=bearer, hx_request="true")[2]

    actions.delete("team-a", "one", by=by_alice)
    worker(lambda: Workload.objects.get().deleted_at)
    assert not RunLog.objects.exists()


def test_the_log_of_a_job_is_kept_at_its_end_and_when_it_is_stopped(
    granted: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api,
    tmp_path: Path,
) -> None:  # fmt: skip
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    secret_actions.put_secret("team-a", "MINE", SECRET, by=by_alice)

    def launched(name: str) -> Json:
        actions.launch("team-a", replace(job, name=name, options=Options(secrets=("MINE",))), by=by_alice)
        worker(lambda: admin.list("v1/pods", namespace=space, labels=f"gpu-portal/workload={name}"))
        pod = kubelet.running(kubelet.bound(space, labels=f"gpu-portal/workload={name}"))
        worker(lambda: Run.objects.get(workload__name=name).started_at)
        return pod

    with kubelet.claim(space):
        crash = launched("crash")
        write_log(admin, crash, tmp_path / "crash.log", "epoch 1 of 3", f"login with {SECRET}", "killed")
        kubelet.exited(kubelet.bound(space), 3)
        worker(lambda: Run.objects.get().ended_at)
        assert RunLog.objects.get().text == "epoch 1 of 3\nlogin with ***\nkilled\n"

        RunLog.objects.update(text="", problem="unreachable")
        Run.objects.update(ended_at=timezone.now() - KEEP_FINISHED_JOB)
        due.wake(Workload, [Workload.objects.get().pk])
        worker(lambda: not admin.list("v1/pods", namespace=space))
        assert RunLog.objects.get().text == "epoch 1 of 3\nlogin with ***\nkilled\n", "read before its pod is deleted"

        stopped = launched("stop")
        write_log(admin, stopped, tmp_path / "stop.log", "epoch 1 of 3")
        actions.stop("team-a", "stop", by=by_alice)
        kept = RunLog.objects.filter(run__workload__name="stop")
        worker(lambda: kept.values_list("text", flat=True).first() == "epoch 1 of 3\n")
    worker(lambda: Run.objects.get(workload__name="stop").ended_at)
    assert Run.objects.get(workload__name="stop").outcome == "stopped"
    assert kept.get().text.startswith("epoch 1 of 3\n")
