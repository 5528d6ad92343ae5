"""Explanation, the names of its facts, and the remedies and actions that several explanations share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CONTACT_OPERATORS = "Tell the operators if it is still so in 10 minutes."
# Next best actions, best first; each is a verb of the API or a thing to look at.
STOP = ("stop",)
STOP_OR_CHANGE = ("stop", "change")


# What a sentence's numbers are called and what they are, wherever they are told: page, API and mail.
FACTS: Mapping[str, type | tuple[type, ...]] = {
    "again_at": str,
    "asked": (int, float),
    "attempts": int,
    "available": (int, float),
    "container": str,
    "ending_units": int,
    "exit_code": int,
    "fit": int,
    "free_units": int,
    "heard_at": str,
    "image_mib": int,
    "limit": (int, float),
    "memory_gib": (int, float),
    "missing_units": int,
    "most_on_one_node": int,
    "most_units": int,
    "node": str,
    "nodes": int,
    "nodes_with_image": int,
    "position": int,
    "quota": str,
    "resource": str,
    "secrets": int,
    "times": int,
    "units": int,
    "used": (int, float),
    "workers": int,
}


@dataclass(frozen=True)
class Explanation:
    """`reason` is a code for programs; `is_final`: waiting alone will never help. `facts`: the sentence's numbers, by
    names of FACTS; of several resources, those of the first. `wait_sentence`: of a preempted run, the part of
    `sentence` about what it waits for now. `is_known`: False of a text of the cluster that is shown as it is.
    """

    reason: str
    sentence: str
    remedy: str = ""
    raw: str = ""
    raw_from: str = ""
    is_final: bool = False
    actions: tuple[str, ...] = STOP
    facts: Mapping[str, Any] = field(default_factory=dict)
    wait_sentence: str = ""
    is_known: bool = True


def volume_missing(name: str, *, is_going: bool = False) -> Explanation:
    """The portal makes a claim once: one of the same name in place of what somebody deleted would be empty."""
    text = f"Its volume {name} is {'being deleted in the cluster' if is_going else 'not in the cluster'}."
    remedy = "Choose another volume, or none; tell the operators if it should be there: somebody may have deleted it."
    return Explanation("volume_missing", text, remedy, actions=STOP_OR_CHANGE)
