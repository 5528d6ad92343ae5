"""Layouts, and what a plan does to a set, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from django.utils import timezone

from catalog.mig.sets.types import WHOLE, NodePlan
from desk.nodes.mig_sets.types import Broken, SetMaintenance
from portal.ui.text import first_names, plural

REASON = "MIG layout"
_FIELD_TIME = "%Y-%m-%dT%H:%M"


def label_of(profile: str) -> str:
    return "GPU without MIG" if profile == WHOLE else profile


def listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} × {label_of(name)}" for name, number in counts.items() if number)


def layout_text(groups: Sequence[tuple[Mapping[str, int], int]]) -> str:
    """`4 GPUs with 7 × 1g.10gb each, 4 GPUs without MIG`."""
    return ", ".join(
        f"{plural(number, 'GPU')} without MIG"
        if WHOLE in instances
        else f"{plural(number, 'GPU')} with {listed(instances)}{' each' if number > 1 else ''}"
        for instances, number in groups
    )


def node_text(one: NodePlan) -> str:
    return layout_text(one.groups) if one.is_changed else "unchanged"


def broken_sentence(one: Broken) -> str:
    now = f", as now {one.now}" if one.then == one.now else f"; {one.now} exist now"
    shared = f" together with {first_names(one.others)}" if one.others else ""
    return f"{one.granted} granted{shared}, {one.then} would exist{now}."


def short_sentence(step: SetMaintenance) -> str:
    """What is missing while the nodes of the step are closed; "" for nothing."""
    if not step.short:
        return ""
    return f"Granted units are missing while these nodes are closed: {listed(step.short)}."


def maintenance_query(step: SetMaintenance) -> str:
    """Values for the form of a maintenance, as a query."""
    times = {
        "holds_from": step.starts_at,
        "starts_at": step.starts_at,
        "ends_at": step.ends_at,
    }
    fields = [("nodes", name) for name in step.nodes]
    fields += [
        ("kind", "repartition"),
        ("reason", REASON),
        ("mig_config", step.config),
        ("expected", " ".join(f"{name}={number}" for name, number in step.devices.items())),
    ]
    fields += [(name, timezone.localtime(at).strftime(_FIELD_TIME)) for name, at in times.items()]
    return urlencode(fields)
