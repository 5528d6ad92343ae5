"""Why the API server refuses a pod, or a Job: quota, limits, Pod Security, webhooks, policies. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from cluster.manifests.names import QUOTA
from workloads.status.explain.quantities import figures, is_device, is_more, number, resource_name, sized
from workloads.status.explain.types import CONTACT_OPERATORS, NOT_YOUR_SETTINGS, STOP_OR_CHANGE, Explanation

_EXCEEDED = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
_FAILED = re.compile(r"failed quota: ([^:\s]+): must specify (.+)")
_UNKNOWN = re.compile(r"status unknown for quota: ([^,\s]+)")
_UNCOVERED = re.compile(r"insufficient quota to consume: (\S+)")
_LIMIT = re.compile(
    r"(maximum|minimum) (\S+) usage per (\w+) is ([^\s,]+?)"
    r"(?:, but (?:limit|request) is ([^\s,\]]+)|\.\s+No \w+ is spec)"
)
_POD_SECURITY = re.compile(r"violates PodSecurity \"([^:\"]+)[^\"]*\"(?:: (.+))?", re.DOTALL)
_WEBHOOK = re.compile(r"admission webhook \"([^\"]+)\" denied the request(?:: (.+)| without explanation)?", re.DOTALL)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.+)", re.DOTALL)
_SILENT = re.compile(r"failed calling webhook \"([^\"]+)\"")
_ACCOUNT = re.compile(r"serviceaccount \"([^\"]+)\" not found")
_IMAGE = re.compile(r"\bimages?\b|\bregistr(?:y|ies)\b", re.IGNORECASE)
_FIELD = re.compile(r"\b((?:spec|metadata)(?:\.[A-Za-z][\w\-]*(?:\[[^\]]*\])?)+)")
_NESTED = re.compile(r"\s*\([^()]*\)")


NAMESPACE_ENDING = "Your team's namespace is being deleted from the cluster; nothing starts in it."
_NOT_OURS = "An operator can change or remove that ResourceQuota."


class Refused(StrEnum):
    """The kind of object that the API server refuses; the value is the noun for sentences."""

    POD = "pod"
    JOB = "job"
    VOLUME = "volume"


def refused_pod(message: str) -> Explanation:
    """Explains the event FailedCreate of a Job: the Job is admitted, but the API server refuses its pod."""
    found = _refused(message, Refused.POD) or Explanation(
        "pod_refused",
        "The cluster rejected the pod.",
        "See the cluster's message, and contact an operator.",
        is_final=True,
        is_known=False,
    )
    return replace(found, raw=message, raw_from="the Job controller")


def refused_job(message: str) -> Explanation:
    """Explains the API server's answer to the Job itself. The worker repeats the request every few minutes: only what
    lies in the Job is final.
    """
    found = _refused(message, Refused.JOB)
    if found is None:
        found = Explanation(
            "refused_by_cluster",
            "The cluster rejected the job. Stop it, or contact an operator.",
            "Contact an operator.",
            is_final=True,
            actions=("stop", "delete"),
            is_known=False,
        )
    return replace(found, raw=message, raw_from="the API server")


def refused_volume(name: str, message: str) -> Explanation:
    """Explains the API server's answer to the claim of a volume. The worker repeats the request every minute."""
    found = _refused(message, Refused.VOLUME)
    why = f" {found.sentence}" if found is not None else ""
    remedy = "Choose another volume, or none. It starts automatically when the cluster accepts the volume."
    return Explanation(
        "volume_refused",
        f"The cluster rejects the volume {name}.{why}",
        f"{remedy} {CONTACT_OPERATORS}",
        message,
        "the API server",
        actions=STOP_OR_CHANGE,
        facts={} if found is None else found.facts,
    )


def not_created(code: str, text: str, *, kind: str) -> Explanation | None:
    """Explains why the worker's last attempt, which it will repeat, could not create the Job; None: nothing to
    report.
    """
    saved = f"Your {kind} is saved and starts automatically when possible."
    if code == "namespace_missing":
        said = f"Your team's namespace does not exist in the cluster yet. {saved}"
        return Explanation("namespace_missing", said, f"Wait a moment: the portal creates it. {CONTACT_OPERATORS}")
    if code == "observe_only":
        said = f"The portal only observes the cluster and writes nothing to it. Your {kind} is saved."
        remedy = f"It starts automatically when an operator ends observe-only. {CONTACT_OPERATORS}"
        return Explanation("observe_only", said, remedy)
    if code != "cluster_unavailable":
        return None
    found = _refused(text, Refused.JOB)
    if found is None:
        said = f"The cluster did not respond. Your {kind} is saved and starts when the cluster responds."
        return Explanation("cluster_unavailable", said, f"The portal retries automatically. {CONTACT_OPERATORS}")
    if found.reason == "namespace_ending":
        remedy = f"It starts when the namespace is deleted and the portal has created it again. {CONTACT_OPERATORS}"
        found = Explanation("namespace_going", found.sentence, remedy)
    said = f"{found.sentence} {saved}"
    return replace(found, sentence=said, raw=text, raw_from="the API server", is_final=False)


def _refused(message: str, what: Refused) -> Explanation | None:
    return (
        _by_quota(message, what)
        or _by_limits(message, what)
        or _by_admission(message, what)
        or _by_namespace(message, what)
    )


def _by_quota(message: str, what: Refused) -> Explanation | None:
    if found := _EXCEEDED.search(message):
        return _exceeded(found[1], what, *(_amounts(found[part]) for part in (2, 3, 4)))
    if found := _FAILED.search(message):
        missing = ", ".join(sorted({part.split(" for")[0].strip() for part in found[2].split(";")}))
        text = f"The {_quota(found[1])} requires values that the {what} does not set: {missing}."
        return Explanation("quota_needs_sizes", text, "Contact an operator.", is_final=True)
    if found := _UNKNOWN.search(message):
        text = f"The usage of the namespace's ResourceQuota {found[1]} is not known yet."
        return Explanation("quota_starting", text, "It is retried automatically in a moment.")
    if found := _UNCOVERED.search(message):
        text = f"The namespace has no ResourceQuota for {resource_name(found[1])}, and the cluster requires one."
        return Explanation("quota_missing", text, "Contact an operator.", is_final=True)
    return None


def _quota(name: str) -> str:
    foreign = "" if name == QUOTA else " (not created by the portal)"
    return f"namespace's ResourceQuota {name}{foreign}"


def _counts_objects(resource: str) -> bool:
    """Whether a ResourceQuota counts objects by this name, whatever they request."""
    return resource.startswith("count/") or resource in ("pods", "secrets", "configmaps", "persistentvolumeclaims")


def _exceeded(
    quota: str, what: Refused, asked: dict[str, str], used: dict[str, str], limit: dict[str, str]
) -> Explanation:
    never = [name for name in asked if name in limit and is_more(name, asked[name], limit[name])]
    if never and all(_counts_objects(name) for name in never):
        numbers = "; ".join(f"{resource_name(name)}: {asked[name]} requested, limit {limit[name]}" for name in never)
        return Explanation(
            "quota_forbids",
            f"The {_quota(quota)} does not allow this object: {numbers}.",
            f"No smaller request helps. {_NOT_OURS}",
            is_final=True,
            facts={"quota": quota, **figures(never[0], asked=asked[never[0]], limit=limit[never[0]])},
        )
    if never:
        sizes = "; ".join(
            f"{resource_name(name)}: {sized(name, asked[name])} requested, limit {number(name, limit[name])}"
            for name in never
        )
        return Explanation(
            "quota_too_small",
            f"The request exceeds the {_quota(quota)}: {sizes}.",
            "Request less, or contact an operator." if quota == QUOTA else f"Request less. {_NOT_OURS}",
            is_final=True,
            actions=STOP_OR_CHANGE,
            facts={"quota": quota, **figures(never[0], asked=asked[never[0]], limit=limit[never[0]])},
        )
    sizes = "; ".join(
        f"{resource_name(name)}: {sized(name, asked[name])} requested, "
        f"{number(name, used.get(name, '?'))} of {number(name, limit.get(name, '?'))} used"
        for name in asked
    )
    full = f"{_quota(quota)} is full: {sizes}."
    return Explanation(
        "quota_full",
        f"Admitted, but the {full}" if what is Refused.POD else f"The {full}",
        "It starts automatically when a terminating pod is gone, usually within a minute, or when another workload in "
        f"the namespace ends.{'' if quota == QUOTA else f' {_NOT_OURS}'}",
        facts={"quota": quota, **_first(asked, used, limit)},
    )


def _first(asked: dict[str, str], used: dict[str, str], limit: dict[str, str]) -> dict[str, Any]:
    name = next(iter(asked))
    return figures(name, asked=asked[name], used=used.get(name, "?"), limit=limit.get(name, "?"))


def _amounts(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in text.rstrip(",").split(","))


def _by_limits(message: str, what: Refused) -> Explanation | None:
    found = _LIMIT.findall(message)
    if not found:
        return None
    parts = []
    for which, resource, per, bound, asked in found:
        said = f"{sized(resource, asked)} requested" if asked else "not set"
        parts.append(f"{resource} per {per.lower()}: {said}, {which} {number(resource, bound)}")
    _, resource, _, bound, asked = found[0]
    facts = figures(resource, **({"asked": asked} if asked else {}), limit=bound)
    text = f"The namespace's LimitRange rejects the {what}: {'; '.join(parts)}."
    what_else = "units" if is_device(resource) else "cpu or memory"
    if all(which == "minimum" for which, *_ in found):
        remedy = f"Request more {what_else}, or contact an operator."
        return Explanation("below_limit_range", text, remedy, is_final=True, actions=STOP_OR_CHANGE, facts=facts)
    remedy = f"Request {'fewer' if is_device(resource) else 'less'} {what_else}, or contact an operator."
    return Explanation("limit_range", text, remedy, is_final=True, actions=STOP_OR_CHANGE, facts=facts)


def with_numbers(
    found: Explanation, asked: Mapping[str, str], most: Mapping[str, str], least: Mapping[str, str]
) -> Explanation:
    """Adds numbers, which Kueue's message about limits lacks. `most`, `least`: what one container may request."""
    if found.reason == "limit_range":
        which, bounds = "maximum", most
        outside = [name for name in asked if name in most and is_more(name, asked[name], most[name])]
    elif found.reason == "below_limit_range":
        which, bounds = "minimum", least
        outside = [name for name in asked if name in least and is_more(name, least[name], asked[name])]
    else:
        return found
    if not outside:
        return found
    sizes = "; ".join(
        f"{name} per container: {sized(name, asked[name])} requested, {which} {number(name, bounds[name])}"
        for name in outside
    )
    facts = figures(outside[0], asked=asked[outside[0]], limit=bounds[outside[0]])
    return replace(found, sentence=f"The namespace's LimitRange rejects the pod: {sizes}.", facts=facts)


def _by_admission(message: str, what: Refused) -> Explanation | None:
    if found := _POD_SECURITY.search(message):
        rules = ", ".join(part.strip() for part in _NESTED.sub("", found[2] or "").split(","))
        return Explanation(
            "pod_security",
            f"The cluster's Pod Security rules ({found[1]}) reject the {what}{f': {rules}' if rules else ''}.",
            NOT_YOUR_SETTINGS,
            is_final=True,
        )
    if found := _WEBHOOK.search(message):
        return _denied(f"admission webhook {found[1]}", found[2] or "", what)
    if found := _POLICY.search(message):
        return _denied(f"admission policy {found[1]}", found[2], what)
    if found := _SILENT.search(message):
        text = f"The cluster's admission webhook {found[1]} does not respond, and no {what} is created without it."
        return Explanation("admission_unavailable", text, f"It is retried automatically. {CONTACT_OPERATORS}")
    return None


def _denied(who: str, why: str, what: Refused) -> Explanation:
    if _IMAGE.search(why):
        text = f"The cluster's {who} denied the image of the {what}: {' '.join(why.split())[:300].rstrip('.')}."
        remedy = "Choose an image that it allows. Contact an operator if this image should be allowed."
        return Explanation("image_not_accepted", text, remedy, is_final=True, actions=STOP_OR_CHANGE)
    said = f": {' '.join(why.split())[:300].rstrip('.')}" if why else ""
    field = _FIELD.search(why)
    return Explanation(
        "admission_denied",
        f"The cluster's {who} denied the {what}{said}.",
        f"Change {f'the field {field[1]}' if field else 'the setting that is denied'}, or contact an operator.",
        is_final=True,
        actions=STOP_OR_CHANGE,
    )


def _by_namespace(message: str, what: Refused) -> Explanation | None:
    if found := _ACCOUNT.search(message):
        text = f"The namespace has no service account {found[1]} for the {what}."
        return Explanation("service_account", text, "Wait a moment: the portal restores it.")
    return namespace_ending() if "because it is being terminated" in message else None


def namespace_ending() -> Explanation:
    return Explanation("namespace_ending", NAMESPACE_ENDING, "Contact an operator.", is_final=True)
