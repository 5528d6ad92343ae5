"""The portal in containers of the real node, applied from deploy/ with kustomize as a site applies it.

PostgreSQL and Redis stay processes of this machine, as a site's own stay outside of the cluster. The gateway's Service
is reached through its node port. The overlay changes what a site changes: addresses, where pods may run, and requests
of CPU, since a node of two cores does not have the 2.8 that two replicas of everything ask for.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from devcluster.client import yaml_files
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import pki
from devcluster.node import configuration, images
from devcluster.node.node import STORAGE_CLASSES, RealNode, forward
from devcluster.processes.console import UserError, step
from devcluster.processes.paths import ROOT
from devcluster.services.portal import LOGINS, Portal
from devcluster.services.stack import Stack, until

NAMESPACE = "gpu-portal"
POSTGRES_PORT, REDIS_PORT = 5432, 6379
# Secret → its keys, each with the process and the variable that has the value. As in deploy/README.md.
SECRETS = {
    "portal": {
        "secret-key": ("web", "SECRET_KEY"),
        "redis-url": ("web", "REDIS_URL"),
        "secrets-public-key": ("web", "SECRETS_PUBLIC_KEY"),
    },
    "sign-in": {"second-factor-key": ("web", "SECOND_FACTOR_KEY")},
    "notebooks": {"notebook-token-key": ("worker", "NOTEBOOK_TOKEN_KEY")},
    "team-secrets": {"secrets-private-key": ("worker", "SECRETS_PRIVATE_KEY")},
    **{f"database-{name}": {"database-url": (name, "DATABASE_URL")} for name in LOGINS},
    "database-owner": {"database-url": ("seed", "DATABASE_URL")},
}
MIGRATED_WITHIN_S, READY_WITHIN_S = 180.0, 300.0


@dataclass(frozen=True)
class DeployedPortal:
    stack: Stack
    portal: Portal

    @property
    def node(self) -> RealNode:
        assert self.stack.real_node is not None, "the portal runs on the real node"
        return self.stack.real_node

    @property
    def authority(self) -> Path:
        """The certificate that clients of the gateway have to trust."""
        return self.node.plane.pki.cert("ca")

    def start(self) -> None:
        """Returns when every replica is ready and the gateway's port is open on this machine."""
        stack, api = self.stack, self.stack.admin
        with step("Image of the portal, from the Dockerfile; image of the gateway"):
            archive = images.build_portal(stack.supervisor, stack.programs["caddy"], stack.state / "images")
            self.node.load_images(stack.supervisor, archive)
            archive.unlink()
        outside = self.node.namespaces.machine_address
        for name, port in (("postgres", POSTGRES_PORT), ("redis", REDIS_PORT)):
            stack.supervisor.start(forward(name, (outside, port), ("127.0.0.1", stack.ports[name])))
        stack.supervisor.until_ready("forward-postgres", "forward-redis")
        shipped = self._manifests()
        with step("Objects of deploy/ without the Deployments, and the migration"):
            self._forget_migration(api)
            for obj in [*self._secrets(), *(one for one in shipped if one["kind"] != "Deployment")]:
                api.apply(obj)
            until("The migration", lambda: self._is_migrated(api), within_s=MIGRATED_WITHIN_S)
        # `kubectl apply -k` creates them at once, but ten Pythons that start beside it are too much for two cores.
        for obj in shipped:
            if obj["kind"] == "Deployment":
                api.apply(obj)

    def await_ready(self) -> None:
        stack, api = self.stack, self.stack.admin
        until("Every Deployment of deploy/", lambda: not _unready(api), within_s=READY_WITHIN_S)
        service = api.get("v1/services", "gateway", namespace=NAMESPACE)
        to = (self.node.namespaces.node_address, int(service["spec"]["ports"][0]["nodePort"]))
        stack.supervisor.start(forward("gateway", ("127.0.0.1", stack.ports["gateway"]), to))
        stack.supervisor.until_ready("forward-gateway")

    def _forget_migration(self, api: Api) -> None:
        """A Job cannot be changed: deleted before an upgrade, as deploy/README.md says."""
        api.delete("batch/v1/jobs", "migrate", namespace=NAMESPACE)
        until("The end of the last migration", lambda: not _job(api), within_s=30)

    def _is_migrated(self, api: Api) -> bool:
        job = _job(api)
        return job is not None and job.get("status", {}).get("succeeded", 0) == 1

    def _secrets(self) -> list[Json]:
        processes = {process for keys in SECRETS.values() for process, _ in keys.values()}
        known = {name: self.portal.environment(name, notebooks=name == "worker") for name in processes}
        values = {
            secret: {key: self._from_pod(known[process][variable]) for key, (process, variable) in keys.items()}
            for secret, keys in SECRETS.items()
        }
        values["mail"] = {"mail-url": "consolemail://"}
        domain = self.portal.notebooks_domain.partition(":")[0]
        certificate, key = pki.issue(self.node.plane.pki, ["localhost", f"*.{domain}"])
        values["gateway-tls"] = {"tls.crt": certificate, "tls.key": key}
        return [_secret(name, data) for name, data in values.items()]

    def _from_pod(self, value: str) -> str:
        """URLs of PostgreSQL and Redis with the address at which pods reach them; other values as they are."""
        parts = urlsplit(value) if "://" in value else None
        if parts is None or parts.hostname != "127.0.0.1":
            return value
        port = POSTGRES_PORT if parts.scheme == "postgres" else REDIS_PORT
        user = parts.netloc.rpartition("@")[0]
        return parts._replace(netloc=f"{user}@{self.node.namespaces.machine_address}:{port}").geturl()

    def _manifests(self) -> list[Json]:
        folder = self.stack.state.resolve() / "deployed"
        folder.mkdir(exist_ok=True)
        (folder / "kustomization.yaml").write_text(json.dumps(self._overlay(folder), indent=1))
        built = subprocess.run(
            [self.node.programs["kustomize"], "build", folder], capture_output=True, text=True, check=False
        )
        if built.returncode:
            raise UserError(f"kustomize refused deploy/: {built.stderr.strip()}", "See deploy/kustomization.yaml.")
        return yaml_files.parse(built.stdout)

    def _overlay(self, folder: Path) -> Json:
        host, domain = urlsplit(self.portal.url).netloc, self.portal.notebooks_domain
        settings = {
            "PORTAL_URL": self.portal.url,
            "PORTAL_HOST": host,
            "ALLOWED_HOSTS": "localhost",
            "NOTEBOOKS_DOMAIN": domain,
        }
        pod = "/spec/template/spec"
        placed: list[Any] = [
            _set(f"{pod}/nodeSelector", configuration.LABELS),
            _set(f"{pod}/tolerations", [{**configuration.TAINT}]),
            _set(f"{pod}/containers/0/resources/requests/cpu", "20m"),
        ]
        return {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(ROOT / "deploy", folder)],
            "patches": [
                {
                    "target": {"kind": "ConfigMap", "name": "settings"},
                    "patch": json.dumps([_set(f"/data/{key}", value) for key, value in settings.items()]),
                },
                {
                    "target": {"kind": "ConfigMap", "name": "site"},
                    "patch": json.dumps([_set("/data/storage-classes", STORAGE_CLASSES)]),
                },
                {"target": {"kind": "Deployment|Job"}, "patch": json.dumps(placed)},
            ],
        }


def _job(api: Api) -> Json | None:
    return api.find("batch/v1/jobs", "migrate", namespace=NAMESPACE)


def _unready(api: Api) -> list[str]:
    """Names of Deployments whose replicas are not all ready in their last version."""
    return [
        one["metadata"]["name"]
        for one in api.list("apps/v1/deployments", namespace=NAMESPACE)
        if one.get("status", {}).get("observedGeneration") != one["metadata"]["generation"]
        or one["status"].get("updatedReplicas", 0) < one["spec"]["replicas"]
        or one["status"].get("readyReplicas", 0) < one["spec"]["replicas"]
    ]


def _secret(name: str, values: dict[str, str]) -> Json:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}


def _set(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": value}
