"""Faults of GPUs as text for templates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.urls import reverse

from usage.faults.policy import cordon_command
from usage.faults.queries import Fault, FaultReading, FaultState

STATES = {
    FaultState.OPEN: ("Open", "bad"),
    FaultState.UNKNOWN: ("No metrics: unknown", "wait"),
    FaultState.CLEARED: ("Over", "good"),
    FaultState.GONE: ("GPU is gone", ""),
}


def run_view(faults: Iterable[Fault]) -> list[dict[str, Any]]:
    """For the people of a run: one entry for each kind and code, with all of its GPUs."""
    by_kind: dict[tuple[str, int], list[Fault]] = defaultdict(list)
    for one in faults:
        by_kind[one.row.kind, one.row.code].append(one)
    return [_run_entry(found) for found in by_kind.values()]


def _run_entry(found: Sequence[Fault]) -> dict[str, Any]:
    # The state of the worst: what is open, or not known to be over.
    first = min(found, key=lambda one: list(FaultState).index(one.state))
    state, tone = STATES[first.state]
    return {
        "title": first.title,
        "what": first.meaning.what,
        "loss": first.meaning.loss,
        "do": first.meaning.do,
        "devices": ", ".join(sorted({one.row.device for one in found})),
        "node": first.row.node,
        "since": min(one.row.first_seen for one in found),
        "cleared_at": None if first.is_open else max(one.row.cleared_at for one in found if one.row.cleared_at),
        "state": state,
        "tone": tone,
        "is_open": first.is_open,
    }


def node_view(fault: Fault) -> dict[str, Any]:
    """For operators, on the page of a node."""
    row, (state, tone) = fault.row, STATES[fault.state]
    return {
        "command_id": f"cordon-{row.pk}",
        "title": fault.title,
        "what": fault.meaning.what,
        "operators": fault.meaning.operators,
        "command": cordon_command(fault.kind, row.code, row.node) if fault.is_open else "",
        "device": row.device if not row.instance else f"{row.device}, MIG instance {row.instance}",
        "since": row.first_seen,
        "last_seen": row.last_seen,
        "measured_at": row.measured_at,
        "cleared_at": row.cleared_at,
        "is_open": fault.is_open,
        "state": state,
        "tone": tone,
        "runs": [
            {
                "name": run.workload.name,
                "team": run.workload.tenant.name,
                "number": run.number,
                "href": reverse("workload", args=[run.workload.tenant.slug, run.workload.name]),
            }
            for run in fault.runs
        ],
    }


def reading_sentence(reading: FaultReading) -> str:
    """ "" while faults are read."""
    if reading.read_until is None and not reading.problem:
        return "Faults of GPUs are not read: there is no Prometheus, or it has not been asked yet."
    return f"Faults of GPUs are not known now. {reading.problem}" if reading.problem else ""
