"""One real node of the embedded cluster: its programs, its registration and its devices."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from devcluster.client.kube import Api
from devcluster.client.kubeconfig import read_kubeconfig, write_kubeconfig
from devcluster.client.types import Json
from devcluster.controlplane.components import ControlPlane
from devcluster.controlplane.programs import Programs
from devcluster.node import configuration, local_path, machine
from devcluster.node.machine import NodeNamespaces
from devcluster.notebooks import volumes
from devcluster.processes.console import UserError
from devcluster.processes.paths import ROOT
from devcluster.processes.ports import answers
from devcluster.processes.supervisor import Command, Supervisor

NAME = "real-1"
# Clients of the API server that a node needs: user name and group.
USERS = {
    "kubelet": (f"system:node:{NAME}", "system:nodes"),
    "kube-proxy": ("system:kube-proxy", ""),
    "coredns": ("devcluster-coredns", ""),
    "local-path": (local_path.USER, ""),
}
# For the site profile: that of the simulated nodes is the usual one.
STORAGE_CLASSES = f"{volumes.CLASS}\n{local_path.CLASS}"
API_PORT = 6443
DNS_PORTS: list[Json] = [{"name": protocol.lower(), "protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
RBAC, SLICES = "rbac.authorization.k8s.io/v1", "discovery.k8s.io"
RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True)
class RealNode:
    plane: ControlPlane
    programs: Programs

    @property
    def namespaces(self) -> NodeNamespaces:
        return NodeNamespaces(self.plane.ports["apiserver"])

    @property
    def folder(self) -> Path:
        return self.plane.state / "node"

    def start(self, supervisor: Supervisor, api: Api, *, devices: int) -> None:
        """Starts the node and waits until containerd answers. `devices`: number of GPUs that it claims to have."""
        machine.check()
        self._write(devices)
        self.namespaces.prepare()
        self._admit(api)
        api_server = self.plane.ports["apiserver"]
        supervisor.start(forward("api", (self.namespaces.machine_address, API_PORT), ("127.0.0.1", api_server)))
        first = self.namespaces.inside([sys.executable, "-m", "devcluster.node", self.folder])
        supervisor.start(Command("node", first, cwd=ROOT, ready=self._has_containerd))
        supervisor.until_ready("node")

    def clean(self) -> None:
        """Call it when the node's processes have ended."""
        self.namespaces.clean()

    def ctr(self, *arguments: object) -> list[object]:
        """The command line of containerd, for the images and containers that kubelet sees."""
        return [self.programs["ctr"], "--address", self._socket, "--namespace", "k8s.io", *arguments]

    def load_images(self, supervisor: Supervisor, archive: Path) -> None:
        ran = supervisor.run(Command("node-images", self.ctr("images", "import", archive)), within_s=300)
        if ran.process.returncode:
            raise UserError(f"containerd refused the images:\n{ran.last_lines()}", f"Full log: {ran.log}.")

    def is_ready(self, api: Api) -> bool:
        node = api.find("v1/nodes", NAME)
        conditions = (node or {}).get("status", {}).get("conditions", ())
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    @property
    def _socket(self) -> Path:
        return self.folder / "containerd.sock"

    def _has_containerd(self) -> bool:
        return self._socket.exists()

    def _write(self, devices: int) -> None:
        folder = self.folder
        for name in ("log", "cni", "registries"):
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(parents=True)
        self._socket.unlink(missing_ok=True)
        write_devices(folder, devices, healthy=devices)
        pki = self.plane.pki
        for client in USERS:
            token = read_kubeconfig(self.plane.kubeconfig(client))["user"]["token"]
            server = f"https://{self.namespaces.machine_address}:{API_PORT}"
            cluster: dict[str, object] = {
                "server": server,
                "certificate-authority-data": pki.ca_bundle,
                "tls-server-name": "localhost",
            }
            write_kubeconfig(folder / f"{client}.kubeconfig", cluster, {"token": token})
        files = {
            "containerd.toml": configuration.containerd(folder),
            "cni/pods.conflist": configuration.network(self.namespaces),
            "kubelet.json": json.dumps(configuration.kubelet(self.namespaces, folder, pki.cert("ca"))),
            "kube-proxy.json": json.dumps(configuration.kube_proxy(self.namespaces, folder / "kube-proxy.kubeconfig")),
            "resolv.conf": f"nameserver {configuration.DNS_ADDRESS}\n",
            "Corefile": configuration.corefile(self.namespaces, folder / "coredns.kubeconfig"),
            "local-path.json": local_path.configuration(NAME),
            "node.json": json.dumps({name: [str(word) for word in argv] for name, argv in self._programs().items()}),
        }
        for name, text in files.items():
            (folder / name).write_text(text)

    def _programs(self) -> dict[str, list[object]]:
        """containerd finds its shim beside itself."""
        folder, bin_dir = self.folder, self.programs.bin
        path = ["env", f"PATH={bin_dir}:/usr/sbin:/usr/bin:/sbin:/bin"]
        kubelet = ["--config", folder / "kubelet.json", "--kubeconfig", folder / "kubelet.kubeconfig"]
        kubelet += ["--hostname-override", NAME, "--node-ip", self.namespaces.node_address]
        kubelet += ["--node-labels", ",".join(f"{name}={value}" for name, value in configuration.LABELS.items())]
        proxy = ["--config", folder / "kube-proxy.json", "--hostname-override", NAME]
        provisioner = local_path.arguments(folder / "local-path.kubeconfig", folder / "local-path.json")
        plugin = [sys.executable, "-m", "devcluster.node.device_plugin"]
        return {
            "containerd": [*path, bin_dir / "containerd", "--config", folder / "containerd.toml"],
            "kubelet": [*path, bin_dir / "kubelet", *kubelet],
            "kube-proxy": [*path, bin_dir / "kube-proxy", *proxy],
            "coredns": [*path, bin_dir / "coredns", "-conf", folder / "Corefile"],
            "local-path": [*path, bin_dir / "local-path-provisioner", *provisioner],
            "device-plugin": [*plugin, folder, RESOURCE, self.programs.directory / "deviceplugin"],
        }

    def _admit(self, api: Api) -> None:
        """Lets the API server read logs from the kubelet and CoreDNS read Services, and gives pods the Services of both
        the API server and the cluster's DNS.
        """
        kubelet_api = "system:kubelet-api-admin"
        api.apply(_role("devcluster-coredns", {"": ["namespaces", "pods", "services"], SLICES: ["endpointslices"]}))
        api.apply(_binding("devcluster-coredns", "devcluster-coredns", user=USERS["coredns"][0]))
        api.apply(_binding("devcluster-kubelet-api", kubelet_api, user="kube-apiserver"))
        api.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "kube-dns", "namespace": "kube-system"},
                "spec": {"clusterIP": configuration.DNS_ADDRESS, "ports": DNS_PORTS},
            }
        )
        https = {"name": "https", "port": API_PORT, "protocol": "TCP"}
        api.apply(_endpoints("default", "kubernetes", self.namespaces.machine_address, [https]))
        api.apply(_endpoints("kube-system", "kube-dns", self.namespaces.node_address, DNS_PORTS))
        local_path.install(api, self.programs.directory / "local-path", node=NAME)


def forward(name: str, listen: tuple[str, int], to: tuple[str, int]) -> Command:
    argv = [sys.executable, "-m", "devcluster.node.forward", *listen, *to]
    return Command(f"forward-{name}", argv, cwd=ROOT, ready=lambda: answers(listen[1], listen[0]))


def _role(name: str, resources: dict[str, list[str]]) -> Json:
    rules = [
        {"apiGroups": [group], "resources": found, "verbs": ["list", "watch"]} for group, found in resources.items()
    ]
    return {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _binding(name: str, role: str, *, user: str) -> Json:
    return {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }


def _endpoints(namespace: str, service: str, address: str, ports: list[Json]) -> Json:
    return {
        "apiVersion": f"{SLICES}/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": service, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }


def write_devices(folder: Path, devices: int, *, healthy: int) -> None:
    """Tells the device plugin of the node in `folder` what it has; kubelet hears it within a second."""
    told = [{"id": device_id(place), "is_healthy": place < healthy} for place in range(devices)]
    making = folder / "devices.json.new"
    making.write_text(json.dumps(told))
    making.rename(folder / "devices.json")


def device_id(place: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{place:012x}"
