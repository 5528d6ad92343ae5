"""Texts of mails about quota that is reduced. Pure: values in, text out."""

from __future__ import annotations

from datetime import datetime

from portal.ui.text import plural_form, time_with_zone
from tenants.requests.types import ReclaimLine

_OF_UNITS = "Running workloads continue for the grace period of the reduced grant."
_OF_STORAGE = "Volumes are kept. While they request more than that, new volumes are rejected."


def reclaim_text(class_name: str, held: int, one: ReclaimLine, now: datetime, *, unit: str, is_storage: bool) -> str:
    """The reduction, with its notice: `now` is the moment at which the team is notified."""
    days = (one.starts - now).days
    consequence = _OF_STORAGE if is_storage else _OF_UNITS
    return (
        f"{class_name}: reduction from {held} to {one.units} {plural_form(unit)} on {time_with_zone(one.starts)} "
        f"(in {days} days). {consequence}"
    )
