"""The portal's three service accounts (worker, watcher, doors). Applies the manifests of `deploy/base` that give rights
and set rules, and writes a kubeconfig with a token for each service account.
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
# The kinds of `deploy/base` that are applied: rights and rules. The portal's processes run outside the cluster here.
SHIPPED = {
    "Namespace", "ServiceAccount", "ConfigMap", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    "PriorityClass", "WorkloadPriorityClass", "Topology", "ResourceFlavor", "FlowSchema",
}  # fmt: skip
# The site profile comes before the policy that denies everything without it.
_FIRST = ("Namespace", "ServiceAccount", "ConfigMap", "ClusterRole", "Role")


def install(api: Api) -> None:
    """Applies the manifests. Namespaces, service accounts and roles come before the objects that refer to them."""
    shipped = [obj for obj in manifests(DEPLOY) if obj["kind"] in SHIPPED]
    order = {kind: place for place, kind in enumerate(_FIRST)}
    for obj in sorted(shipped, key=lambda obj: order.get(obj["kind"], len(order))):
        try:
            if obj["kind"] == "ConfigMap":
                _create_once(api, obj)
            else:
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


def _create_once(api: Api, obj: dict[str, Any]) -> None:
    """The site profile of a cluster that has one is the operator's."""
    try:
        api.create(obj)
    except ApiError as error:
        if error.status != 409:
            raise


def manifests(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the objects of the files and folders that a kustomization lists. Its patches and transformers are not
    applied.
    """
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
    """Waits until the API server accepts the token of each kubeconfig. It may not do so immediately after the writes,
    because it reads service accounts from a cache. Does not check the RBAC rights.
    """
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
