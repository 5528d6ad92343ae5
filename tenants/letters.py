"""Words of mails about quota. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from portal.quota_bar import several
from tenants.policy import Taken


def decided(answers: Iterable[dict[str, Any]]) -> str:
    """One line each: `class`, `approved`, then `units`, `from`, `until`, `reason`, and `unit` of storage."""
    return "\n".join(_sentence(answer) for answer in answers) + "\n\n"


def wanted(team: str, to: str) -> str:
    return {
        "active": f"{team} is open again",
        "suspended": f"{team} is suspended: nothing new starts",
        "closed": f"{team} is being closed: everything of it in the cluster goes",
    }[to]


def taken(class_name: str, held: int, one: Taken, now: datetime, *, unit: str = "unit") -> str:
    """What shall be taken back, with the notice: `now` is the moment at which the team is told."""
    days = (one.starts - now).days
    return (
        f"{class_name}: from {held} to {one.units} {several(unit)} from {one.starts:%d %b %Y, %H:%M %Z} on, in {days} "
        f"days. {_TAKEN[unit]}"
    )


_TAKEN = {
    "unit": "What runs then goes on for the grace of the grant that is cut.",
    "GiB": "Volumes stay; while they ask for more than that, new ones are refused.",
}


def end(runs_until: datetime, *, unit: str, is_over: bool) -> str:
    """What the end of a grant means, said after it or before."""
    if unit == "GiB":
        return "Volumes and what is on them stay. While they ask for more than the team holds, new ones are refused."
    until = f"{runs_until:%d %b %Y, %H:%M %Z}"
    first = "Nothing new starts on it. What ran at its end goes on" if is_over else _BEFORE
    return f"{first} until {until} and is not taken back for other teams before. Volumes and what is on them stay."


_BEFORE = "Nothing new starts on it afterwards. What runs then goes on"


def _sentence(answer: dict[str, Any]) -> str:
    units = f"{answer.get('units')} {several(answer.get('unit', 'unit'))}"
    if not answer["approved"]:
        return f"{answer['class']}: denied. {answer['reason']}"
    if answer["kind"] == "reclaim":
        from_units = f"{units} are left from {answer['from']:%d %b %Y, %H:%M %Z} on"
        return f"{answer['class']}: taken back, {from_units}. {answer['reason']}".strip()
    period = f"from {answer['from']:%d %b %Y, %H:%M %Z} until {answer['until']:%d %b %Y, %H:%M %Z}"
    return f"{answer['class']}: {units} {period}. {answer['reason']}".strip()
