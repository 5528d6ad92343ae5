"""Metrics as text: families of samples with labels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """`kind`: gauge or counter."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[Labels, float], ...]


def text_of(families: Iterable[Family]) -> str:
    """Prometheus' text format 0.0.4."""
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{family.name}{labels_text(labels)} {number(value)}" for labels, value in family.samples]
    return "\n".join(lines) + "\n"


def labels_text(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
