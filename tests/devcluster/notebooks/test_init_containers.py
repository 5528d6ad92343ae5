"""What comes before a notebook's container: init containers, volumes below the home directory, a cloned repository.

Each test has a runner of its own for its own pods.
"""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster.manifests import run as manifests
from cluster.manifests.run_spec import HOME, RunSpec
from devcluster.client.kube import Api
from devcluster.client.types import Json
from tests.devcluster.notebooks.pods import claim, log_of, notebook, own_runner, script, state
from tests.support.waiting import wait_until

Seen = Callable[..., Json]
Post = Callable[[Json], Json]


@pytest.fixture
def seen(admin: Api, namespace: str) -> Seen:
    def status(name: str = "lab") -> Json:
        pod = admin.find("v1/pods", name, namespace=namespace)
        return pod["status"] if pod else {}

    return status


@pytest.fixture
def post(admin: Api, services: Json, unique: str, tmp_path: Path) -> Iterator[Post]:
    """Makes a pod that this test's own runner runs."""

    def create(pod: Json) -> Json:
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), "devcluster/runner": unique}
        return admin.create(pod)

    with own_runner(services, tmp_path, unique):
        yield create


def with_clone(namespace: str, before: str, **container: Any) -> Json:
    """A pod whose init container runs `before` in the same home directory; its last words are told."""
    more = {"workingDir": HOME, "terminationMessagePolicy": "FallbackToLogsOnError", **container}
    pod = notebook(namespace, **more)
    same = {key: pod["spec"]["containers"][0][key] for key in ("image", "workingDir", "terminationMessagePolicy")}
    pod["spec"]["initContainers"] = [{"name": "clone", "command": ["sh", "-c", before], **same}]
    return pod


def state_before(status: Json) -> Json:
    return next((container["state"] for container in status.get("initContainerStatuses", ())), {})


def log_before(admin: Api, namespace: str) -> bytes:
    return admin.raw("GET", f"/api/v1/namespaces/{namespace}/pods/lab/log?container=clone")[1]


def test_an_init_container_runs_first_in_the_same_home_directory(
    admin: Api, namespace: str, seen: Seen, post: Post
) -> None:
    post(with_clone(namespace, "echo cloned; echo kept > note", **script("cat note")))
    wait_until(lambda: seen().get("phase") == "Succeeded")
    assert state_before(seen())["terminated"]["exitCode"] == 0
    assert log_of(admin, namespace) == b"kept\n"
    assert log_before(admin, namespace) == b"cloned\n"


def test_while_it_runs_the_pod_is_pending_and_can_be_deleted(
    admin: Api, namespace: str, seen: Seen, post: Post
) -> None:
    post(with_clone(namespace, "while [ ! -e go ]; do sleep 0.1; done", **script("true")))
    wait_until(lambda: "running" in state_before(seen()))
    assert (seen()["phase"], state(seen())["waiting"]["reason"]) == ("Pending", "PodInitializing")
    holds = {condition["type"]: condition["status"] for condition in seen()["conditions"]}
    assert (holds["Initialized"], holds["PodReadyToStartContainers"]) == ("False", "True")
    admin.delete("v1/pods", "lab", namespace=namespace)
    wait_until(lambda: not seen(), within_s=30)


def test_one_that_fails_ends_the_pod_with_its_code_and_last_words(
    admin: Api, namespace: str, seen: Seen, post: Post
) -> None:
    post(with_clone(namespace, "echo 'fatal: not there' >&2; exit 128", **script("echo never")))
    wait_until(lambda: seen().get("phase") == "Failed")
    ended = state_before(seen())["terminated"]
    assert (ended["exitCode"], ended["message"]) == (128, "fatal: not there")
    assert state(seen())["waiting"]["reason"] == "PodInitializing"
    assert log_of(admin, namespace) == b""


def test_a_volume_below_the_home_directory_outlives_what_is_beside_it(
    admin: Api, namespace: str, seen: Seen, post: Post
) -> None:
    admin.create(claim(namespace, "data"))
    volumes = [
        {"name": "home", "emptyDir": {}},
        {"name": "volume", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    mounts = [{"name": "home", "mountPath": HOME}, {"name": "volume", "mountPath": f"{HOME}/sets/mine"}]
    storage: Json = {"workingDir": HOME, "volumes": volumes, "volumeMounts": mounts}
    post(notebook(namespace, "writer", **storage, **script("echo kept > sets/mine/note; echo lost > note")))
    wait_until(lambda: seen("writer").get("phase") == "Succeeded")
    admin.delete("v1/pods", "writer", namespace=namespace)
    post(notebook(namespace, "reader", **storage, **script("cat sets/mine/note; ls")))
    wait_until(lambda: seen("reader").get("phase") == "Succeeded")
    assert log_of(admin, namespace, "reader") == b"kept\nsets\n"


# ---- pods of the portal with a repository ----------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """A course with one file and a tag v1, served as plain files on a loopback address."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environment |= {f"GIT_{who}_{what}": "course" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    run = partial(subprocess.run, check=True, capture_output=True, env=environment)
    work, bare = tmp_path / "work", tmp_path / "served" / "course.git"
    run(["git", "init", "-q", "-b", "main", work])
    (work / "lesson.txt").write_text("one\n")
    run(["git", "-C", work, "add", "."])
    run(["git", "-C", work, "commit", "-q", "-m", "One"])
    run(["git", "-C", work, "tag", "v1"])
    run(["git", "clone", "-q", "--bare", work, bare])
    run(["git", "-C", bare, "update-server-info"])
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(bare.parent))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/course.git"
    server.shutdown()
    server.server_close()


def with_repository(namespace: str, repository: str, reference: str = "", then: str = "cat course/lesson.txt") -> Json:
    """The pod of a Job as the portal makes it, for a node without a GPU; what it runs is `then`."""
    spec = RunSpec(
        namespace=namespace, gpu_class="cpu", units=1, interface="none", resource="", device_class="",
        device_selector="", node_labels={}, tolerations=(), image="quay.io/jupyter/minimal-notebook:2026", cpu=1,
        memory_gib=1, owner="workloads.workload.1", workload="lab", number=1, kind="job", weight="1",
        price_per_unit_hour="0", command=("sh", "-c", then), shared_memory_gib=1, claim="", repository=repository,
        reference=reference, clone_into="course",
    )  # fmt: skip
    pod = manifests.job(spec)["spec"]["template"]["spec"]
    metadata = {"name": "lab", "namespace": namespace, "labels": {"gpu-portal/kind": "notebook"}}
    own = {"serviceAccountName": "default", "priorityClassName": ""}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**pod, **own}}


@pytest.mark.parametrize("reference", ["", "main", "v1"])
def test_a_repository_is_cloned_before_the_container_starts(
    admin: Api, namespace: str, seen: Seen, post: Post, repository: str, reference: str
) -> None:
    post(with_repository(namespace, repository, reference))
    wait_until(lambda: seen().get("phase") == "Succeeded", story=lambda: str(seen()))
    assert log_of(admin, namespace) == b"one\n"
    assert b"Cloning into" in log_before(admin, namespace)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: (url.replace("course", "courses"), ""), "not found"),
        (lambda url: (url, "v9"), "Remote branch v9 not found in upstream origin"),
        (
            lambda url: ("http://127.0.0.1:9/course.git", ""),
            "fatal: unable to access 'http://127.0.0.1:9/course.git/': ",
        ),
    ],
)
def test_git_says_why_it_did_not_clone(
    namespace: str, seen: Seen, post: Post, repository: str, change: Callable[[str], tuple[str, str]], said: str
) -> None:
    post(with_repository(namespace, *change(repository)))
    wait_until(lambda: seen().get("phase") == "Failed", story=lambda: str(seen()))
    ended = state_before(seen())["terminated"]
    assert ended["exitCode"] == 128
    assert said in ended["message"]
