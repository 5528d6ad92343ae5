"""Helm with the chart of `deploy/`, and kustomize, as commands."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.client import yaml_files
from devcluster.controlplane.programs import Programs
from tests.support.shipped import DEPLOY

Json = dict[str, Any]
RELEASE = NAMESPACE = "gpu-portal"
# The kinds of exposure, certificates, sign-in, monitoring and clusters that the chart offers.
VARIANTS: dict[str, Json] = {
    "node-port": {"exposure": {"service": {"type": "NodePort"}}},
    "tls-route": {
        "exposure": {"by": "TLSRoute", "route": {"parentRefs": [{"name": "public", "namespace": "gateways"}]}}
    },
    "http-route": {
        "exposure": {
            "by": "HTTPRoute",
            "route": {"parentRefs": [{"name": "public", "namespace": "gateways", "sectionName": "https"}]},
            "from": {"namespaces": ["gateways"]},
        }
    },
    "ingress": {
        "exposure": {
            "by": "Ingress",
            "ingress": {"className": "haproxy", "annotations": {"haproxy-ingress.github.io/timeout-tunnel": "1h"}},
            "from": {"namespaces": ["haproxy"], "networks": ["192.0.2.0/24"]},
        }
    },
    "cert-manager": {"tls": {"secret": "portal-tls", "certManager": {"issuer": "letsencrypt"}}},
    "issuer": {"issuer": {"url": "https://sso.example.org/realms/example", "addresses": ["192.0.2.10/32"]}},
    "monitoring": {
        "monitoring": {
            "podMonitor": True,
            "rules": ["portal-alerts", "gpu-records", "gpu-alerts"],
            "dashboards": True,
            "labels": {"release": "prometheus"},
        }
    },
    **{name: {"site": {"preset": name}} for name in ("aks", "eks", "gke", "k3s", "kubeadm", "openshift")},
}


@dataclass(frozen=True)
class Chart:
    programs: Programs
    kubeconfig: Path = Path("/dev/null")

    def helm(
        self, *arguments: str, values: Json | None = None, namespace: str = NAMESPACE
    ) -> subprocess.CompletedProcess[str]:
        where = ["--namespace", namespace, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.run(
            [self.programs["helm"], *arguments, *where, *(["--values", "-"] if values else [])],
            input=json.dumps(values or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def objects(self, values: Json | None = None) -> list[Json]:
        """What `helm template` gives, hooks included."""
        done = self.helm("template", RELEASE, str(DEPLOY), values=values)
        assert not done.returncode, done.stderr
        return yaml_files.parse(done.stdout)

    def refusal(self, values: Json) -> str:
        done = self.helm("template", RELEASE, str(DEPLOY), values=values)
        assert done.returncode, "these values are accepted"
        return done.stderr

    def kustomized(self, folder: Path = DEPLOY) -> list[Json]:
        command = [self.programs["kustomize"], "build", folder]
        return yaml_files.parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def by_name(objects: list[Json]) -> dict[tuple[str, str], Json]:
    found = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert len(found) == len(objects)
    return found


def is_hook(one: Json) -> bool:
    return "helm.sh/hook" in one["metadata"].get("annotations", {})


def named(objects: list[Json], kind: str, name: str) -> Json:
    return by_name(objects)[kind, name]
