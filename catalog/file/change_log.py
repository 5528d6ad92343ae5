"""A change of the catalog for users: a sentence, and every field before → after. Pure."""

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
# Labels for columns whose name is not readable. "" is not shown: the sentence contains it already.
FIELD_LABELS = {
    "borrowing_limit": "borrowing limit per team",
    "contents": "contents",
    "cpu_per_unit": "CPU cores per unit",
    "damping_minutes": "minutes before lent quota falls",
    "deprecated_since": "deprecated since",
    "device_selector": "device selector",
    "eligibility": "eligibility",
    "held_reason": "reason",
    "held_since": "",
    "held_until": "expected to resume",
    "idle_action": "action if GPUs are idle",
    "idle_minutes": "minutes before GPUs are idle",
    "idle_stop_minutes": "idle minutes before a notebook is stopped",
    "interconnect_note": "interconnect note",
    "interconnect_on": "interconnect measured on",
    "kinds": "allowed workloads",
    "life_cycle": "",
    "log_retention_days": "days for which logs are kept",
    "max_units": "maximum of units with added nodes",
    "memory_gib_per_unit": "node memory per unit (GiB)",
    "memory_mib": "GPU memory per unit (MiB)",
    "min_cuda": "minimum CUDA version",
    "node_minutes": "minutes until an added node is ready",
    "position": "position in the list",
    "price_per_unit_hour": "price per unit-hour",
    "production_limit": "production units per team",
    "promise_limit": "allocation limit",
    "replicas": "shares per GPU",
    "resource": "Kubernetes resource",
    "retiring_message": "message",
    "run_hours_limit": "time limit of a run (h)",
    "runs_until": "end of running workloads",
    "starter": "trial without a team",
    "terms_version": "terms version",
    "topology": "topology",
    "units_per_workload": "units per workload",
    "visibility": "visibility",
    "weight": "GPU equivalents per unit",
}
VALUE_LABELS = {
    "visibility": {"everyone": "everyone", "named": "named teams"},
    "kinds": {"any": "notebooks and jobs", "notebook": "notebooks only", "job": "jobs only"},
}
TRANSITION_VERBS = {
    ("draft", "active"): "opened",
    ("retiring", "active"): "cancelled the retirement of",
    ("retired", "active"): "reopened",
    ("active", "retiring"): "started to retire",
    ("retiring", "retired"): "closed",
}


@dataclass(frozen=True)
class ChangedField:
    """`before` is "" if there is no previous value."""

    name: str
    before: str
    after: str


def change_verb(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The middle of "<who> … <name>"."""
    if kind == "class.moved":
        step = (before.get("life_cycle", ""), after.get("life_cycle", ""))
        return TRANSITION_VERBS.get(step, "changed the retirement of")
    if kind == "class.held":
        return "paused scheduling of" if after.get("held_since") else "changed the scheduling pause of"
    if kind == "image.put":
        return "changed the image" if before else "added the image"
    return {
        "class.created": "created",
        "class.edited": "changed",
        "class.released": "resumed scheduling of",
        "image.removed": "removed the image",
    }[kind]


def changed_fields(
    kind: str, before: Mapping[str, Any], after: Mapping[str, Any], *, known: Collection[str]
) -> tuple[ChangedField, ...]:
    """`known`: slugs of the classes that the reader may see; another successor is shown as "another class".

    The values of a new class are on its page; a resume or a removal has no fields.
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
