"""Why a container does not run although its pod is on a node: image, settings, volume, network. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from portal.ui.text import date_and_time
from workloads.core.observation import ImagePresence
from workloads.status.explain.devices import explain_device_fault
from workloads.status.explain.quantities import image_size
from workloads.status.explain.types import (
    CONTACT_OPERATORS,
    NOT_YOUR_SETTINGS,
    STOP_OR_CHANGE,
    Explanation,
    volume_unusable,
)

# Why the worker cannot decrypt the team's encrypted secrets.
NO_KEY, OTHER_KEY = "no_worker_key", "sealed_for_another_key"
_PULL = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ErrImageNeverPull", "ImageInspectError")
# Reasons of the warnings about a pod whose containers cannot be started.
SET_UP_WARNINGS = ("FailedAttachVolume", "FailedMount", "FailedCreatePodSandBox", "FailedPrepareDynamicResources")
_SETTING_UP = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
# Codes of explanations for which another image is the solution.
IMAGE_REASONS = frozenset(
    {
        "bad_image_name", "image_needs_newer_driver", "image_not_accepted", "image_not_allowed", "image_not_found",
        "image_not_pulled", "image_runs_as_root", "image_wrong_format", "image_wrong_gpu", "image_wrong_platform",
        "registry_unknown", "working_directory",
    }
)  # fmt: skip
_NAME = "Check the image name, then change it."
_OF_CATALOG = "Choose another image, and contact an operator: this one is in the portal's catalog."
# Mistakes in a name: of who typed it, or of the operators.
_MISNAMED = frozenset({"bad_image_name", "image_not_allowed", "image_not_found", "registry_unknown"})
_MAY_SIGN_IN = " Credentials may raise its limit: an owner or manager can add them under Team, Images."
_NO_HOST = re.compile(r"lookup ([^\s:]+)[^:]*: no such host")
_MISSING = re.compile(r"(secret|configmap) \"([^\"]+)\" not found")
_NO_SUCH_KEY = re.compile(r"couldn't find key (\S+) in (Secret|ConfigMap) \S+/(\S+)")
_CSI = re.compile(r"driver name (\S+) not found in the list of registered CSI drivers")
_VOLUME = re.compile(r"for volume \"([^\"]+)\"")
_NAMED_USER = re.compile(r"non-numeric user \(([^)]+)\)")
_USED_BY = re.compile(r"already used by pod\(s\) (.+)")
_CLAIM = re.compile(r"persistentvolumeclaims? \"([^\"]+)\" not found")
_SILENT = (
    "i/o timeout",
    "connection refused",
    "connection reset",
    "TLS handshake",
    "503 Service Unavailable",
    "502 Bad Gateway",
    "500 Internal Server Error",
    "context deadline exceeded",
    "Client.Timeout",
    "no route to host",
    "unexpected EOF",
)


@dataclass(frozen=True)
class RegistryAccess:
    """For an image that the team named by reference: whether the run has the team's credentials for its registry."""

    registry: str
    is_kept: bool


@dataclass(frozen=True)
class UnreadableSecrets:
    """Selected secrets that the worker cannot decrypt. `text`: its message for operators."""

    code: str
    text: str
    count: int

    @classmethod
    def of(cls, code: str, text: str, names: Sequence[str]) -> UnreadableSecrets | None:
        """`code`: of the worker's last failure of any kind."""
        return cls(code, text, len(names)) if names and code in (NO_KEY, OTHER_KEY) else None


def waiting_container(
    reason: str, message: str, *, image: str, node: str, sign_in: RegistryAccess | None = None
) -> Explanation | None:
    """Returns None if nothing is wrong."""
    found = _waiting(reason, message, image, node)
    if found is None:
        return None
    found = _of_catalog(found) if sign_in is None else _with_sign_in(found, image, sign_in)
    raw = f"{reason}: {message}" if message else reason
    return replace(found, raw=raw, raw_from="the kubelet", facts={**_at(node), **found.facts})


def _of_catalog(found: Explanation) -> Explanation:
    return replace(found, remedy=_OF_CATALOG) if found.reason in _MISNAMED else found


def _with_sign_in(found: Explanation, image: str, sign_in: RegistryAccess) -> Explanation:
    if found.reason == "image_not_allowed":
        return _not_given_out(image, sign_in)
    if found.reason == "registry_limit" and not sign_in.is_kept:
        return replace(found, remedy=f"{found.remedy}{_MAY_SIGN_IN}")
    return found


def _waiting(reason: str, message: str, image: str, node: str) -> Explanation | None:
    if reason == "InvalidImageName":
        return _change("bad_image_name", f"{image} is not a valid image name.", _NAME)
    if reason == "SignatureValidationFailed":
        text = f"Node {node} rejected the image {image}: its signature is missing or invalid."
        remedy = "Choose another image. Contact an operator if this image should be accepted."
        return _change("image_not_accepted", text, remedy)
    if reason in _PULL:
        return _pull(message, image, node)
    if reason in _SETTING_UP:
        return _setting_up(message, image, node)
    return None


def _change(reason: str, sentence: str, remedy: str) -> Explanation:
    return Explanation(reason, sentence, remedy, actions=STOP_OR_CHANGE)


def _pull(message: str, image: str, node: str) -> Explanation:
    """Reads the message of a registry or the node. The most reliable patterns come first, since several texts contain
    "not found".
    """
    if "no space left on device" in message:
        return Explanation(
            "node_disk_full", f"Node {node} has no disk space for the image {image}.", "Contact an operator."
        )
    if "no match for platform" in message:
        text = f"The image {image} is not built for the CPU architecture of node {node}."
        return _change("image_wrong_platform", text, "Choose another image.")
    if "short-name" in message or "short name mode" in message:
        text = f"Node {node} does not know which registry the image {image} is from: its name has no registry."
        return _change("bad_image_name", text, "Write the image with its registry, for example docker.io/library/NAME.")
    if ("media type" in message and "supported" in message) or "schema 1" in message:
        text = f"The image {image} has a format that node {node} no longer supports."
        return _change("image_wrong_format", text, "Choose another image, or push it again with a current tool.")
    if "x509:" in message or "server gave HTTP response to HTTPS client" in message:
        text = f"Node {node} does not trust the registry of the image {image}: its certificate is missing or not valid."
        remedy = "Contact an operator: the nodes have to trust this registry. Otherwise choose another image."
        return _change("registry_untrusted", text, remedy)
    if found := _NO_HOST.search(message):
        text = f"Node {node} cannot find the registry {found[1]} of the image {image}."
        return _change("registry_unknown", text, _NAME)
    if "toomanyrequests" in message or "429 Too Many Requests" in message:
        text = f"The registry of the image {image} rate-limits pulls from the cluster; node {node} retries."
        return Explanation("registry_limit", text, "It starts automatically when the registry accepts requests again.")
    if any(part in message for part in ("denied", "unauthorized", "401 ", "403 Forbidden", "authentication required")):
        text = (
            f"The registry denied access to the image {image}: it requires authentication, or the repository does not "
            "exist."
        )
        return _change("image_not_allowed", text, "Check the image name, and whether the cluster may pull it.")
    if "not found" in message or "manifest unknown" in message:
        text = f"The image {image} was not found in its registry; node {node} retries."
        return _change("image_not_found", text, "Check the image name and tag, then change it.")
    if any(part in message for part in _SILENT):
        text = f"The registry of the image {image} does not respond to node {node}, which retries."
        remedy = f"It starts automatically when the registry responds. {CONTACT_OPERATORS}"
        return Explanation("registry_unavailable", text, remedy)
    # Each part of the message before the error ends with a name in quotes.
    error = message.rpartition('": ')[2].removeprefix("ErrImagePull: ").strip()[:300].rstrip(".")
    text = f"Node {node} cannot pull the image {image}{f': {error}' if error else ''}."
    remedy = f"The node retries. Check whether the image is usable, or choose another one. {CONTACT_OPERATORS}"
    return Explanation("image_not_pulled", text, remedy, actions=STOP_OR_CHANGE, is_known=False)


def _not_given_out(image: str, sign_in: RegistryAccess) -> Explanation:
    """A registry gives the same answer for a denied and for a missing repository."""
    host = sign_in.registry
    if sign_in.is_kept:
        text = (
            f"The registry {host} denied access to the image {image} with the team's credentials: they are wrong, "
            "expired or have no permission, or the repository does not exist."
        )
        remedy = "Check the image name. An owner or manager can replace the credentials under Team, Images."
        return _change("credentials_refused", text, remedy)
    text = (
        f"The registry {host} denied anonymous access to the image {image}, and the team has no credentials for it; or "
        "the repository does not exist."
    )
    remedy = "Check the image name. An owner or manager can add credentials under Team, Images; then the node retries."
    return _change("no_credentials", text, remedy)


def _setting_up(message: str, image: str, node: str) -> Explanation:
    if found := _NAMED_USER.search(message):
        text = (
            f"The image {image} names its user ({found[1]}), so node {node} cannot tell that it does not run as root."
        )
        return _change("image_runs_as_root", text, "Choose another image, or build it with the number of its user.")
    if "image will run as root" in message:
        text = f"The image {image} runs as root, which this cluster does not allow."
        return _change("image_runs_as_root", text, "Choose another image, or build it with a non-root user.")
    if found := _MISSING.search(message):
        text = f"The {found[1]} {found[2]} that the container needs does not exist in the cluster."
        return Explanation("secret_missing", text, f"Wait a moment: the portal creates it. {CONTACT_OPERATORS}")
    if found := _NO_SUCH_KEY.search(message):
        text = f"The {found[2].lower()} {found[3]} that the container needs has no key {found[1]}."
        return Explanation("secret_incomplete", text, f"Wait a moment: the portal restores it. {CONTACT_OPERATORS}")
    if (told := explain_device_fault(message, node) or _runtime(message, node)) is not None:
        return told
    said = f": {message[:300].rstrip('.')}" if message else ""
    text = f"Node {node} cannot create the container{said}."
    return Explanation("container_config", text, CONTACT_OPERATORS, is_known=False)


def _runtime(message: str, node: str) -> Explanation | None:
    """The container runtime of the node, whatever the container is."""
    if "is reserved for" in message or "failed to reserve" in message:
        text = f"The container runtime of node {node} has not finished an earlier attempt to start it."
    elif "DeadlineExceeded" in message or "context deadline exceeded" in message or ".sock:" in message:
        text = f"The container runtime of node {node} does not respond."
    else:
        return None
    return Explanation("node_runtime_down", text, f"The node retries automatically. {CONTACT_OPERATORS}")


def not_set_up(reason: str, message: str, *, node: str, volume: str = "") -> Explanation:
    """Explains a warning about the pod itself, with a reason of SET_UP_WARNINGS. `volume`: of the run, "" if none."""
    found = _not_set_up(reason, message, node, volume)
    who = "the storage" if reason == "FailedAttachVolume" else "the kubelet"
    return replace(found, raw=f"{reason}: {message}", raw_from=who, facts={**_at(node), **found.facts})


def _not_set_up(reason: str, message: str, node: str, volume: str) -> Explanation:
    if "Multi-Attach" in message:
        return _in_use(message, volume)
    if found := _CLAIM.search(message):
        return volume_unusable(found[1], "missing")
    if reason in ("FailedAttachVolume", "FailedMount"):
        return _no_storage(reason, message, node, _volume_name(message, volume))
    if (told := explain_device_fault(message, node) or _runtime(message, node)) is not None:
        return told
    if "no IP addresses available" in message or "failed to assign an IP address" in message:
        text = f"Node {node} has no free IP address for the pod."
        return Explanation("no_pod_address", text, f"It starts when a pod on the node ends. {CONTACT_OPERATORS}")
    if "network" in message.lower() or "cni" in message.lower():
        return Explanation("pod_not_set_up", f"Node {node} cannot set up the pod's network.", CONTACT_OPERATORS)
    text = f"Node {node} cannot set up the pod."
    return Explanation("pod_not_set_up", text, CONTACT_OPERATORS, is_known=False)


def _volume_name(message: str, volume: str) -> str:
    """The cluster has a name of its own for the volume of a run. Secrets are volumes of the pod as well."""
    if (found := _VOLUME.search(message)) is None:
        return "the volume"
    is_of_run = bool(volume) and found[1].startswith("pvc-")
    return f"the volume {volume} ({found[1]})" if is_of_run else f"the volume {found[1]}"


def _no_storage(reason: str, message: str, node: str, volume: str) -> Explanation:
    if found := _CSI.search(message):
        text = f"Node {node} cannot mount {volume}: the storage driver {found[1]} is not running there."
        return Explanation("storage_driver_missing", text, f"{NOT_YOUR_SETTINGS} Other nodes may have the driver.")
    if "maximum number of volumes" in message or "attachment limit" in message or "ttachments exceeded" in message:
        text = f"Node {node} has reached its limit of volumes."
        return Explanation("node_volume_limit", text, f"It starts when another volume is detached. {CONTACT_OPERATORS}")
    if "access denied" in message or "ermission denied" in message:
        text = f"The storage system denied node {node} access to {volume}."
        return Explanation("volume_denied", text, NOT_YOUR_SETTINGS)
    if "wrong fs type" in message or "bad superblock" in message or "fsck" in message:
        text = f"The file system of {volume} is damaged or unknown; node {node} does not mount it."
        return Explanation("volume_damaged", text, "Contact an operator, who can check it. Do not delete the volume.")
    if reason == "FailedAttachVolume":
        text = f"The storage system cannot attach {volume} to node {node}."
        return Explanation("volume_not_attached", text, CONTACT_OPERATORS)
    if missing := _MISSING.search(message):
        text = f"The {missing[1]} {missing[2]} that the pod needs does not exist in the cluster."
        return Explanation("secret_missing", text, f"Wait a moment: the portal creates it. {CONTACT_OPERATORS}")
    return Explanation("volume_not_mounted", f"Node {node} cannot mount {volume}.", CONTACT_OPERATORS)


def _in_use(message: str, volume: str) -> Explanation:
    what = f"The volume {volume}" if volume else "The volume"
    if found := _USED_BY.search(message):
        text = f"{what} is still in use on another node, by {found[1].strip().rstrip('.')}."
        return Explanation("volume_in_use", text, "Stop the workload that uses it, or wait until it ends.")
    text = f"{what} is still attached to another node."
    return Explanation("volume_in_use", text, f"It starts when that node has detached the volume. {CONTACT_OPERATORS}")


def slow_pull(node: str, since: datetime, limit: timedelta, image: ImagePresence | None) -> Explanation:
    """Explains an image pull that takes longer than `limit`."""
    facts: dict[str, Any] = {}
    size = others = ""
    if image is not None and image.size_mib is not None:
        facts["image_mib"] = image.size_mib
        size = f" ({image_size(image.size_mib)})"
    if image is not None and (there := len(image.nodes - {node})):
        facts["nodes_with_image"] = there
        others = f"; {there} other {'node already has' if there == 1 else 'nodes already have'} it"
    minutes = int(limit.total_seconds() // 60)
    began = date_and_time(since)
    text = f"On {node}: pulling the image{size} since {began}, for more than {minutes} minutes{others}."
    remedy = "The first pull of a large image on a node can take several minutes. Contact an operator after 30 minutes."
    return Explanation("image_slow", text, remedy, facts=facts)


def secrets_unreadable(sealed: UnreadableSecrets, *, node: str) -> Explanation:
    """The Secret of the run is not created, since the worker cannot decrypt the team's secrets."""
    what = "the secret" if sealed.count == 1 else f"one or more of the {sealed.count} secrets"
    them = "it" if sealed.count == 1 else "them"
    if sealed.code == NO_KEY:
        said = f"The portal cannot decrypt {what} of this run: its worker has no key."
        remedy = f"{NOT_YOUR_SETTINGS} It starts automatically when the worker has its key."
    else:
        said = f"The portal cannot decrypt {what} of this run: its worker has a different key."
        remedy = f"Save {them} again on your team's page Secrets, or contact an operator. Then it starts automatically."
    facts = {**_at(node), "secrets": sealed.count}
    return Explanation(sealed.code, said, remedy, sealed.text, "the portal's worker", facts=facts)


def _at(node: str) -> dict[str, Any]:
    return {"node": node} if node else {}
