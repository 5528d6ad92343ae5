"""Storage of the node: Rancher's local-path-provisioner, as k3s has it. Its rights, StorageClass and helper pods are
those of its release; only the program itself is a process of the node instead of a pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from devcluster.client import yaml_files
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.node.images import PYTHON_IMAGE

CLASS = "local-path"
_NAMESPACE = "local-path-storage"
# The service account of the release, so that its own RoleBindings give the rights.
USER = f"system:serviceaccount:{_NAMESPACE}:local-path-provisioner-service-account"
# Where k3s has it. /var/lib is the node's own folder lib.
VOLUMES = "/var/lib/rancher/k3s/storage"


def install(api: Api, release: Path, *, node: str) -> None:
    """`release`: the provisioner's folder deploy."""
    for obj in _objects(release, node):
        api.apply(obj)


def arguments(kubeconfig: Path, config: Path) -> list[object]:
    """`config`: a file with `configuration`. The scripts and the pod that runs them are read from the ConfigMap."""
    return ["start", "--kubeconfig", kubeconfig, "--config", config, "--namespace", _NAMESPACE]


def configuration(node: str) -> str:
    """No path for nodes that are not listed: on a simulated one, no program would make the folder."""
    return json.dumps({"nodePathMap": [{"node": node, "paths": [VOLUMES]}]})


def _objects(release: Path, node: str) -> Iterator[Json]:
    for obj in yaml_files.read_all(release / "local-path-storage.yaml"):
        if obj["kind"] == "ConfigMap":
            data = obj["data"]
            [pod] = yaml_files.parse(data["helperPod.yaml"])
            pod["spec"]["containers"][0]["image"] = PYTHON_IMAGE
            data |= {"config.json": configuration(node), "helperPod.yaml": json.dumps(pod)}
        if obj["kind"] != "Deployment":
            yield obj
