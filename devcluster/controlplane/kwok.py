"""kwok simulates the kubelets of the simulated nodes and the life of their pods. It is also the kubelet endpoint from
which the API server reads container logs.
"""

from __future__ import annotations

import http.client
from dataclasses import dataclass

from devcluster.client import crds, yaml_files
from devcluster.client.annotations import SIMULATED
from devcluster.client.kube import MERGE, Api
from devcluster.controlplane.components import ControlPlane
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command

POD_STAGES = ROOT / "devcluster" / "kwok" / "pods.yaml"
NODE_STAGES = ("node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml")
CUSTOM = ("logs", "clusterlogs")


@dataclass(frozen=True)
class Kwok:
    plane: ControlPlane

    @property
    def kubelet_url(self) -> str:
        return f"https://127.0.0.1:{self.plane.ports['kubelet']}"

    def install(self, api: Api) -> None:
        for plural in CUSTOM:
            path = self.plane.programs.directory / f"kwok/crd/kwok.x-k8s.io_{plural}.yaml"
            crds.put(api, yaml_files.read(path))
        self._move_nodes(api)

    def command(self) -> Command:
        stages = self.plane.state / "kwok-stages.yaml"
        parts = [(self.plane.programs.directory / "kwok/stage" / name).read_text() for name in NODE_STAGES]
        parts.append(POD_STAGES.read_text())
        stages.write_text("\n---\n".join(parts))
        flags = {
            "kubeconfig": self.plane.kubeconfig("admin"),
            "config": stages,
            "manage-all-nodes": "false",
            "manage-nodes-with-annotation-selector": f"{SIMULATED}=fake",
            "node-lease-duration-seconds": 40,
            "enable-crds": "Logs,ClusterLogs",
            "node-ip": "127.0.0.1",
            "node-port": self.plane.ports["kubelet"],
            "tls-cert-file": self.plane.pki.cert("server"),
            "tls-private-key-file": self.plane.pki.key("server"),
            # One port serves both: HTTPS as the kubelet of the nodes, and HTTP for health checks.
            "server-address": f"127.0.0.1:{self.plane.ports['kubelet']}",
        }
        argv = [self.plane.programs["kwok"], *(f"--{name}={value}" for name, value in flags.items())]
        return Command("kwok", argv, ready=self._ready)

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.plane.ports["kubelet"], timeout=2)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except http.client.HTTPException:
            return False
        finally:
            connection.close()

    def _move_nodes(self, api: Api) -> None:
        """Sets the kubelet port of this start on nodes that exist from an earlier start. kwok itself would correct it
        only after minutes.
        """
        endpoints = {"kubeletEndpoint": {"Port": self.plane.ports["kubelet"]}}
        for node in api.list("v1/nodes"):
            known = node.get("status", {}).get("daemonEndpoints")
            if SIMULATED in node["metadata"].get("annotations", {}) and known not in (None, endpoints):
                body = {"status": {"daemonEndpoints": endpoints}}
                api.patch("v1/nodes", node["metadata"]["name"], body, subresource="status", content_type=MERGE)
