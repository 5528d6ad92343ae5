"""Quantities and names of Kubernetes in readable form. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from cluster.mirror.records.quantities import amount

GIB = 2**30


def are(count: int) -> str:
    return "is" if count == 1 else "are"


class Predicate(NamedTuple):
    """What is stated about a number of nodes, in singular and plural."""

    one: str
    many: str

    def of(self, count: int, noun: str = "") -> str:
        counted = f"{count} {noun}{'' if count == 1 else 's'}" if noun else str(count)
        return f"{counted} {self.one if count == 1 else self.many}"


def has(what: str) -> Predicate:
    return Predicate(f"has {what}", f"have {what}")


def is_in_state(what: str) -> Predicate:
    return Predicate(f"is {what}", f"are {what}")


def units_of(count: int, name: str) -> str:
    return f"{count} unit of {name}" if count == 1 else f"{count} units of {name}"


def number(resource: str, quantity: str | int) -> str:
    """Returns cores, GiB or a count; text that is not a quantity is not changed."""
    try:
        value = amount(_plain(resource), quantity)
    except ValueError:
        return str(quantity)
    if _plain(resource) == "cpu":
        return f"{round(value / 1000, 2):g}"
    return f"{round(value / GIB, 1):g}" if is_bytes(resource) else str(value)


def figure(resource: str, quantity: str | int) -> int | float | None:
    """Returns `number` as a number; None if the text is not one."""
    try:
        value = float(number(resource, quantity))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def figures(resource: str, **quantities: str | int) -> dict[str, Any]:
    """Returns facts about one resource, in cores, GiB or a count; unknown ones are omitted."""
    found = {name: figure(resource, quantity) for name, quantity in quantities.items()}
    return {"resource": resource_name(resource), **{name: value for name, value in found.items() if value is not None}}


def sized(resource: str, quantity: str | int) -> str:
    """Returns `number` with its unit: "1 core", "8 GiB", or only a count."""
    value = number(resource, quantity)
    if _plain(resource) == "cpu":
        return f"{value} core" if value == "1" else f"{value} cores"
    return f"{value} GiB" if is_bytes(resource) else value


def is_bytes(resource: str) -> bool:
    return _plain(resource) in ("memory", "storage", "ephemeral-storage")


def is_device(resource: str) -> bool:
    """Only resources that Kubernetes does not know itself have a domain."""
    return "/" in resource_name(resource)


def is_more(resource: str, one: str, other: str) -> bool:
    """Returns whether the first quantity is larger; False if one of them is not a number."""
    try:
        return amount(_plain(resource), one) > amount(_plain(resource), other)
    except ValueError:
        return False


def _plain(resource: str) -> str:
    return resource.removeprefix("requests.").removeprefix("limits.")


def resource_name(resource: str) -> str:
    return _plain(resource)


def image_size(mib: int) -> str:
    """Returns the size of an image as text: 4300 → "4.2 GiB", 40 → "40 MiB"."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib} MiB"


def quantity_text(quantity: str) -> str:
    """Returns a quantity of memory or disk as readable text: 52Mi → "52 MiB"."""
    try:
        value = amount("memory", quantity)
    except ValueError:
        return quantity
    return f"{round(value / GIB, 1):g} GiB" if value >= GIB else f"{round(value / 2**20):g} MiB"
