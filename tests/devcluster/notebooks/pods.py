"""Pods of notebooks for the runner, and what became of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster.client.kube import Api
from devcluster.client.types import Json

ROOT = Path(__file__).parents[3]

TOKEN = "sesame"


def notebook(
    namespace: str, name: str = "lab", *, grace_s: int = 5, annotations: Json | None = None, **container: Any
) -> Json:
    """A pod as the portal's Jobs make them; `container` adds to and replaces the container's fields."""
    usual = {
        "name": "notebook",
        "image": "jupyter/minimal-notebook:2026",
        "command": ["jupyter", "lab", "--ServerApp.ip=0.0.0.0", "--ServerApp.base_url=/"],
        "env": [{"name": "JUPYTER_TOKEN", "value": TOKEN}],
        "ports": [{"containerPort": 8888}],
        "readinessProbe": {"httpGet": {"path": "/api", "port": 8888}, "periodSeconds": 2},
    }
    volumes = container.pop("volumes", [])
    labels = {"gpu-portal/kind": "notebook"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations or {}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": grace_s,
            "containers": [usual | container],
            "volumes": volumes,
        },
    }


def script(text: str) -> Json:
    return {"command": ["sh", "-c", text], "readinessProbe": None}


def state(status: Json) -> Json:
    return next((container["state"] for container in status.get("containerStatuses", ())), {})


def log_of(admin: Api, namespace: str, name: str = "lab") -> bytes:
    """As `kubectl logs` gets it, through the API server."""
    return admin.raw("GET", f"/api/v1/namespaces/{namespace}/pods/{name}/log")[1]


def claim(namespace: str, name: str = "home") -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


@contextmanager
def own_runner(services: Json, directory: Path, name: str, *, limit: int = 6) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "devcluster.notebooks", "--kubeconfig", services["kubeconfigs"]["admin"]]
    argv += ["--log-dir", str(directory / "log"), "--name", name, "--limit", str(limit)]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)
