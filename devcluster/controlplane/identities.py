"""The portal's three identities: the manifests in `deploy/` are applied unchanged, then each identity gets a kubeconfig
with a token.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devcluster.client import yaml_files
from devcluster.client.kube import Api, ApiError
from devcluster.client.kubeconfig import write_kubeconfig
from devcluster.processes.console import UserError
from devcluster.processes.paths import ROOT

DEPLOY = ROOT / "deploy" / "base"
NAMESPACE = "gpu-portal"
IDENTITIES = ("worker", "watcher", "doors")
TOKEN_S = 30 * 24 * 3600
# The parts of `deploy/` that give rights and set rules; the portal's processes run outside the cluster here.
SHIPPED = {
    "Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    "PriorityClass", "WorkloadPriorityClass", "Topology", "ResourceFlavor",
}  # fmt: skip
_FIRST = ("Namespace", "ServiceAccount", "ClusterRole", "Role")


def install(api: Api) -> None:
    """Applies namespaces and roles before objects that refer to them."""
    shipped = [obj for obj in manifests(DEPLOY) if obj["kind"] in SHIPPED]
    order = {kind: place for place, kind in enumerate(_FIRST)}
    for obj in sorted(shipped, key=lambda obj: order.get(obj["kind"], len(order))):
        try:
            api.apply(obj)
        except LookupError as error:
            raise UserError(
                f"The cluster does not serve {obj['kind']} ({obj['apiVersion']}), which deploy/ uses.",
                "Install Kueue 0.18 in that cluster, or omit --kubeconfig to use an embedded one.",
            ) from error
        except ApiError as error:
            raise UserError(
                f"The cluster refused {obj['kind']} {obj['metadata']['name']} of deploy/: {error}",
                "The kubeconfig must belong to a cluster administrator.",
            ) from error


def manifests(folder: Path) -> Iterator[dict[str, Any]]:
    """Returns the objects that a kustomization lists, from files and folders, without its patches and transformers."""
    kustomization = yaml_files.read(folder / "kustomization.yaml")
    for entry in kustomization.get("resources", []):
        path = folder / entry
        if path.is_dir():
            yield from manifests(path)
            continue
        yield from yaml_files.read_all(path)


def write_kubeconfigs(api: Api, cluster: dict[str, object], directory: Path) -> dict[str, Path]:
    return {name: _kubeconfig(api, cluster, directory / name, name) for name in IDENTITIES}


def _kubeconfig(api: Api, cluster: dict[str, object], path: Path, name: str) -> Path:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"expirationSeconds": TOKEN_S},
    }
    answer = api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token", request)
    return write_kubeconfig(path, cluster, {"token": answer["status"]["token"]})


def await_rights(kubeconfigs: dict[str, Path], *, within_s: float = 10.0) -> None:
    """Waits until the rights apply: RBAC and tokens are read from caches that are updated shortly after the writes."""
    deadline = time.monotonic() + within_s
    for name, path in kubeconfigs.items():
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        while True:
            try:
                Api(path).request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
                break
            except ApiError as error:
                if time.monotonic() > deadline:
                    raise UserError(
                        f"The token of {name} does not work: {error}", "Start again with --fresh."
                    ) from error
                time.sleep(0.1)
