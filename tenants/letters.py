"""Words of mails about quota. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def decided(answers: Iterable[dict[str, Any]]) -> str:
    """One line each: `class`, `approved`, then `units`, `from`, `until`, and the approver's `reason`."""
    return "\n".join(_sentence(answer) for answer in answers) + "\n\n"


def wanted(team: str, to: str) -> str:
    return {
        "active": f"{team} is open again",
        "suspended": f"{team} is suspended: nothing new starts",
        "closed": f"{team} is being closed: everything of it in the cluster goes",
    }[to]


def _sentence(answer: dict[str, Any]) -> str:
    if not answer["approved"]:
        return f"{answer['class']}: denied. {answer['reason']}"
    period = f"from {answer['from']:%d %b %Y, %H:%M %Z} until {answer['until']:%d %b %Y, %H:%M %Z}"
    return f"{answer['class']}: {answer['units']} units {period}. {answer['reason']}".strip()
