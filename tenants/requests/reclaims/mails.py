"""Texts of mails about quota that is reduced. Pure: values in, text out."""

from __future__ import annotations

from datetime import datetime

from portal.ui.text import plural_form, time_with_zone
from tenants.requests.types import ReclaimLine

_OF_UNITS = "What runs then goes on for the grace of the grant that is cut."
_OF_STORAGE = "Volumes stay; while they ask for more than that, new ones are refused."


def reclaim_text(class_name: str, held: int, one: ReclaimLine, now: datetime, *, unit: str, is_storage: bool) -> str:
    """What shall be taken back, with the notice: `now` is the moment at which the team is told."""
    days = (one.starts - now).days
    consequence = _OF_STORAGE if is_storage else _OF_UNITS
    return (
        f"{class_name}: from {held} to {one.units} {plural_form(unit)} from {time_with_zone(one.starts)} on, "
        f"in {days} days. {consequence}"
    )
