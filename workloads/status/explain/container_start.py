"""Why a container that has its node does not run: image, settings, volume, network. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from portal.ui.text import date_and_time
from workloads.core.observation import ImagePresence
from workloads.status.explain.quantities import image_size
from workloads.status.explain.types import CONTACT_OPERATORS, STOP_OR_CHANGE, Explanation, volume_missing

# Why the worker cannot open what a team sealed.
NO_KEY, OTHER_KEY = "no_worker_key", "sealed_for_another_key"
_PULL = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ErrImageNeverPull", "ImageInspectError")
_SETTING_UP = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
# Codes of explanations that another image mends.
IMAGE_REASONS = frozenset(
    {
        "bad_image_name", "image_not_accepted", "image_not_allowed", "image_not_found", "image_not_pulled",
        "image_runs_as_root", "image_wrong_platform", "registry_unknown",
    }
)  # fmt: skip
_NAME = "Check its name; then stop this run and start another."
_NO_HOST = re.compile(r"lookup ([^\s:]+)[^:]*: no such host")
_MISSING = re.compile(r"(secret|configmap) \"([^\"]+)\" not found")
_NO_SUCH_KEY = re.compile(r"couldn't find key (\S+) in (Secret|ConfigMap) \S+/(\S+)")
_USED_BY = re.compile(r"already used by pod\(s\) (.+)")
_CLAIM = re.compile(r"persistentvolumeclaims? \"([^\"]+)\" not found")
_SILENT = (
    "i/o timeout",
    "connection refused",
    "connection reset",
    "TLS handshake",
    "x509:",
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
    """Of an image that the team named by reference: whether the run has the team's credentials for its registry."""

    registry: str
    is_kept: bool


@dataclass(frozen=True)
class UnreadableSecrets:
    """Chosen secrets that the worker cannot open. `text`: what it says to operators."""

    code: str
    text: str
    count: int

    @classmethod
    def of(cls, code: str, text: str, names: Sequence[str]) -> UnreadableSecrets | None:
        """`code`: of the worker's last failure, whatever that was."""
        return cls(code, text, len(names)) if names and code in (NO_KEY, OTHER_KEY) else None


def waiting_container(
    reason: str, message: str, *, image: str, node: str, sign_in: RegistryAccess | None = None
) -> Explanation | None:
    """None: the ordinary way of things."""
    found = _waiting(reason, message, image, node)
    if found is not None and found.reason == "image_not_allowed" and sign_in is not None:
        found = _not_given_out(image, sign_in)
    raw = f"{reason}: {message}" if message else reason
    return replace(found, raw=raw, raw_from="the kubelet", facts=_at(node)) if found else None


def _waiting(reason: str, message: str, image: str, node: str) -> Explanation | None:
    if reason == "InvalidImageName":
        return _change("bad_image_name", f"{image} is not a valid name of an image.", _NAME)
    if reason == "SignatureValidationFailed":
        text = f"The node {node} does not accept the image {image}: its signature is missing or wrong."
        return _change("image_not_accepted", text, "Choose another image. Tell the operators if it should be accepted.")
    if reason in _PULL:
        return _pull(message, image, node)
    if reason in _SETTING_UP:
        return _setting_up(message, image, node)
    return None


def _change(reason: str, sentence: str, remedy: str) -> Explanation:
    return Explanation(reason, sentence, remedy, actions=STOP_OR_CHANGE)


def _pull(message: str, image: str, node: str) -> Explanation:
    """Of what a registry or the node says; the surest signs first, since "not found" is a part of several texts."""
    if "no space left on device" in message:
        return Explanation(
            "node_disk_full", f"The node {node} has no room for the image {image}.", "Tell the operators."
        )
    if "no match for platform" in message:
        text = f"The image {image} is not made for the processor of the node {node}."
        return _change("image_wrong_platform", text, "Choose another image.")
    if found := _NO_HOST.search(message):
        text = f"The node {node} knows no registry {found[1]} for the image {image}."
        return _change("registry_unknown", text, _NAME)
    if "toomanyrequests" in message or "429 Too Many Requests" in message:
        text = (
            f"The registry of the image {image} takes no more requests from the cluster for now; the node tries again."
        )
        return Explanation("registry_limit", text, "It starts by itself when the registry gives it out again.")
    if any(part in message for part in ("denied", "unauthorized", "401 ", "403 Forbidden", "authentication required")):
        text = f"The registry does not give out the image {image}: it wants a sign-in, or has no such repository."
        return _change("image_not_allowed", text, "Check its name, and whether the cluster may pull it.")
    if "not found" in message or "manifest unknown" in message:
        text = f"There is no image {image} in its registry; the node {node} tries again."
        return _change("image_not_found", text, "Check its name and tag; then stop this run and start another.")
    if any(part in message for part in _SILENT):
        text = f"The registry of the image {image} does not answer the node {node}, which tries again."
        remedy = f"It starts by itself when the registry answers. {CONTACT_OPERATORS}"
        return Explanation("registry_unavailable", text, remedy)
    text = f"The image {image} could not be pulled; the node {node} tries again."
    remedy = f"What the node says is behind it. {CONTACT_OPERATORS}"
    return Explanation("image_not_pulled", text, remedy, actions=STOP_OR_CHANGE, is_known=False)


def _not_given_out(image: str, sign_in: RegistryAccess) -> Explanation:
    """A registry tells who may not look the same as for what is not there."""
    host = sign_in.registry
    if sign_in.is_kept:
        text = (
            f"The registry {host} does not give out the image {image} to the team's credentials for it: they are wrong "
            "or over, may not read it, or there is no such repository."
        )
        remedy = (
            "Check its name. An owner or manager can replace the credentials under Team, Images; the node tries again."
        )
        return _change("credentials_refused", text, remedy)
    text = (
        f"The registry {host} does not give out the image {image} to everybody, and the team keeps no credentials for "
        "it; or there is no such repository."
    )
    remedy = "An owner or manager can add some under Team, Images; the node tries again by itself. Check its name too."
    return _change("no_credentials", text, remedy)


def _setting_up(message: str, image: str, node: str) -> Explanation:
    if "image will run as root" in message or "non-numeric user" in message:
        text = f"The image {image} wants to run as root, which this cluster never allows."
        return _change("image_runs_as_root", text, "Choose another image, or build it with a user of its own.")
    if found := _MISSING.search(message):
        text = f"The {found[1]} {found[2]} that its container needs is not in the cluster."
        return Explanation("secret_missing", text, f"The portal makes it; wait a moment. {CONTACT_OPERATORS}")
    if found := _NO_SUCH_KEY.search(message):
        text = f"The {found[2].lower()} {found[3]} that its container needs lacks the key {found[1]}."
        return Explanation("secret_incomplete", text, f"The portal puts it back; wait a moment. {CONTACT_OPERATORS}")
    said = f": {message[:300].rstrip('.')}" if message else ""
    text = f"The node {node} cannot set its container up{said}."
    return Explanation("container_config", text, CONTACT_OPERATORS, is_known=False)


def not_set_up(reason: str, message: str, *, node: str) -> Explanation:
    """A warning about the pod itself: FailedAttachVolume, FailedMount or FailedCreatePodSandBox."""
    found = _not_set_up(reason, message, node)
    who = "the storage" if reason == "FailedAttachVolume" else "the kubelet"
    return replace(found, raw=f"{reason}: {message}", raw_from=who, facts=_at(node))


def _not_set_up(reason: str, message: str, node: str) -> Explanation:
    if "Multi-Attach" in message:
        return _in_use(message)
    if found := _CLAIM.search(message):
        return volume_missing(found[1])
    if reason == "FailedAttachVolume":
        text = f"The storage cannot attach its volume to the node {node}."
        return Explanation("volume_not_attached", text, CONTACT_OPERATORS)
    if reason == "FailedMount":
        if found := _MISSING.search(message):
            text = f"The {found[1]} {found[2]} that its pod needs is not in the cluster."
            return Explanation("secret_missing", text, f"The portal makes it; wait a moment. {CONTACT_OPERATORS}")
        return Explanation("volume_not_mounted", f"The node {node} cannot mount its volume.", CONTACT_OPERATORS)
    return Explanation("pod_not_set_up", f"The node {node} cannot set up its network.", CONTACT_OPERATORS)


def _in_use(message: str) -> Explanation:
    if found := _USED_BY.search(message):
        text = f"Its volume is still in use on another node, by {found[1].strip().rstrip('.')}."
        return Explanation("volume_in_use", text, "Stop what uses it, or wait until that has ended.")
    text = "Its volume is still attached to another node."
    return Explanation("volume_in_use", text, f"It starts when that node has let go of it. {CONTACT_OPERATORS}")


def slow_pull(node: str, since: datetime, limit: timedelta, image: ImagePresence | None) -> Explanation:
    """Of an image that is on its way for longer than `limit`."""
    facts: dict[str, Any] = {}
    size = others = ""
    if image is not None and image.size_mib is not None:
        facts["image_mib"] = image.size_mib
        size = f" ({image_size(image.size_mib)})"
    if image is not None and (there := len(image.nodes - {node})):
        facts["nodes_with_image"] = there
        others = f"; {there} other {'node has' if there == 1 else 'nodes have'} it already"
    minutes = int(limit.total_seconds() // 60)
    began = date_and_time(since)
    text = f"On {node}: fetching its image{size} since {began}, for more than {minutes} minutes now{others}."
    remedy = "The first time on a node, a large image takes long. Tell the operators if it takes half an hour."
    return Explanation("image_slow", text, remedy, facts=facts)


def secrets_unreadable(sealed: UnreadableSecrets, *, node: str) -> Explanation:
    """The Secret of a run is not made, since the worker cannot open what the team sealed."""
    what = "the secret that it was" if sealed.count == 1 else f"all of the {sealed.count} secrets that it was"
    them = "it" if sealed.count == 1 else "them"
    if sealed.code == NO_KEY:
        said = f"The portal cannot open {what} launched with: its worker has no key."
        remedy = "Tell the operators; nothing that you chose is wrong. It starts by itself when the worker has its key."
    else:
        said = f"The portal cannot open {what} launched with: its worker has another key than sealed {them}."
        remedy = f"Put {them} again on your team's page Secrets, or tell the operators. Then it starts by itself."
    facts = {**_at(node), "secrets": sealed.count}
    return Explanation(sealed.code, said, remedy, sealed.text, "the portal's worker", facts=facts)


def _at(node: str) -> dict[str, Any]:
    return {"node": node} if node else {}
