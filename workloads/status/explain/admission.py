"""Why the API server does not take a pod, or a Job: quota, limits, Pod Security, webhooks, policies. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workloads.status.explain.quantities import figures, is_more, number, resource_name, unit
from workloads.status.explain.types import CONTACT_OPERATORS, STOP_OR_CHANGE, Explanation

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
_NESTED = re.compile(r"\s*\([^()]*\)")


def refused_pod(message: str) -> Explanation:
    """The event FailedCreate of a Job: its units are assigned, but the API server does not take its pod."""
    found = _refused(message) or Explanation(
        "pod_refused",
        "The cluster refuses its pod.",
        "The answer of the cluster says why; tell the operators.",
        is_final=True,
        is_known=False,
    )
    return replace(found, raw=message, raw_from="the Job controller")


def refused_job(message: str) -> Explanation:
    """The API server's answer to the Job itself."""
    found = _refused(message)
    if found is None:
        found = Explanation(
            "refused_by_cluster",
            "The cluster refused its job. Stop it, or tell the operators.",
            "Tell the operators.",
            is_final=True,
            actions=("stop", "delete"),
            is_known=False,
        )
    text = found.sentence.replace(" its pod", " its job").replace("its units are assigned, but", "but")
    return replace(found, sentence=text, raw=message, raw_from="the API server", is_final=True)


def not_created(code: str, text: str, *, kind: str) -> Explanation | None:
    """What kept the worker from creating the Job at its last try, which it repeats by itself; None: nothing to tell."""
    saved = f"Your {kind} is saved and starts by itself when it can."
    if code == "namespace_missing":
        said = f"Your team's namespace is not in the cluster yet. {saved}"
        return Explanation("namespace_missing", said, f"The portal makes it; wait a moment. {CONTACT_OPERATORS}")
    if code != "cluster_unavailable":
        return None
    found = _refused(text)
    if found is None:
        said = f"The cluster did not answer. Your {kind} is saved and will start when it does."
        return Explanation("cluster_unavailable", said, f"It is tried again by itself. {CONTACT_OPERATORS}")
    if found.reason == "namespace_ending":
        remedy = f"It starts when that namespace is gone and the portal has made it again. {CONTACT_OPERATORS}"
        found = Explanation("namespace_going", found.sentence, remedy)
    said = found.sentence.replace(" its pod", " its job").replace("no pod is made", "no job is made")
    return replace(found, sentence=f"{said} {saved}", raw=text, raw_from="the API server", is_final=False)


def _refused(message: str) -> Explanation | None:
    return _by_quota(message) or _by_limits(message) or _by_admission(message) or _by_namespace(message)


def _by_quota(message: str) -> Explanation | None:
    if found := _EXCEEDED.search(message):
        return _exceeded(found[1], *(_amounts(found[part]) for part in (2, 3, 4)))
    if found := _FAILED.search(message):
        missing = ", ".join(sorted({part.split(" for")[0].strip() for part in found[2].split(";")}))
        text = f"The namespace's quota {found[1]} wants sizes that its pod does not name: {missing}."
        return Explanation("quota_needs_sizes", text, "Tell the operators.", is_final=True)
    if found := _UNKNOWN.search(message):
        text = f"The namespace's quota {found[1]} is not counted yet."
        return Explanation("quota_starting", text, "It is tried again by itself within moments.")
    if found := _UNCOVERED.search(message):
        text = f"The namespace has no quota for {resource_name(found[1])}, and the cluster wants one."
        return Explanation("quota_missing", text, "Tell the operators.", is_final=True)
    return None


def _exceeded(quota: str, asked: dict[str, str], used: dict[str, str], limit: dict[str, str]) -> Explanation:
    never = [name for name in asked if name in limit and is_more(name, asked[name], limit[name])]
    if never:
        what = "; ".join(
            f"{resource_name(name)}: {number(name, asked[name])}{unit(name)} asked, {number(name, limit[name])} at most"
            for name in never
        )
        return Explanation(
            "quota_too_small",
            f"The namespace's quota {quota} can never take it: {what}.",
            "Ask for less, or tell the operators.",
            is_final=True,
            actions=STOP_OR_CHANGE,
            facts={"quota": quota, **figures(never[0], asked=asked[never[0]], limit=limit[never[0]])},
        )
    what = "; ".join(
        f"{resource_name(name)}: {number(name, asked[name])}{unit(name)} asked, "
        f"{number(name, used.get(name, '?'))} of {number(name, limit.get(name, '?'))} used"
        for name in asked
    )
    return Explanation(
        "quota_full",
        f"Its units are assigned, but the namespace's quota {quota} is full: {what}.",
        "It starts by itself when a pod that is ending has gone, usually within a minute, or when other work of the "
        "namespace ends.",
        facts={"quota": quota, **_first(asked, used, limit)},
    )


def _first(asked: dict[str, str], used: dict[str, str], limit: dict[str, str]) -> dict[str, Any]:
    name = next(iter(asked))
    return figures(name, asked=asked[name], used=used.get(name, "?"), limit=limit.get(name, "?"))


def _amounts(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in text.rstrip(",").split(","))


def _by_limits(message: str) -> Explanation | None:
    found = _LIMIT.findall(message)
    if not found:
        return None
    parts = []
    for which, resource, per, bound, asked in found:
        said = f"{number(resource, asked)}{unit(resource)} asked" if asked else "none asked"
        word = "at most" if which == "maximum" else "at least"
        parts.append(f"{resource} per {per.lower()}: {said}, {number(resource, bound)} {word}")
    _, resource, _, bound, asked = found[0]
    facts = figures(resource, **({"asked": asked} if asked else {}), limit=bound)
    text = f"The namespace's limits refuse its pod: {'; '.join(parts)}."
    if all(which == "minimum" for which, *_ in found):
        remedy = "Ask for more, or tell the operators."
        return Explanation("below_limit_range", text, remedy, is_final=True, actions=STOP_OR_CHANGE, facts=facts)
    remedy = "Ask for less cpu or memory, or tell the operators."
    return Explanation("limit_range", text, remedy, is_final=True, actions=STOP_OR_CHANGE, facts=facts)


def with_numbers(found: Explanation, asked: Mapping[str, str], most: Mapping[str, str]) -> Explanation:
    """What Kueue says of limits has none. `most`: that one container may ask for."""
    over = [name for name in asked if name in most and is_more(name, asked[name], most[name])]
    if found.reason != "limit_range" or not over:
        return found
    what = "; ".join(
        f"{name} per container: {number(name, asked[name])}{unit(name)} asked, {number(name, most[name])} at most"
        for name in over
    )
    facts = figures(over[0], asked=asked[over[0]], limit=most[over[0]])
    return replace(found, sentence=f"The namespace's limits refuse its pod: {what}.", facts=facts)


def _by_admission(message: str) -> Explanation | None:
    if found := _POD_SECURITY.search(message):
        rules = ", ".join(part.strip() for part in _NESTED.sub("", found[2] or "").split(","))
        return Explanation(
            "pod_security",
            f"The cluster's Pod Security rules ({found[1]}) refuse its pod{f': {rules}' if rules else ''}.",
            "Tell the operators; nothing that you chose can change it.",
            is_final=True,
        )
    if found := _WEBHOOK.search(message):
        return _denied(f"admission check {found[1]}", found[2] or "")
    if found := _POLICY.search(message):
        return _denied(f"policy {found[1]}", found[2])
    if found := _SILENT.search(message):
        text = f"The cluster's admission check {found[1]} does not answer, and no pod is made without it."
        return Explanation(
            "admission_unavailable", text, "It is tried again by itself. Tell the operators if it takes long."
        )
    return None


def _denied(who: str, why: str) -> Explanation:
    said = f": {' '.join(why.split())[:300].rstrip('.')}" if why else ""
    return Explanation(
        "admission_denied",
        f"The cluster's {who} refuses its pod{said}.",
        "Change what it objects to, or tell the operators.",
        is_final=True,
        actions=STOP_OR_CHANGE,
    )


def _by_namespace(message: str) -> Explanation | None:
    if found := _ACCOUNT.search(message):
        text = f"The namespace lacks the service account {found[1]} for its pod."
        return Explanation("service_account", text, "The portal repairs it; wait a moment.")
    if "because it is being terminated" in message:
        text = "Its namespace is being removed from the cluster."
        return Explanation("namespace_ending", text, "Tell the operators.", is_final=True)
    return None
