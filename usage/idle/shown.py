"""Idle runs as text for templates, and what an operator may tell a person about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from portal.ui.text import plural, price_text, time_with_zone
from usage.idle.evidence import cost_text, measured_text, memory_text
from usage.idle.queries import IdleFacts, IdleHolder, IdleHolders, WastedWeek
from workloads.core.notifications import page_url


def facts_view(found: IdleFacts, at: datetime) -> dict[str, Any]:
    row = found.row
    return {
        "since": row.idle_since,
        "judged_at": row.judged_at,
        "measured": measured_text(row),
        "cost": cost_text(row, at),
        "stops_at": row.stops_at,
        "kept_until": row.kept_until,
        "kept_reason": row.kept_reason,
        "kept_by": row.kept_by.name if row.kept_by else "",
        "most_hours": found.most_hours,
        "refusal": found.refusal,
    }


def holders_view(found: IdleHolders, at: datetime) -> dict[str, Any]:
    return {
        "holders": [holder_view(one, at) for one in found.holders],
        "more": found.more,
        "runs": found.runs,
        "units": found.units,
        "cost_per_hour": price_text(found.cost_per_hour) if found.cost_per_hour else "",
    }


def holder_view(one: IdleHolder, at: datetime) -> dict[str, Any]:
    row = one.row
    return {
        "pk": row.pk,
        "team": one.team.slug,
        "team_name": one.team.name,
        "workload": one.workload.name,
        "kind": one.workload.get_kind_display(),
        "person": one.person.name,
        "class_name": row.gpu_class.name,
        "units": row.units,
        "since": row.idle_since,
        "measured": measured_text(row),
        "memory": memory_text(row),
        "cost_per_hour": price_text(one.cost_per_hour) if one.cost_per_hour else "",
        "cost_since": price_text(one.cost_since) if one.cost_per_hour else "",
        "stops_at": row.stops_at,
        "kept_until": row.kept_until,
        "kept_reason": row.kept_reason,
        "kept_by": row.kept_by.name if row.kept_by else "",
        "message": _message(one, at),
        "message_id": f"message-{row.pk}",
    }


def _message(one: IdleHolder, at: datetime) -> str:
    row = one.row
    return (
        f"Hello {one.person.name},\n\n"
        f"your {one.workload.get_kind_display()} {one.workload.name} of {one.team.name} holds "
        f"{plural(row.units, 'unit')} of {row.gpu_class.name}, and its GPUs have not been active since "
        f"{time_with_zone(row.idle_since)}: {measured_text(row)}. That is {cost_text(row, at)}. "
        f"Please stop it if you do not need it now: {page_url(one.workload)}"
    )


def holder_line(one: IdleHolder) -> str:
    """One sentence for an approver."""
    row = one.row
    cost = f", {price_text(one.cost_per_hour)} per hour" if one.cost_per_hour else ""
    kept = f"; kept by {row.kept_by.name}: {row.kept_reason}" if row.kept_by else ""
    return (
        f"{plural(row.units, 'unit')} of {row.gpu_class.name}, no GPU activity since {time_with_zone(row.idle_since)}"
        f"{cost}; {memory_text(row)}{kept}"
    )


def week_view(one: WastedWeek) -> dict[str, Any]:
    cost = price_text(one.cost) if one.cost else ""
    return {
        "team": one.team,
        "team_name": one.team_name,
        "person": one.person,
        "runs": one.runs,
        "idle_hours": one.idle_hours,
        "percent": one.percent,
        "cost": cost,
        "message_id": f"message-{one.team}-{one.person_id}",
        "message": (
            f"Hello {one.person},\n\n"
            f"in the last 7 days {plural(one.runs, 'run')} of yours in {one.team_name} held units for "
            f"{one.measured_hours} measured unit-hours. In {one.idle_hours} of them ({one.percent} %) no GPU was active"
            f"{f', which cost {cost}' if cost else ''}. Could you stop them earlier, or use fewer units?"
        ),
    }
