"""A change of the catalog as people read it: a sentence, and every field before → after. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.ui.text import date_and_time

EVENT_VERBS = (
    "class.created", "class.edited", "class.moved", "class.held", "class.released", "image.put", "image.removed",
)  # fmt: skip
TEXT_LENGTH = 160
NOTHING = "nothing"
# Where the column's own name is not a word for people. "" is not shown: the sentence says it already.
FIELD_LABELS = {
    "borrowing_limit": "units that a team may borrow",
    "contents": "what is in it",
    "cpu_per_unit": "cores per unit",
    "deprecated_since": "out of date since",
    "device_selector": "selector of devices",
    "eligibility": "who it is meant for",
    "held_reason": "for",
    "held_since": "",
    "held_until": "expected to open",
    "idle_stop_minutes": "minutes without use after which a notebook is stopped",
    "interconnect_note": "note about the interconnect",
    "interconnect_on": "interconnect measured on",
    "kinds": "what may run on it",
    "life_cycle": "",
    "memory_gib_per_unit": "memory of the host per unit (GiB)",
    "memory_mib": "memory of one unit (MiB)",
    "min_cuda": "least CUDA version",
    "position": "place in the list",
    "price_per_unit_hour": "price per unit and hour",
    "production_limit": "units that a team may have as production work",
    "promise_limit": "units that may be promised",
    "replicas": "shares of one card",
    "resource": "counted as",
    "retiring_message": "message",
    "run_hours_limit": "hours that a run may take",
    "runs_until": "what runs may go on until",
    "starter": "may be tried without a team",
    "terms_version": "version of the terms",
    "units_per_workload": "units per workload",
    "visibility": "who may see it",
    "weight": "GPU equivalents per unit",
}
VALUE_LABELS = {
    "visibility": {"everyone": "everyone", "named": "named teams"},
    "kinds": {"any": "notebooks and jobs", "notebook": "notebooks only", "job": "jobs only"},
}
TRANSITION_VERBS = {
    ("draft", "active"): "opened",
    ("retiring", "active"): "took back the retirement of",
    ("retired", "active"): "opened again",
    ("active", "retiring"): "began to retire",
    ("retiring", "retired"): "closed",
}


@dataclass(frozen=True)
class ChangedField:
    """`before` "" where there was nothing to compare with."""

    name: str
    before: str
    after: str


def change_verb(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The middle of "<who> … <name>"."""
    if kind == "class.moved":
        step = (before.get("life_cycle", ""), after.get("life_cycle", ""))
        return TRANSITION_VERBS.get(step, "changed what is said of the end of")
    if kind == "class.held":
        return "held" if after.get("held_since") else "changed what is said of the hold of"
    if kind == "image.put":
        return "changed the image" if before else "offered the image"
    return {
        "class.created": "prepared",
        "class.edited": "changed",
        "class.released": "released",
        "image.removed": "took back the image",
    }[kind]


def changed_fields(
    kind: str, before: Mapping[str, Any], after: Mapping[str, Any], *, known: Collection[str]
) -> tuple[ChangedField, ...]:
    """`known`: slugs of the classes that the reader may know of; another successor is only "another class".

    What a class was made of stands on its page; of what is released or taken back, nothing is left to say.
    """
    if kind in ("class.created", "class.released", "image.removed"):
        return ()
    found = []
    for name in after or before:
        word = FIELD_LABELS.get(name, name.replace("_", " "))
        old, new = _text(name, before.get(name), known), _text(name, after.get(name), known)
        if word and old != new:
            found.append(ChangedField(word, old or "", NOTHING if new is None else new))
    return tuple(found)


def _text(name: str, value: Any, known: Collection[str]) -> str | None:
    """None of an empty value."""
    if value is None or value == "" or value == [] or value == {}:
        return None
    if name == "successor" and value not in known:
        return "another class"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in VALUE_LABELS:
        return VALUE_LABELS[name].get(value, str(value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={text}" for key, text in sorted(value.items()))
    if isinstance(value, list):
        return "; ".join(_text("", one, known) or NOTHING for one in value)
    if name in ("held_until", "runs_until"):
        return date_and_time(datetime.fromisoformat(value))
    text = str(value)
    return text if len(text) <= TEXT_LENGTH else f"{text[:TEXT_LENGTH]}…"
