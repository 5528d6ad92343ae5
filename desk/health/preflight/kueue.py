"""Whether Kueue is there, serves what the portal uses, and is configured as the portal needs. Pure.

Kueue may be there for others too: its settings are read and never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from catalog.discovery.dra_devices import mapping_line
from cluster.manifests.metadata import KUEUE_API, MANAGED_BY, MANAGED_LABEL
from desk.health.preflight.types import (
    ClusterFacts,
    PreflightFinding,
    Raw,
    failure,
    labels_of,
    listed,
    name_of,
    passed,
    warning,
)

GROUP, _, SERVED = KUEUE_API.partition("/")
NEEDED = (0, 18)
VISIBILITY = "visibility.kueue.x-k8s.io"
# The Lease that the watcher may read: deploy/base/rights-watcher.yaml.
LEASE = "c1f6bfd2.kueue.x-k8s.io"
NOT_FOR_TEAMS = ("compute-domain-", "vfio.")
COUNTED_BY_OTHERS = ("cpu", "memory", "ephemeral-storage")
# Labels of the namespaces that Kueue must leave alone, and manage: the portal's own, and one of a team.
PORTAL_NAMESPACE = {"kubernetes.io/metadata.name": "gpu-portal", "app.kubernetes.io/part-of": "gpu-portal"}
TEAM_NAMESPACE = {"kubernetes.io/metadata.name": "team", MANAGED_LABEL: MANAGED_BY}
WITHOUT_TOPOLOGY = "TopologyAwareScheduling is off: Kueue would admit workloads that fit on no node."
CHANGE = (
    "Change it in the ConfigMap of Kueue's manager (deploy/kueue/manager-config.yaml has an example) and restart it."
)


def manager(deployments: tuple[Raw, ...]) -> Raw | None:
    """The Deployment of Kueue's manager, whatever its namespace."""
    named = (
        one
        for one in deployments
        if labels_of(one).get("app.kubernetes.io/name") == "kueue" or "kueue-controller-manager" in name_of(one)
    )
    return next((one for one in named if settings_volume(one) or name_of(one).endswith("controller-manager")), None)


def settings_volume(deployment: Raw) -> str:
    """Name of the ConfigMap with its settings, or ""."""
    volumes = deployment["spec"]["template"]["spec"].get("volumes") or []
    return next((volume["configMap"]["name"] for volume in volumes if "configMap" in volume), "")


def check_api(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    versions = facts.groups.get(GROUP, ())
    if not versions:
        yield failure("kueue-api", "Kueue is not installed.", "Install Kueue 0.18 or newer: deploy/README.md, step 1.")
        return
    if SERVED not in versions:
        told = f"Kueue serves {listed(versions)}, but not {SERVED}, which the portal uses."
        yield failure("kueue-api", told, "Upgrade Kueue to 0.18 or newer, its CustomResourceDefinitions included.")
    else:
        also = f" It also serves {listed([one for one in versions if one != SERVED])}." if len(versions) > 1 else ""
        yield passed("kueue-api", f"Kueue serves {SERVED}.{also}")
    if VISIBILITY not in facts.groups:
        told = "Kueue's visibility API is not served: pages cannot show positions in the queue."
        yield warning("kueue-visibility", told, "Apply the APIService of Kueue's release (visibility-apf is optional).")
    else:
        yield passed("kueue-visibility", "Kueue's visibility API is served.")


def check_manager(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    found = manager(facts.all("deployments"))
    if found is None:
        told = "The Deployment of Kueue's manager was not found, so its version and settings are unknown."
        yield warning("kueue-version", told, "Compare both with deploy/README.md and deploy/kueue/manager-config.yaml.")
        return
    container = next(iter(found["spec"]["template"]["spec"]["containers"]))
    image = str(container.get("image", ""))
    version = re.search(r":v?(\d+)\.(\d+)[\w.-]*(@|$)", image)
    if version is None:
        yield warning("kueue-version", f"The image {image} does not say Kueue's version.", "Check that it is 0.18.")
    elif (int(version[1]), int(version[2])) < NEEDED:
        yield failure("kueue-version", f"Kueue is {version[1]}.{version[2]}.", "Upgrade it to 0.18 or newer.")
    else:
        yield passed("kueue-version", f"Kueue is {version[1]}.{version[2]}.")
    if any("TopologyAwareScheduling=false" in one for one in container.get("args") or []):
        yield failure("kueue-topology", WITHOUT_TOPOLOGY, "Remove the feature gate from the arguments of the manager.")
    if not (found.get("status") or {}).get("availableReplicas"):
        told = "No pod of Kueue's manager is available: nothing is admitted, and its webhooks refuse Jobs."
        yield failure("kueue-running", told, f"Check the pods of the Deployment {name_of(found)}.")
    else:
        yield passed("kueue-running", "Kueue's manager is available.")


def check_settings(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    if facts.kueue_settings is None:
        told = "The settings of Kueue's manager could not be read."
        yield warning("kueue-settings", told, "Compare its ConfigMap with deploy/kueue/manager-config.yaml.")
        return
    try:
        settings = yaml.safe_load(facts.kueue_settings)
    except yaml.YAMLError:
        settings = None
    if not isinstance(settings, dict):
        yield failure("kueue-settings", "The settings of Kueue's manager are not a YAML object.", CHANGE)
        return
    found = [*_problems(settings, facts)]
    yield from found or [passed("kueue-settings", "Kueue's settings are as the portal needs them.")]


def _problems(settings: Mapping[str, Any], facts: ClusterFacts) -> Iterator[PreflightFinding]:
    frameworks = (settings.get("integrations") or {}).get("frameworks")
    if frameworks is not None and "batch/job" not in frameworks:
        told = "Kueue does not manage Jobs: integrations.frameworks lacks batch/job. Workloads would never start."
        yield failure("kueue-integrations", told, CHANGE)
    yield from _namespaces(settings)
    waits = settings.get("waitForPodsReady")
    # Since v1beta2 its presence turns it on.
    is_on_by_default = not str(settings.get("apiVersion", "")).endswith("v1beta1")
    if waits is not None and waits.get("enable", is_on_by_default):
        after = f"after {waits['timeout']}" if waits.get("timeout") else "after its default timeout"
        told = f"waitForPodsReady is on: {after} Kueue evicts a workload whose image is still being pulled, repeatedly."
        yield warning(
            "kueue-wait-for-pods-ready", told, f"Remove it, or set a timeout above the longest pull. {CHANGE}"
        )
    prefixes = (settings.get("resources") or {}).get("excludeResourcePrefixes") or []
    if counted := [one for one in COUNTED_BY_OTHERS if not any(one.startswith(prefix) for prefix in prefixes)]:
        told = (
            f"Kueue counts {listed(counted)}: resources.excludeResourcePrefixes lacks them. The portal's queues cover "
            "GPUs only, and a queue without a quota for a requested resource admits nothing."
        )
        others = (
            "Queues of others that limit these resources would no longer do so: give the portal a cluster of its own."
        )
        yield failure("kueue-excluded-resources", told, f"{CHANGE} {others}")
    yield from _device_classes(settings, facts)
    if (settings.get("featureGates") or {}).get("TopologyAwareScheduling") is False:
        yield failure("kueue-topology", WITHOUT_TOPOLOGY, f"Remove the feature gate. {CHANGE}")
    election = settings.get("leaderElection") or {}
    if election.get("leaderElect") is False or election.get("resourceName", LEASE) != LEASE:
        told = f"Kueue does not renew the Lease {LEASE}: Health cannot see whether Kueue works."
        yield warning("kueue-lease", told, f"Set leaderElection.leaderElect and its resourceName. {CHANGE}")


def _namespaces(settings: Mapping[str, Any]) -> Iterator[PreflightFinding]:
    selector = settings.get("managedJobsNamespaceSelector")
    if settings.get("manageJobsWithoutQueueName") and (selector is None or selects(selector, PORTAL_NAMESPACE)):
        told = "manageJobsWithoutQueueName is on: Kueue would suspend the portal's own Job for migrations for ever."
        yield failure(
            "kueue-jobs-without-queue",
            told,
            f"Turn it off, or exclude the namespace gpu-portal in managedJobsNamespaceSelector. {CHANGE}",
        )
    if selector is not None and not selects(selector, TEAM_NAMESPACE):
        told = "managedJobsNamespaceSelector excludes the namespaces of teams: their Jobs would start without a queue."
        yield failure(
            "kueue-namespaces", told, f"Let it match the label {MANAGED_LABEL}={MANAGED_BY}, or remove it. {CHANGE}"
        )


def _device_classes(settings: Mapping[str, Any], facts: ClusterFacts) -> Iterator[PreflightFinding]:
    mappings = (settings.get("resources") or {}).get("deviceClassMappings") or []
    mapped = {name for one in mappings for name in one.get("deviceClassNames") or []}
    there = {name_of(one) for one in facts.all("deviceclasses")}
    # Channels and pass-through of whole GPUs to virtual machines: no class of the catalog can offer them.
    if unmapped := sorted(one for one in there - mapped if not one.startswith(NOT_FOR_TEAMS)):
        told = f"Kueue does not count these device classes: {listed(unmapped)}. Their Jobs would be inadmissible."
        lines = ", ".join(mapping_line(one) for one in unmapped)
        yield warning(
            "kueue-device-classes",
            told,
            f"Add those that teams may use to resources.deviceClassMappings, with names of your choice: {lines}. "
            f"{CHANGE}",
        )


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector of Kubernetes matches."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions") or [])


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[expression["operator"]]
