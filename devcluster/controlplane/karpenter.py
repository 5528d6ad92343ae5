"""Karpenter outside the cluster, with the provider that simulates nodes: its CRDs, its command, its instance types.

kwok simulates the kubelets of the nodes that it creates. A cluster with Karpenter is for tests of Karpenter only: it
reports an event for every pod that waits for a node.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from devcluster.client import crds, yaml_files
from devcluster.client.kube import Api
from devcluster.controlplane.programs import Programs
from devcluster.processes.ports import free_port
from devcluster.processes.readiness import answers_ready
from devcluster.processes.supervisor import Command

NODE_CLASS = "simulated"
ZONE = "zone-a"
SERVED = {"karpenter.sh/v1": ("NodePool", "NodeClaim"), "karpenter.kwok.sh/v1alpha1": ("KWOKNodeClass",)}


@dataclass(frozen=True)
class InstanceType:
    """A size of nodes that can be added, on demand and in one zone."""

    name: str
    resources: Mapping[str, str]
    price: float = 1.0

    def to_json(self) -> dict[str, object]:
        requirements = [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [ZONE]},
        ]
        return {
            "name": self.name,
            "offerings": [{"Price": self.price, "Available": True, "Requirements": requirements}],
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "resources": dict(self.resources),
        }


@dataclass(frozen=True)
class Karpenter:
    """`registration_delay_s`: from the launch of a node until it joins the cluster."""

    programs: Programs
    kubeconfig: Path
    state: Path
    types: tuple[InstanceType, ...]
    registration_delay_s: int = 0

    def install(self, api: Api) -> None:
        """Applies the CRDs, which the API server serves a moment later."""
        for folder in ("crd", "kwok-crd"):
            for manifest in sorted((self.programs.directory / "karpenter" / folder).glob("*.yaml")):
                crds.put(api, yaml_files.read(manifest))

    def is_served(self, api: Api) -> bool:
        return all(crds.served(api, version, kinds) for version, kinds in SERVED.items())

    def add_node_class(self, api: Api) -> None:
        api.apply(
            {
                "apiVersion": "karpenter.kwok.sh/v1alpha1",
                "kind": "KWOKNodeClass",
                "metadata": {"name": NODE_CLASS},
                "spec": {"nodeRegistrationDelay": f"{self.registration_delay_s}s"},
            }
        )

    def command(self) -> Command:
        path = self.state / "instance-types.json"
        path.write_text(json.dumps([one.to_json() for one in self.types], indent=1))
        health = free_port()
        flags = {
            "instance-types-file-path": path,
            "health-probe-port": health,
            "metrics-port": free_port(),
            "disable-leader-election": "true",
            "batch-idle-duration": "1s",
            # The variable of this name in its environment may be the portal's, whose levels differ.
            "log-level": "info",
        }
        argv = [self.programs["karpenter"], *(f"--{name}={value}" for name, value in flags.items())]
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "SYSTEM_NAMESPACE": "kube-system"}
        return Command("karpenter", argv, env=environment, ready=partial(answers_ready, health), ready_within_s=60)
