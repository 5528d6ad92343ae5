"""Standing checks of nodes alone: contradictions in what a node reports, and what makes its GPUs unusable. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from catalog.checks.types import CheckedNode, CheckedSite, Finding, Severity, Subject
from catalog.discovery.products import PRODUCT_LABELS
from cluster.manifests.node_affinity import GAUDI_NODE_LABELS
from portal.ui.text import first_names

PROFILES = 3
PRODUCT = PRODUCT_LABELS["nvidia"]
LAYOUT = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
CHANGING = ("pending", "rebooting")
MIG = "nvidia.com/mig-"
PROFILE = re.compile(r"\d+g\.\d+gb.*")
VENDORS = ("nvidia.com", "amd.com", "gpu.intel.com", "habana.ai")


def layout_not_named(site: CheckedSite) -> Iterator[Finding]:
    for node in site.nodes:
        profiles = {
            name.removeprefix(MIG).removesuffix(".shared") for name, n in node.devices.items() if n and _is_mig(name)
        }
        whole = sum(n for name, n in node.devices.items() if name in ("nvidia.com/gpu", "nvidia.com/gpu.shared"))
        layout = node.labels.get(LAYOUT, "")
        if not profiles or node.labels.get(STATE) in CHANGING or not (wrong := _not_named(layout, profiles, whole)):
            continue
        says = f"but its layout “{layout}” does not contain {wrong}" if layout else f"but it has no label {LAYOUT}"
        yield _finding(
            "layout_not_named",
            Severity.WARNING,
            node,
            f"Node {node.name} has {_cut(profiles, whole)}, {says}.",
            f"Set {LAYOUT} to a layout that describes the node, or let the MIG manager apply the one that is set.",
        )


def _not_named(layout: str, profiles: set[str], whole: int) -> str:
    """Returns the devices that contradict the layout's name. Only stock names show it: `all-…` means every GPU."""
    if not layout:
        return "both" if whole else ""
    if layout == "all-disabled":
        return "slices"
    kind = layout.removeprefix("all-").replace("+", ".")
    if kind == layout or not (PROFILE.fullmatch(kind) or kind in ("balanced", "enabled")):
        return ""
    others = profiles - {kind} if PROFILE.fullmatch(kind) else set()
    wrong = ([f"{whole} whole"] if whole else []) + ([f"slices {first_names(others)}"] if others else [])
    return " and ".join(wrong)


def _cut(profiles: set[str], whole: int) -> str:
    return (f"{whole} whole and " if whole else "") + f"slices {first_names(profiles)}"


def mig_invalid(site: CheckedSite) -> Iterator[Finding]:
    for node in site.nodes:
        if (product := node.labels.get(PRODUCT, "")).endswith("-MIG-INVALID"):
            yield _finding(
                "mig_invalid",
                Severity.ERROR,
                node,
                f"Node {node.name} reports {product}: MIG strategy “single” needs the same MIG layout on all its GPUs, "
                "and the layouts differ, so the node advertises no GPUs.",
                f"Set one layout for all its GPUs ({LAYOUT}=all-…), or run the device plugin with strategy “mixed”.",
            )


def mig_state(site: CheckedSite) -> Iterator[Finding]:
    for node in site.nodes:
        state, layout = node.labels.get(STATE, ""), node.labels.get(LAYOUT, "")
        if state != "failed" and state not in CHANGING:
            continue
        asked = f"layout “{layout}”" if layout else "a layout that no label states"
        told = "" if node.state_since else " It is not known since when."
        if state == "failed":
            sentence = f"Node {node.name} could not be set to {asked}: the MIG manager reports failed.{told}"
            remedy = f"Read the log of nvidia-mig-manager of that node; set the previous {LAYOUT} in the meantime."
            severity = Severity.ERROR
        else:
            sentence = f"Node {node.name} is being set to {asked}: the MIG manager reports {state}.{told}"
            remedy = "Wait. If it takes longer than a few minutes, look for pods that still use GPUs of the node."
            severity = Severity.WARNING
        yield Finding("mig_state", severity, Subject("node", node.name), sentence, remedy, node.state_since)


def unhealthy_devices(site: CheckedSite) -> Iterator[Finding]:
    for node in site.nodes:
        for resource, units in sorted(node.capacity.items()):
            healthy = node.devices.get(resource, 0)
            if 0 < healthy < units:
                yield _finding(
                    "unhealthy_devices",
                    Severity.ERROR,
                    node,
                    f"{units - healthy} of {units} {resource} on node {node.name} are not healthy: "
                    "the device plugin withdrew them.",
                    "Look for Xid errors in the node's kernel log; drain the node and reset or replace the GPU.",
                )


def no_devices_left(site: CheckedSite) -> Iterator[Finding]:
    """Kubelets keep the capacity for some minutes after a device plugin has stopped, but no unit is allocatable."""
    for node in site.nodes:
        for resource, units in sorted(node.capacity.items()):
            if units and not node.devices.get(resource, 0):
                yield _finding(
                    "no_devices_left",
                    Severity.ERROR,
                    node,
                    f"None of the {units} {resource} of node {node.name} is allocatable: the device plugin has stopped "
                    "or reports all of them as unhealthy.",
                    "Check the device plugin's pod on that node first. If it runs, look for Xid errors in the node's "
                    "kernel log.",
                )


def plugin_advertises_none(site: CheckedSite) -> Iterator[Finding]:
    """Not where all GPUs are in MIG mode, shared under another name, or served by DRA: there 0 whole GPUs is right."""
    for node in site.nodes:
        if node.labels.get(PRODUCT, "").endswith("-MIG-INVALID"):
            continue
        for vendor in VENDORS:
            of_vendor = [name for name in node.devices if name.startswith(f"{vendor}/")]
            if not of_vendor or any(node.devices[name] or node.capacity.get(name) for name in of_vendor):
                continue
            if _has_slices(site, node, vendor):
                continue
            yield _finding(
                "plugin_advertises_none",
                Severity.ERROR,
                node,
                f"The device plugin of node {node.name} advertises 0 {' and 0 '.join(of_vendor)}.",
                "Check the device plugin's pod on that node: it has stopped, or it finds no GPU.",
            )


def nothing_advertised(site: CheckedSite) -> Iterator[Finding]:
    for node in site.nodes:
        for vendor in _present(node):
            if any(name.startswith(f"{vendor}/") for name in node.devices) or _has_slices(site, node, vendor):
                continue
            yield _finding(
                "nothing_advertised",
                Severity.ERROR,
                node,
                f"The labels of node {node.name} state GPUs of {vendor}, but nothing is advertised: "
                "no device plugin or DRA driver has registered.",
                "Check that the device plugin runs on that node and tolerates the node's taints.",
            )


def no_taint(site: CheckedSite) -> Iterator[Finding]:
    for node in site.nodes:
        has_gpus = any(node.devices.values()) or node.name in site.slices_of or _present(node)
        if has_gpus and not any(
            taint["effect"] in ("NoSchedule", "NoExecute") and not taint["key"].startswith("node.kubernetes.io/")
            for taint in node.seen.taints
        ):
            resource = next(iter(node.devices), "nvidia.com/gpu")
            yield _finding(
                "no_taint",
                Severity.WARNING,
                node,
                f"GPU node {node.name} has no NoSchedule taint: pods without a GPU may fill its cores and memory.",
                f"kubectl taint nodes {node.name} {_taint_key(resource)}=present:NoSchedule",
            )


def too_many_profiles(site: CheckedSite) -> Iterator[Finding]:
    cut: dict[str, set[str]] = {}
    for kinds in site.kinds.values():
        for kind in kinds:
            if kind.vendor == "nvidia" and kind.partition not in ("none", "INVALID"):
                cut.setdefault(kind.product, set()).add(kind.partition)
    for product, profiles in sorted(cut.items()):
        if len(profiles) > PROFILES:
            yield Finding(
                "too_many_profiles",
                Severity.HINT,
                Subject("product", product),
                f"{product} has {len(profiles)} MIG profiles ({', '.join(sorted(profiles))}): "
                "idle slices of one profile cannot serve workloads that wait for another.",
                f"Use at most {PROFILES} profiles per product.",
            )


def _finding(code: str, severity: Severity, node: CheckedNode, sentence: str, remedy: str) -> Finding:
    return Finding(code, severity, Subject("node", node.name), sentence, remedy)


def _is_mig(resource: str) -> bool:
    return resource.startswith(MIG)


def _has_slices(site: CheckedSite, node: CheckedNode, vendor: str) -> bool:
    return any(one.driver.endswith(vendor.removeprefix("gpu.")) for one in site.slices_of.get(node.name, ()))


def _taint_key(resource: str) -> str:
    return "nvidia.com/gpu" if resource.startswith("nvidia.com/") else resource


def _present(node: CheckedNode) -> list[str]:
    """Vendors whose labellers found GPUs, advertised or not."""
    labels = node.labels
    found = {
        "nvidia.com": labels.get("nvidia.com/gpu.present") == "true",
        "amd.com": any(name.startswith(("amd.com/gpu.", "beta.amd.com/gpu.")) for name in labels),
        "gpu.intel.com": labels.get("intel.feature.node.kubernetes.io/gpu") == "true"
        or any(n.startswith("gpu.intel.com/") and n.endswith(".present") and v == "true" for n, v in labels.items()),
        "habana.ai": any(labels.get(name, "0") not in ("0", "false") for name in GAUDI_NODE_LABELS),
    }
    return [vendor for vendor in VENDORS if found[vendor]]
