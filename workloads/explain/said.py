"""What every explanation is made of: the value itself, and quantities and names as people read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.records import amount

GIB = 2**30
TELL_OPERATORS = "Tell the operators if it is still so in 10 minutes."
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
class Explained:
    """`reason` is a code for programs; `is_final`: waiting alone will never help. `facts`: the sentence's numbers, by
    names of FACTS; of several resources, those of the first.
    """

    reason: str
    sentence: str
    remedy: str = ""
    raw: str = ""
    raw_from: str = ""
    is_final: bool = False
    actions: tuple[str, ...] = STOP
    facts: Mapping[str, Any] = field(default_factory=dict)


def no_volume(name: str, *, is_going: bool = False) -> Explained:
    """The portal makes a claim once: one of the same name in place of what somebody deleted would be empty."""
    text = f"Its volume {name} is {'being deleted in the cluster' if is_going else 'not in the cluster'}."
    remedy = "Choose another volume, or none; tell the operators if it should be there: somebody may have deleted it."
    return Explained("volume_missing", text, remedy, actions=STOP_OR_CHANGE)


def are(count: int) -> str:
    return "is" if count == 1 else "are"


def units_of(count: int, name: str) -> str:
    return f"{count} unit of {name}" if count == 1 else f"{count} units of {name}"


def number(resource: str, quantity: str | int) -> str:
    """Cores, GiB or pieces; a quantity that is none stays as it is."""
    try:
        value = amount(_plain(resource), quantity)
    except ValueError:
        return str(quantity)
    if _plain(resource) == "cpu":
        return f"{round(value / 1000, 2):g}"
    return f"{round(value / GIB, 1):g}" if is_bytes(resource) else str(value)


def figure(resource: str, quantity: str | int) -> int | float | None:
    """`number` as a number; None for what is none."""
    try:
        value = float(number(resource, quantity))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def figures(resource: str, **quantities: str | int) -> dict[str, Any]:
    """Facts about one resource, in cores, GiB or pieces; what is not known is left out."""
    found = {name: figure(resource, quantity) for name, quantity in quantities.items()}
    return {"resource": named(resource), **{name: value for name, value in found.items() if value is not None}}


def unit(resource: str) -> str:
    if _plain(resource) == "cpu":
        return " cores"
    return " GiB" if is_bytes(resource) else ""


def is_bytes(resource: str) -> bool:
    return _plain(resource) in ("memory", "storage", "ephemeral-storage")


def is_more(resource: str, one: str, other: str) -> bool:
    """Whether one quantity is more than the other; False where one of them is none."""
    try:
        return amount(_plain(resource), one) > amount(_plain(resource), other)
    except ValueError:
        return False


def _plain(resource: str) -> str:
    return resource.removeprefix("requests.").removeprefix("limits.")


def named(resource: str) -> str:
    return _plain(resource)


def in_gib(mib: int) -> str:
    """Of an image: 4300 → "4.2 GiB", 40 → "40 MiB"."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib} MiB"


def size(quantity: str) -> str:
    """A quantity of memory or disk as people say it: 52Mi → "52 MiB"."""
    try:
        value = amount("memory", quantity)
    except ValueError:
        return quantity
    return f"{round(value / GIB, 1):g} GiB" if value >= GIB else f"{round(value / 2**20):g} MiB"
