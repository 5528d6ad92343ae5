"""Explanation, the names of its facts, and the remedies and actions that several explanations share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CONTACT_OPERATORS = "Contact an operator if this continues for more than 10 minutes."
NOT_YOUR_SETTINGS = "Contact an operator. Your settings are not the cause."
# Next best actions, best first; each is a verb of the API or a page to open.
STOP = ("stop",)
STOP_OR_CHANGE = ("stop", "change")


# Names and types of the numbers in a sentence, for pages, API and email.
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
    "silent_since": str,
    "times": int,
    "units": int,
    "used": (int, float),
    "workers": int,
}


@dataclass(frozen=True)
class Explanation:
    """`reason` is a code for programs; `is_final`: waiting alone will never help. `facts`: the numbers of the sentence,
    by the names in FACTS; if several resources are named, those of the first. `wait_sentence`: for a preempted run, the
    part of `sentence` about what it waits for now. `is_known`: False if a text of the cluster is shown unchanged.
    `raw_about`: the other workload of the team that `raw` is about, if the cluster wrote the message only for that one.
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
    raw_about: str = ""

    @property
    def raw_source(self) -> str:
        """Names the author of `raw`, and the workload that it is about if that is another one. For people."""
        about = f" (about {self.raw_about}, an equivalent workload)" if self.raw_about else ""
        return f"{self.raw_from}{about}"


def volume_missing(name: str, *, is_going: bool = False) -> Explanation:
    """The portal creates a claim only once: a new claim with the name of a deleted one would be empty."""
    state = "is being deleted in the cluster" if is_going else "does not exist in the cluster"
    text = f"The volume {name} {state}."
    remedy = "Choose another volume, or none. Contact an operator if it should exist: it may have been deleted."
    return Explanation("volume_missing", text, remedy, actions=STOP_OR_CHANGE)
