"""Whether names are resolved where the portal's network policies allow it, and whether policies are enforced. Pure.

Enforcement cannot be asked of the API server: known network plugins are recognised by their DaemonSets and nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from desk.health.preflight.types import (
    ClusterFacts,
    PreflightFinding,
    Raw,
    failure,
    labels_of,
    listed,
    name_of,
    namespace_of,
    passed,
    warning,
)

DNS_NAMES = ("kube-dns", "coredns", "dns-default", "rke2-coredns-rke2-coredns")
# The network policy `names` of deploy/portal/network.yaml allows this namespace and port.
DNS_NAMESPACE, DNS_PORT = "kube-system", 53
LOCAL_CACHE = "node-local-dns"
# DaemonSets of plugins that enforce network policies, those that do not, and those where an option decides.
ENFORCES = (
    "calico-node",
    "canal",
    "rke2-canal",
    "cilium",
    "anetd",
    "antrea-agent",
    "ovnkube-node",
    "kube-router",
    "weave-net",
    "azure-npm",
)
ENFORCES_NOT = ("kube-flannel-ds", "kube-flannel", "flannel")
VPC_CNI, VPC_CNI_OPTION = "aws-node", "--enable-network-policy=true"
TRY = "Try it: a pod in a namespace with a NetworkPolicy that denies everything must not reach another pod."


def check_names(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    found = [one for one in facts.all("services") if _resolves(one)]
    if not found:
        told = "No Service for DNS was found: the portal's processes find each other, PostgreSQL and Redis by name."
        yield failure("dns", told, "Install CoreDNS, or check that names of Services are resolved in pods.")
        return
    here = [one for one in found if namespace_of(one) == DNS_NAMESPACE]
    if not here:
        told = f"The servers for names are in {namespace_of(found[0])}, not in {DNS_NAMESPACE}."
        yield warning("dns", told, "Use the preset for this distribution in deploy/sites, or patch the policy `names`.")
    elif ports := sorted({str(port) for one in here for port in _target_ports(one) if port != DNS_PORT}):
        told = f"The servers for names listen on port {listed(ports)}: network policies see this port, not {DNS_PORT}."
        yield warning("dns", told, "Allow it in the policy `names` by a patch, as deploy/sites/openshift does.")
    else:
        yield passed("dns", f"Names are resolved by {name_of(here[0])} in {DNS_NAMESPACE}.")
    if any(name_of(one) == LOCAL_CACHE for one in facts.all("daemonsets")):
        told = "Pods ask NodeLocal DNSCache at a link-local address, which network policies do not allow by default."
        yield warning("dns-cache", told, "Use a preset of deploy/sites, or set dns-addresses in the site profile.")


def check_enforcement(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    plugins = {name_of(one): one for one in facts.all("daemonsets")}
    enforcing = [name for name in ENFORCES if name in plugins]
    if VPC_CNI in plugins and VPC_CNI_OPTION in _arguments(plugins[VPC_CNI]):
        enforcing.append(VPC_CNI)
    if enforcing:
        yield passed("network-policies", f"The network plugin {enforcing[0]} enforces NetworkPolicies.")
        return
    if any("+k3s" in one["status"]["nodeInfo"].get("kubeletVersion", "") for one in facts.all("nodes")):
        told = "k3s enforces NetworkPolicies itself, unless it was started with --disable-network-policy."
        yield passed("network-policies", told)
        return
    if VPC_CNI in plugins:
        told = "The VPC CNI of EKS does not enforce NetworkPolicies here: teams could reach each other's notebooks."
        yield failure("network-policies", told, "Enable network policies in the add-on vpc-cni (enableNetworkPolicy).")
    elif without := [name for name in ENFORCES_NOT if name in plugins]:
        told = f"{without[0]} does not enforce NetworkPolicies: teams could reach each other's notebooks."
        yield failure("network-policies", told, "Add a plugin that does, such as Calico, Cilium or Antrea.")
    else:
        told = "Unknown: no known network plugin was found, so it is not certain that NetworkPolicies are enforced."
        yield warning("network-policies", told, TRY)


def _resolves(service: Raw) -> bool:
    is_named = labels_of(service).get("k8s-app") == "kube-dns" or name_of(service) in DNS_NAMES
    return is_named and any(port["port"] == DNS_PORT for port in service["spec"].get("ports") or [])


def _target_ports(service: Raw) -> Iterator[int]:
    """Ports of the pods; those with a name cannot be told from the Service."""
    for port in service["spec"]["ports"]:
        target = port.get("targetPort", port["port"])
        if port["port"] == DNS_PORT and isinstance(target, int):
            yield target


def _arguments(daemon_set: Raw) -> list[str]:
    containers = daemon_set["spec"]["template"]["spec"].get("containers") or []
    return [argument for one in containers for argument in one.get("args") or []]
