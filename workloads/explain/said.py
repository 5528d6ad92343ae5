"""What every explanation is made of: the value itself, and quantities and names as people read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.records import amount

GIB = 2**30
TELL_OPERATORS = "Tell the operators if it stays."
# Next best actions, best first; each is a verb of the API or a thing to look at.
STOP = ("stop",)
STOP_OR_CHANGE = ("stop", "change")


@dataclass(frozen=True)
class Explained:
    """`reason` is a code for programs; `is_final`: waiting alone will never help. `facts`: the sentence's numbers."""

    reason: str
    sentence: str
    remedy: str = ""
    raw: str = ""
    raw_from: str = ""
    is_final: bool = False
    actions: tuple[str, ...] = STOP
    facts: Mapping[str, Any] = field(default_factory=dict)


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
