"""The configuration files of containerd, its network plugins, kubelet, kube-proxy and CoreDNS. Pure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from devcluster.node.machine import CNI, NodeNamespaces

# As on nodes with GPUs: pods that do not tolerate it stay on the simulated nodes.
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
# As GPU feature discovery labels a node, for as much as is true.
LABELS = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "MADE-UP-GPU"}
PAUSE_IMAGE = "real.node/pause:1"
DNS_ADDRESS = "10.0.0.10"


def containerd(folder: Path) -> str:
    """`restrict_oom_score_adj` and the missing AppArmor: what a machine without CAP_SYS_RESOURCE refuses."""
    return f"""version = 3
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.images".registry]
config_path = "{folder}/registries"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{CNI}"]
conf_dir = "{folder}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def network(namespaces: NodeNamespaces) -> str:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(namespaces.pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}, indent=1)


def kubelet(namespaces: NodeNamespaces, folder: Path, client_ca: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(client_ca)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": namespaces.cgroup,
        # The machine may have cgroup v1, swap, and no CAP_SYS_RESOURCE.
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "featureGates": {"KubeletInUserNamespace": True},
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(folder / "resolv.conf"),
        "registerWithTaints": [TAINT],
        # The disk is the machine's, and may be nearly full.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 60,
    }


def kube_proxy(namespaces: NodeNamespaces, kubeconfig: Path) -> dict[str, Any]:
    """Without limits of connection tracking: they belong to the machine."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "mode": "iptables",
        "clusterCIDR": str(namespaces.pods),
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def corefile(namespaces: NodeNamespaces, kubeconfig: Path) -> str:
    """Services and pods of the cluster only: names outside are unknown, since the machine may not reach any."""
    return f""".:53 {{
    bind {namespaces.node_address}
    errors
    kubernetes cluster.local {{
        kubeconfig {kubeconfig}
        ttl 5
    }}
}}
"""
