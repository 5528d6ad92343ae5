"""What happened to an object in the cluster, in words for people. Pure: texts and records in, sentences out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

FIELDS_SHOWN = 5

# Answers of the API server, its admission plugins and Kueue, made plain. The first that matches speaks; what is in the
# brackets is the reason in its own words.
_PLAIN = tuple(
    (re.compile(pattern, re.DOTALL), sentence)
    for pattern, sentence in (
        (r"gpu-portal fence: (.+)", "The cluster's fence around the portal does not let this through: {}."),
        (
            r"User \"[^\"]*\" cannot (\w+) resource \"([^\"]+)\"",
            "The portal has no right to {} {} here; an operator has to grant it.",
        ),
        (r"exceeded quota: ([^,]+), (.+)", "The quota {} of the namespace is used up: {}."),
        (r"violates PodSecurity \"([^\"]+)\": (.+)", "The namespace's security level {} forbids it: {}."),
        (r"admission webhook \"([^\"]+)\" denied the request: (.+)", "A check of the cluster ({}) says no: {}."),
        (r"ValidatingAdmissionPolicy '([^']+)'.* denied request: (.+)", "A rule of the cluster ({}) says no: {}."),
        (r" is invalid: (.+)", "The cluster takes a value for wrong: {}."),
        (r"(?:namespaces|Namespace) \"([^\"]+)\" not found", "The namespace {} is not there."),
        (r"no matches for kind \"([^\"]+)\"", "The cluster does not know the kind {}."),
    )
)


def refusal_sentence(code: str, text: str) -> str:
    """One sentence about a refusal, by the API server's reason and message."""
    for pattern, sentence in _PLAIN:
        if found := pattern.search(text):
            return sentence.format(*(group.strip().rstrip(".") for group in found.groups()))
    why = {
        "Forbidden": "It is forbidden.",
        "Invalid": "It takes a value for wrong.",
        "NotFound": "Its place is absent.",
    }
    return f"The cluster refused it. {why.get(code, '')}".strip()


def drift_sentence(found: Mapping[str, Any]) -> str:
    """Fields, by whom and since when, of an object that is not as it was sent."""
    if found.get("gone"):
        return f"Deleted outside of the portal{_since(found, 'at')}. It is made again."
    return f"Changed outside of the portal{_by(found)}{_since(found)}: {_fields(found)}. It is set back."


def repair_sentence(found: Mapping[str, Any]) -> str:
    if found.get("gone"):
        return f"Made again; it was deleted outside of the portal{_since(found, 'at')}."
    return f"Set back; {_fields(found)} had been changed outside of the portal{_by(found)}{_since(found)}."


def _fields(found: Mapping[str, Any]) -> str:
    fields = [str(one) for one in found.get("fields") or ()]
    more = f" and {len(fields) - FIELDS_SHOWN} more" if len(fields) > FIELDS_SHOWN else ""
    return (", ".join(fields[:FIELDS_SHOWN]) or "fields") + more


def _by(found: Mapping[str, Any]) -> str:
    return f" by {found['manager']}" if found.get("manager") else ""


def _since(found: Mapping[str, Any], word: str = "since") -> str:
    """To the minute: `since 21 Nov 21:58 UTC`."""
    try:
        moment = datetime.fromisoformat(str(found.get("since") or ""))
    except ValueError:
        return ""
    return f" {word} {moment.day} {moment:%b %H:%M} UTC"
