"""Texts of mails about the end of a grant. Pure: values in, text out."""

from __future__ import annotations

from datetime import datetime

from portal.ui.text import time_with_zone

_BEFORE = "After that, no new workloads start on it. Running workloads continue"


def grant_end_text(runs_until: datetime, *, is_storage: bool, is_over: bool) -> str:
    """What the end of a grant means, before or after it."""
    if is_storage:
        return "Volumes and their data are kept. While they request more than the quota, new volumes are rejected."
    until = time_with_zone(runs_until)
    first = "No new workloads start on it. Running workloads continue" if is_over else _BEFORE
    return f"{first} until {until} and are not reclaimed for other teams before then. Volumes and their data are kept."
