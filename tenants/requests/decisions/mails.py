"""Texts of mails about decided requests. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from portal.ui.text import plural_form, time_with_zone


def decision_text(answers: Iterable[dict[str, Any]]) -> str:
    """One line each: `class`, `approved`, then `units`, `from`, `until`, `reason`, and `unit` of storage."""
    return "\n".join(_sentence(answer) for answer in answers) + "\n\n"


def _sentence(answer: dict[str, Any]) -> str:
    units = f"{answer.get('units')} {plural_form(answer.get('unit', 'unit'))}"
    if not answer["approved"]:
        return f"{answer['class']}: denied. {answer['reason']}"
    if answer["kind"] == "reclaim":
        new_total = f"to {units} from {time_with_zone(answer['from'])}"
        return f"{answer['class']}: reduced {new_total}. {answer['reason']}".strip()
    period = f"from {time_with_zone(answer['from'])} to {time_with_zone(answer['until'])}"
    what = "temporary increase" if answer["kind"] == "boost" else "new total"
    return f"{answer['class']}: approved, {what} of {units} {period}. {answer['reason']}".strip()
