"""What all notebooks of one runner share, and how the runner retries calls to the API server."""

from __future__ import annotations

import http.client
import random
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from devcluster.client.kube import Api, ApiError
from devcluster.client.types import Json
from devcluster.kubelet import pod_status
from devcluster.notebooks.slots import Slots
from devcluster.notebooks.volumes import Volumes

RETRY_S = 1.0


@dataclass(frozen=True)
class Machine:
    """What all notebooks of one runner share."""

    api: Api
    data_dir: Path
    log_dir: Path
    slots: Slots
    volumes: Volumes

    def mark_of(self, pod: Json) -> str:
        return f"{self.data_dir}|{pod['metadata']['uid']}"

    def private(self, pod: Json) -> Path:
        return self.data_dir / "pods" / str(pod["metadata"]["uid"])

    def log(self, pod: Json, container: str) -> Path:
        meta = pod["metadata"]
        return self.log_dir / f"{meta['namespace']}_{meta['name']}_{meta['uid'][:8]}_{container}.log"


def retry_until(step: Callable[[], object], *, say: Callable[[str], None], until: threading.Event) -> None:
    """Repeats `step` until the API server accepts it, or until the event `until` is set. Raises ApiError for a
    permanent error (4xx except 429).
    """
    while True:
        try:
            step()
            return
        except (OSError, http.client.HTTPException) as error:
            say(f"waits for the API server: {error}")
        except ApiError as error:
            if error.status < 500 and error.status != 429:
                raise
            say(f"waits for the API server: {error}")
        if until.wait(RETRY_S):
            return


def clean_up(machine: Machine, pod: Json) -> None:
    """Removes the pod's own files and logs and, if the pod is being deleted, the object. Call it when nothing of the
    pod runs any more.
    """
    shutil.rmtree(machine.private(pod), ignore_errors=True)
    for spec in [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]:
        machine.log(pod, spec["name"]).unlink(missing_ok=True)
    if "deletionTimestamp" in pod["metadata"]:
        pod_status.remove(machine.api, pod)


def free_address(port: int) -> str:
    """Returns a random loopback address on which `port` is free. Each notebook has its own address, as a pod does."""
    while True:
        address = f"127.{random.randint(64, 127)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        with socket.socket() as trial:
            try:
                trial.bind((address, port))
            except OSError:
                continue
        return address
