"""Sentences for users about what happened to an object in the cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

FIELDS_SHOWN = 5

# Replaces messages of the API server, its admission plugins and Kueue by plain sentences. The first match is used; the
# regex groups come from the original message.
_PLAIN = tuple(
    (re.compile(pattern, re.DOTALL), sentence)
    for pattern, sentence in (
        (r"gpu-portal fence: (.+)", "The cluster's admission policy for the portal rejected this: {}."),
        (
            r"User \"[^\"]*\" cannot (\w+) resource \"([^\"]+)\"",
            "The portal is not allowed to {} {} here; an operator must grant this permission.",
        ),
        (r"exceeded quota: ([^,]+), (.+)", "The ResourceQuota {} of the namespace is exceeded: {}."),
        (r"violates PodSecurity \"([^\"]+)\": (.+)", "The Pod Security level {} of the namespace forbids this: {}."),
        (r"admission webhook \"([^\"]+)\" denied the request: (.+)", "The admission webhook {} rejected this: {}."),
        (
            r"ValidatingAdmissionPolicy '([^']+)'.* denied request: (.+)",
            "The ValidatingAdmissionPolicy {} rejected this: {}.",
        ),
        (r" is invalid: (.+)", "The cluster rejected an invalid value: {}."),
        (r"(?:namespaces|Namespace) \"([^\"]+)\" not found", "Namespace {} does not exist."),
        (r"no matches for kind \"([^\"]+)\"", "The cluster does not support the kind {}."),
    )
)


def refusal_sentence(code: str, text: str) -> str:
    """One sentence about a refusal, by the API server's reason and message."""
    for pattern, sentence in _PLAIN:
        if found := pattern.search(text):
            return sentence.format(*(group.strip().rstrip(".") for group in found.groups()))
    why = {
        "Forbidden": "The request is forbidden.",
        "Invalid": "A value is invalid.",
        "NotFound": "The target does not exist.",
    }
    return f"The cluster rejected the object. {why.get(code, '')}".strip()


def drift_sentence(found: Mapping[str, Any]) -> str:
    """Describes the drift of an object: the changed fields, the field manager and the time."""
    if found.get("gone"):
        return f"Deleted outside of the portal{_since(found, 'at')}. It will be recreated."
    return f"Changed outside of the portal{_by(found)}{_since(found)}: {_fields(found)}. The drift will be repaired."


def repair_sentence(found: Mapping[str, Any]) -> str:
    if found.get("gone"):
        return f"Drift repaired: recreated after it was deleted outside of the portal{_since(found, 'at')}."
    return f"Drift repaired: {_fields(found)} had been changed outside of the portal{_by(found)}{_since(found)}."


def not_repaired_sentence(fields: Sequence[str], manager: str) -> str:
    by = f", written by {manager}," if manager else ""
    return f"The drift could not be repaired: {_fields({'fields': fields})}{by} is still there. It is tried again."


def drift_record_sentence(fields: Sequence[str], manager: str, *, is_deletion: bool) -> str:
    by = f" by {manager}" if manager else " outside of the portal"
    return f"Deleted{by}." if is_deletion else f"{_fields({'fields': fields})} changed{by}."


def failure_sentence(error: Exception) -> str:
    """For an exception that nobody expected. Its text may contain anything, so only its type is shown."""
    return (
        f"The portal failed to send this object ({type(error).__name__}); the worker's log has the details. It is "
        "tried again."
    )


def _fields(found: Mapping[str, Any]) -> str:
    fields = [str(one) for one in found.get("fields") or ()]
    more = f" and {len(fields) - FIELDS_SHOWN} more" if len(fields) > FIELDS_SHOWN else ""
    return (", ".join(fields[:FIELDS_SHOWN]) or "fields") + more


def _by(found: Mapping[str, Any]) -> str:
    return f" by {found['manager']}" if found.get("manager") else ""


def _since(found: Mapping[str, Any], word: str = "since") -> str:
    """Formats to the minute: `since 21 Nov 21:58 UTC`."""
    try:
        moment = datetime.fromisoformat(str(found.get("since") or ""))
    except ValueError:
        return ""
    return f" {word} {moment.day} {moment:%b %H:%M} UTC"
