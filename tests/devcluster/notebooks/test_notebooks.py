from __future__ import annotations

import http.client
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.notebooks import entry
from tests.devcluster.notebooks.pods import TOKEN, claim, log_of, notebook, own_runner, script, state
from tests.support.processes.process_tree import processes_of
from tests.support.waiting import wait_until


@pytest.fixture
def seen(admin: Api, namespace: str) -> Callable[[str], Json]:
    """A pod's status as the cluster has it; empty when the pod is gone."""

    def status(name: str = "lab") -> Json:
        pod = admin.find("v1/pods", name, namespace=namespace)
        return pod["status"] if pod else {}

    return status


def is_ready(status: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))


def ask(address: str, path: str, *, token: str = "", method: str = "GET", body: str = "") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(address, 8888, timeout=5)
    headers = {"Authorization": f"token {token}"} if token else {}
    connection.request(method, path, body=body or None, headers=headers)
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    return response.status, json.loads(answer) if answer else None


# a real JupyterLab


def test_a_notebook_is_a_real_jupyterlab_from_start_to_deletion(admin, namespace, seen):
    pod = admin.create(notebook(namespace))
    wait_until(lambda: is_ready(seen()), within_s=60)

    address = seen()["podIP"]
    assert address.startswith("127.")
    assert ask(address, "/api/kernels")[0] == 403
    status, kernel = ask(address, "/api/kernels", token=TOKEN, method="POST", body="{}")
    assert (status, kernel["name"]) == (201, "python3")

    assert b"Jupyter Server" in log_of(admin, namespace)
    reasons = {event["reason"] for event in admin.list("v1/events", namespace=namespace)}
    assert {"Pulled", "Created", "Started"} <= reasons

    admin.delete("v1/pods", "lab", namespace=namespace)
    wait_until(lambda: not seen(), within_s=15)
    assert processes_of(pod["metadata"]["uid"]) == []


def test_a_notebook_waits_for_its_secret_and_goes_on_when_it_appears(admin, namespace, seen):
    env = [{"name": "JUPYTER_TOKEN", "valueFrom": {"secretKeyRef": {"name": "lab", "key": "token"}}}]
    admin.create(notebook(namespace, env=env))
    wait_until(lambda: state(seen()).get("waiting", {}).get("reason") == "CreateContainerConfigError")
    assert state(seen())["waiting"]["message"] == 'secret "lab" not found'

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lab", "namespace": namespace}}
    admin.create(secret | {"stringData": {"token": TOKEN}})
    wait_until(lambda: is_ready(seen()), within_s=60)
    assert ask(seen()["podIP"], "/api/kernels", token=TOKEN) == (200, [])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--ServerApp.ip=0.0.0.0", "--ServerApp.base_url=/x"], ["--ServerApp.base_url=/x"]),
        (["--ip", "0.0.0.0", "--no-browser", "--debug"], ["--debug"]),
        (["--ServerApp.allow_root=True", "--allow-root", "--NotebookApp.notebook_dir=/home"], []),
        (["--ServerApp.root_dir", "/home", "--port=8888"], ["--port=8888"]),
    ],
)
def test_only_what_one_machine_needs_is_taken_out_of_the_command_line(given, kept):
    assert entry.foreign(given) == kept


# how containers end


@pytest.mark.parametrize(
    ("command", "phase", "code", "reason"),
    [
        ("exit 0", "Succeeded", 0, "Completed"),
        ("echo no; exit 3", "Failed", 3, "Error"),
        ("kill -9 $$$$", "Failed", 137, "Error"),
    ],
)
def test_the_exit_code_of_the_process_is_the_containers(admin, namespace, seen, command, phase, code, reason):
    admin.create(notebook(namespace, **script(command)))
    wait_until(lambda: seen().get("phase") == phase)
    ended = state(seen())["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)


def test_a_process_that_ignores_sigterm_is_killed_when_its_grace_is_over(admin, namespace, seen):
    pod = admin.create(notebook(namespace, grace_s=2, **script('trap "" TERM; echo up; while :; do sleep 0.1; done')))
    wait_until(lambda: b"up" in log_of(admin, namespace))  # the trap is set
    watch = admin.watch("v1/pods", namespace=namespace, timeout_s=20)
    admin.delete("v1/pods", "lab", namespace=namespace)
    codes = {
        state(obj["status"])["terminated"]["exitCode"]
        for kind, obj in take_until_deleted(watch)
        if "terminated" in state(obj["status"])
    }
    assert codes == {137}
    assert processes_of(pod["metadata"]["uid"]) == []


def take_until_deleted(watch: Any) -> Iterator[tuple[str, Json]]:
    for kind, obj in watch:
        if kind == "BOOKMARK":
            continue
        yield kind, obj
        if kind == "DELETED":
            watch.stop()


def test_a_program_that_the_image_does_not_have_is_a_start_error(admin, namespace, seen):
    admin.create(notebook(namespace, command=["no-such-program"]))
    wait_until(lambda: seen().get("phase") == "Failed")
    ended = state(seen())["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")


def test_an_image_that_is_missing_is_pulled_in_vain(admin, namespace, seen):
    admin.create(notebook(namespace, image="missing/lab:1"))
    wait_until(lambda: state(seen()).get("waiting", {}).get("reason") == "ErrImagePull")
    told = 'Back-off pulling image "missing/lab:1": ErrImagePull: '
    # The two take turns: both words of one look.
    wait_until(
        lambda: (
            (waiting := state(seen()).get("waiting", {})).get("reason") == "ImagePullBackOff"
            and waiting["message"].startswith(told)
        )
    )
    events = {(e["type"], e["reason"]) for e in admin.list("v1/events", namespace=namespace)}
    assert {("Warning", "Failed"), ("Normal", "BackOff")} <= events
    admin.delete("v1/pods", "lab", namespace=namespace)
    wait_until(lambda: not seen(), within_s=10)


# storage


def mounted(name: str = "home") -> Json:
    return {
        "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": name}}],
        "volumeMounts": [{"name": "home", "mountPath": "/home/jovyan"}],
    }


def test_what_is_written_to_a_volume_outlives_the_pod_and_goes_with_the_claim(admin, namespace, seen):
    made = admin.create(claim(namespace))
    volume = f"pvc-{made['metadata']['uid']}"
    admin.create(notebook(namespace, "writer", **mounted(), **script("echo kept > note")))
    wait_until(lambda: seen("writer").get("phase") == "Succeeded")
    admin.delete("v1/pods", "writer", namespace=namespace)
    admin.create(notebook(namespace, "reader", **mounted(), **script("cat note")))
    wait_until(lambda: seen("reader").get("phase") == "Succeeded")
    assert log_of(admin, namespace, "reader") == b"kept\n"

    directory = Path(admin.get("v1/persistentvolumes", volume)["spec"]["hostPath"]["path"])
    assert (directory / "note").read_text() == "kept\n"
    admin.delete("v1/pods", "reader", namespace=namespace)
    admin.delete("v1/persistentvolumeclaims", "home", namespace=namespace)
    wait_until(lambda: admin.find("v1/persistentvolumes", volume) is None)
    assert not directory.exists()


def test_a_claim_that_grows_gets_a_bigger_volume(admin, namespace):
    admin.create(claim(namespace))

    def capacity() -> str:
        found = admin.get("v1/persistentvolumeclaims", "home", namespace=namespace)
        return found["status"].get("capacity", {}).get("storage", "")

    wait_until(lambda: capacity() == "1Gi")
    body = {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}
    admin.patch("v1/persistentvolumeclaims", "home", body, namespace=namespace)
    wait_until(lambda: capacity() == "5Gi")


# the runner itself


def test_more_notebooks_than_the_machine_takes_wait_in_line(admin, services, namespace, seen, unique, tmp_path):
    ours = {"devcluster/runner": unique}
    with own_runner(services, tmp_path, unique, limit=1):
        admin.create(notebook(namespace, "first", annotations=ours, **script("sleep 600")))
        wait_until(lambda: "running" in state(seen("first")))
        admin.create(notebook(namespace, "second", annotations=ours, **script("sleep 600")))
        wait_until(lambda: "number 1 in line" in state(seen("second")).get("waiting", {}).get("message", ""))
        assert state(seen("second"))["waiting"]["reason"] == "ContainerCreating"
        admin.delete("v1/pods", "first", namespace=namespace)
        wait_until(lambda: "running" in state(seen("second")))


def test_a_killed_runner_leaves_no_process_and_the_next_reports_a_node_shutdown(
    admin, services, namespace, seen, unique, tmp_path
):
    ours = {"devcluster/runner": unique}
    with own_runner(services, tmp_path, unique) as runner:
        pod = admin.create(notebook(namespace, annotations=ours))
        wait_until(lambda: is_ready(seen()), within_s=60)
        ask(seen()["podIP"], "/api/kernels", token=TOKEN, method="POST", body="{}")
        before = processes_of(pod["metadata"]["uid"])
        assert len(before) >= 2  # the server and its kernel
        os.kill(runner.pid, signal.SIGKILL)
        wait_until(lambda: processes_of(pod["metadata"]["uid"]) == [], within_s=10)
        assert seen()["phase"] == "Running"  # nobody is there to say otherwise
    with own_runner(services, tmp_path, unique):
        wait_until(lambda: seen()["phase"] == "Failed")
    assert seen()["reason"] == "Terminated"
    disruption = next(c for c in seen()["conditions"] if c["type"] == "DisruptionTarget")
    assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")
