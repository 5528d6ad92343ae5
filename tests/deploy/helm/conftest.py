"""Helm and kustomize, built once per user, and a control plane that no other test uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devcluster.client import crds, yaml_files
from devcluster.client.kube import Api
from devcluster.controlplane import components, pki, programs
from devcluster.controlplane.components import ControlPlane
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Supervisor
from tests.deploy.helm.chart import Chart
from tests.support.waiting import wait_until

Json = dict[str, Any]
# Kinds that the chart may create and no program here serves: (group, version, kind, plural).
FOREIGN = (
    ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"),
    ("gateway.networking.k8s.io", "v1", "TLSRoute", "tlsroutes"),
    ("cert-manager.io", "v1", "Certificate", "certificates"),
    ("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
    ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
)


@dataclass(frozen=True)
class Fresh:
    """An API server without controllers, with the kinds of Kueue, and those of FOREIGN with any fields."""

    api: Api
    chart: Chart


@pytest.fixture(scope="session")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Chart:
    with Supervisor(tmp_path_factory.mktemp("rendering")) as supervisor:
        return Chart(programs.find_or_build(supervisor, programs.RENDERING))


@pytest.fixture(scope="module")
def fresh(services: Json, chart: Chart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fresh]:
    state = tmp_path_factory.mktemp("fresh")
    cluster = programs.Programs(Path(services["bin_dir"]).parent)
    ports = {name: free_port() for name in ("etcd", "etcd-peer", "apiserver")}
    plane = ControlPlane(cluster, pki.make(state / "pki"), state, ports, unsafe=True)
    plane.write_kubeconfigs()
    with Supervisor(state / "log") as supervisor:
        for command in (plane.etcd(), plane.apiserver()):
            supervisor.start(command)
            supervisor.until_ready(command.name)
        api = Api(plane.kubeconfig("admin"), timeout_s=60)
        wait_until(lambda: components.has_default_roles(api))
        definitions = [yaml_files.read(path) for path in sorted((cluster.directory / "kueue/crd").glob("*.yaml"))]
        for definition in [*definitions, *map(foreign, FOREIGN)]:
            definition["spec"].pop("conversion", None)
            crds.put(api, definition)
        for group, version, kind, _ in [*FOREIGN, ("kueue.x-k8s.io", "v1beta2", "Topology", "topologies")]:
            wait_until(lambda group=group, version=version, kind=kind: crds.served(api, f"{group}/{version}", [kind]))
        yield Fresh(api, Chart(chart.programs, plane.kubeconfig("admin")))


def foreign(kind: tuple[str, str, str, str]) -> Json:
    group, version, name, plural = kind
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # The API server accepts definitions of *.k8s.io only with this.
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "names": {"kind": name, "plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }
