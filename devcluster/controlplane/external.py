"""An existing cluster, given with --kubeconfig, that is used instead of the embedded one."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from devcluster.client.kube import Api, ApiError
from devcluster.processes.console import UserError


class ExternalCluster:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.cluster = _cluster(kubeconfig)

    @property
    def url(self) -> str:
        return str(self.cluster["server"])

    def check(self) -> None:
        """Checks that the cluster answers, that it serves Kueue's v1beta2 API, and that the identity may list
        Topologies. Does not check for the other rights of an administrator.
        """
        try:
            api = Api(self.kubeconfig)
            api.request("GET", "/version")
            api.list("kueue.x-k8s.io/v1beta2/topologies")
        except OSError as error:
            raise UserError(
                f"The cluster of {self.kubeconfig} does not answer: {error}", "Check its address."
            ) from error
        except ApiError as error:
            if error.status == 404:
                raise UserError(
                    "That cluster has no Kueue 0.18.", "Install it, or use the embedded cluster."
                ) from error
            raise UserError(
                f"That cluster refuses {self.kubeconfig}: {error}",
                "It must belong to a cluster administrator, with a certificate or a token (no login plug-ins).",
            ) from error


def _cluster(kubeconfig: Path) -> dict[str, object]:
    """Returns the cluster entry of the current context, with the CA certificate inline, so that kubeconfigs made from
    it need no other file.
    """
    try:
        config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        context = next(entry["context"] for entry in config["contexts"] if entry["name"] == config["current-context"])
        found = next(entry["cluster"] for entry in config["clusters"] if entry["name"] == context["cluster"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise UserError(f"{kubeconfig} is not a usable kubeconfig.", "Give a file with a current context.") from error
    cluster = dict(found)
    if authority := cluster.pop("certificate-authority", None):
        path = kubeconfig.parent / authority
        cluster["certificate-authority-data"] = base64.b64encode(path.read_bytes()).decode()
    return cluster
