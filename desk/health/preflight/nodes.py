"""The GPUs that nodes offer, the labels that say what they are, and the programs that bring both. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from catalog.discovery import inventory
from catalog.discovery.types import NodeFacts, is_device
from cluster.mirror.records.nodes import node_record
from desk.health.preflight.types import (
    ClusterFacts,
    PreflightFinding,
    Raw,
    labels_of,
    listed,
    name_of,
    passed,
    warning,
)
from portal.ui.text import plural

# Labels that say a node has GPUs, whether or not a device plugin offers them.
HARDWARE_LABELS = (
    "feature.node.kubernetes.io/pci-10de.present",
    "nvidia.com/gpu.present",
    "feature.node.kubernetes.io/amd-gpu",
    "intel.feature.node.kubernetes.io/gpu",
    "k8s.amazonaws.com/accelerator",
    "cloud.google.com/gke-accelerator",
    "kubernetes.azure.com/accelerator",
)
# Parts of the names of DaemonSets that bring drivers, device plugins and labels.
OPERATORS = re.compile(
    r"nvidia-(device-plugin|driver|container-toolkit|operator-validator|mig-manager)|gpu-feature-discovery|dra-driver"
    r"|node-feature-discovery|amd-?gpu|intel-gpu-plugin|habana"
)


def check_gpus(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    with_devices = [one for one in facts.all("nodes") if any(_devices(one).values())]
    by_claims = {one["spec"]["nodeName"] for one in facts.all("resourceslices") if "nodeName" in one["spec"]}
    offered = {*map(name_of, with_devices), *by_claims}
    silent = [
        name_of(one)
        for one in facts.all("nodes")
        if name_of(one) not in offered
        and any(labels_of(one).get(label, "false") != "false" for label in HARDWARE_LABELS)
    ]
    if silent:
        told = f"These nodes are labelled as having GPUs, but offer none: {listed(silent)}."
        yield warning(
            "gpu-devices", told, "Check the GPU operator or the device plugin on them: its pods and their logs."
        )
    elif not with_devices and not by_claims:
        told = "No node offers GPUs: no device plugin or DRA driver reports any."
        yield warning(
            "gpu-devices", told, "Install the GPU operator or device plugin of the vendor; classes need devices."
        )
    else:
        yield passed("gpu-devices", f"{plural(len(offered), 'node')} with GPUs.")
    if not with_devices:
        return
    problems = inventory.discover([_facts(one) for one in with_devices]).problems
    for problem in problems:
        yield warning(
            "gpu-labels", problem, "Install GPU Feature Discovery, or enter classes with a node selector by hand."
        )
    if not problems:
        yield passed("gpu-labels", "The labels of nodes say what their GPUs are.")


def check_operators(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    found = [one for one in facts.all("daemonsets") if OPERATORS.search(name_of(one))]
    incomplete = [name_of(one) for one in found if _ready(one) < _wanted(one)]
    states = {name_of(one): str((one.get("status") or {}).get("state")) for one in facts.all("clusterpolicies")}
    unready = [f"{name} ({state})" for name, state in sorted(states.items()) if state != "ready"]
    if unready:
        told = f"The GPU operator has not finished: {listed(unready)}."
        yield warning("gpu-operator", told, "See kubectl describe clusterpolicy and the pods of gpu-operator.")
    if incomplete:
        told = f"Not all pods of these DaemonSets are ready: {listed(incomplete)}."
        yield warning("gpu-operator", told, "Check their pods: nodes without them offer no GPUs, or wrong labels.")
    if not incomplete and not unready:
        names = [name_of(one) for one in found]
        told = (
            f"All pods are ready of {listed(names)}." if names else "No known GPU operator or device plugin was found."
        )
        yield passed("gpu-operator", told)


def _devices(node: Raw) -> dict[str, int]:
    record = node_record(node).record
    return {name: amount for name, amount in record["allocatable"].items() if is_device(name)}


def _facts(node: Raw) -> NodeFacts:
    """Only the devices: discovery would propose a class for cores too."""
    record = node_record(node).record
    return NodeFacts(
        name=name_of(node), labels=record["labels"], taints=tuple(record["taints"]), allocatable=_devices(node)
    )


def _ready(daemon_set: Raw) -> int:
    return int((daemon_set.get("status") or {}).get("numberReady", 0))


def _wanted(daemon_set: Raw) -> int:
    return int((daemon_set.get("status") or {}).get("desiredNumberScheduled", 0))
