"""Words of mails about quota. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tenants.policy import Taken


def decided(answers: Iterable[dict[str, Any]]) -> str:
    """One line each: `class`, `approved`, then `units`, `from`, `until`, and the approver's `reason`."""
    return "\n".join(_sentence(answer) for answer in answers) + "\n\n"


def wanted(team: str, to: str) -> str:
    return {
        "active": f"{team} is open again",
        "suspended": f"{team} is suspended: nothing new starts",
        "closed": f"{team} is being closed: everything of it in the cluster goes",
    }[to]


def taken(class_name: str, held: int, one: Taken, now: datetime) -> str:
    """What shall be taken back, with the notice: `now` is the moment at which the team is told."""
    days = (one.starts - now).days
    return (
        f"{class_name}: from {held} to {one.units} units from {one.starts:%d %b %Y, %H:%M %Z} on, in {days} days."
        " What runs then goes on for the grace of the grant that is cut."
    )


def _sentence(answer: dict[str, Any]) -> str:
    if not answer["approved"]:
        return f"{answer['class']}: denied. {answer['reason']}"
    if answer["kind"] == "reclaim":
        from_units = f"{answer['units']} units are left from {answer['from']:%d %b %Y, %H:%M %Z} on"
        return f"{answer['class']}: taken back, {from_units}. {answer['reason']}".strip()
    period = f"from {answer['from']:%d %b %Y, %H:%M %Z} until {answer['until']:%d %b %Y, %H:%M %Z}"
    return f"{answer['class']}: {answer['units']} units {period}. {answer['reason']}".strip()
