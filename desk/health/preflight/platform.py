"""The version of Kubernetes, and storage for the volumes of teams. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from desk.health.preflight.types import (
    ClusterFacts,
    PreflightFinding,
    failure,
    labels_of,
    listed,
    name_of,
    passed,
    warning,
)

NEEDED = (1, 34)
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
ZONE = "topology.kubernetes.io/zone"


def check_kubernetes(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    version = re.match(r"v?(\d+)\.(\d+)", facts.version)
    if version is None:
        yield warning("kubernetes", f"The version “{facts.version}” is unknown.", "Kubernetes 1.34 or newer is needed.")
    elif (int(version[1]), int(version[2])) < NEEDED:
        yield failure("kubernetes", f"Kubernetes is {facts.version}.", "Upgrade it to 1.34 or newer.")
    else:
        yield passed("kubernetes", f"Kubernetes is {facts.version}.")
    if "v1" not in facts.groups.get("resource.k8s.io", ()):
        told = "The API resource.k8s.io/v1 is not served, which the watcher lists."
        yield failure(
            "kubernetes-devices", told, "Turn on the API group resource.k8s.io/v1 (dynamic resource allocation)."
        )


def check_storage(facts: ClusterFacts) -> Iterator[PreflightFinding]:
    classes = facts.all("storageclasses")
    defaults = [one for one in classes if (one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"]
    if not classes:
        told = "There is no StorageClass: volumes of teams would stay without storage."
        yield failure("storage", told, "Install a provisioner that creates volumes, and a StorageClass for it.")
        return
    if not defaults:
        told = f"No StorageClass is the default; there are {listed([name_of(one) for one in classes])}."
        yield failure("storage", told, f"Mark one with the annotation {DEFAULT_CLASS}=true.")
        return
    if len(defaults) > 1:
        told = f"Several StorageClasses are the default: {listed([name_of(one) for one in defaults])}."
        yield warning("storage", told, "The newest is used. Keep the annotation on one.")
    zones = {labels_of(one)[ZONE] for one in facts.all("nodes") if ZONE in labels_of(one)}
    early = [name_of(one) for one in defaults if one.get("volumeBindingMode", "Immediate") == "Immediate"]
    if early and len(zones) > 1:
        told = f"{listed(early)} binds volumes at once, in any of {len(zones)} zones, maybe one without a free GPU."
        yield warning("storage-binding", told, "Use a StorageClass with volumeBindingMode WaitForFirstConsumer.")
    elif len(defaults) == 1:
        yield passed("storage", f"The default StorageClass is {name_of(defaults[0])}.")
