"""Kubernetes quantities as whole numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE])?)")

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


def add_amounts(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def larger_amounts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    """Returns millicores of cpu, bytes of memory, whole pods and extended resources; the rest is left out."""
    return {name: amount(name, text) for name, text in quantities.items() if _counts(name)}


def amount(resource: str, quantity: Any) -> int:
    """A quantity in whole units of its resource (cpu: millicores), rounded up as Kubernetes does."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"{resource}: {quantity!r} is no quantity")
    number, exponent, suffix = match.groups()
    value = Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _SUFFIXES.get(suffix, Decimal(1)))
    return int((value * 1000 if resource == "cpu" else value).to_integral_value("ROUND_CEILING"))


def _counts(resource: str) -> bool:
    return resource in ("cpu", "memory", "pods") or "/" in resource
