"""What a bundle may contain. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from tenants.requests import policy as request_policy

SUMMARY_MAX = 200

BUNDLE_DAYS_MAX = 1096

UNKNOWN_BUNDLE = Refusal("unknown_bundle", "There is no such bundle. Choose one from the list.", "bundle")


@dataclass(frozen=True)
class BundleUnits:
    """A line of a bundle as typed, with the facts about its class."""

    name: str
    units: int
    is_active: bool
    is_for_everyone: bool


def lines_refusal(slugs: Collection[str], known: Collection[str]) -> Refusal | None:
    if len(set(slugs)) < len(slugs):
        return Refusal("bad_lines", "A bundle can have only one line per class.", "lines")
    unknown = sorted(set(slugs) - set(known))
    return (
        Refusal("unknown_class", f"There is no class '{unknown[0][:40]}'. See the catalog.", "lines")
        if unknown
        else None
    )


def bundle_refusal(*, name: str, summary: str, days: int, lines: Collection[BundleUnits]) -> Refusal | None:
    if not 1 <= len(name) <= 60:
        return Refusal("bad_name", "Enter a name of 1 to 60 characters.", "name")
    if len(summary) > SUMMARY_MAX:
        return Refusal("bad_summary", f"Enter a summary of at most {SUMMARY_MAX} characters.", "summary")
    if refusal := hidden_refusal("name", name) or hidden_refusal("summary", summary):
        return refusal
    if not 1 <= days <= BUNDLE_DAYS_MAX:
        return Refusal("bad_period", f"Enter 1 to {BUNDLE_DAYS_MAX:,} days (three years).", "days")
    if not 1 <= len(lines) <= request_policy.LINES_MAX:
        return Refusal("bad_lines", f"Enter 1 to {request_policy.LINES_MAX} lines, each class once.", "lines")
    for line in lines:
        if not 1 <= line.units <= request_policy.UNITS_MAX:
            text = f"{line.name}: enter 1 to {request_policy.UNITS_MAX:,} units, not {line.units}."
            return Refusal("bad_units", text, "lines")
        if not line.is_active:
            return Refusal("class_closed", f"{line.name} is not open for requests. Choose another class.", "lines")
        if not line.is_for_everyone:
            text = f"{line.name} is limited to selected teams, so a new team cannot use it. Choose another class."
            return Refusal("class_closed", text, "lines")
    return None
