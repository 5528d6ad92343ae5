"""Words of mails about the end of a grant. Pure: values in, text out."""

from __future__ import annotations

from datetime import datetime

from portal.ui.text import time_with_zone

_BEFORE = "Nothing new starts on it afterwards. What runs then goes on"


def grant_end_text(runs_until: datetime, *, is_storage: bool, is_over: bool) -> str:
    """What the end of a grant means, said after it or before."""
    if is_storage:
        return "Volumes and what is on them stay. While they ask for more than the team holds, new ones are refused."
    until = time_with_zone(runs_until)
    first = "Nothing new starts on it. What ran at its end goes on" if is_over else _BEFORE
    return f"{first} until {until} and is not taken back for other teams before. Volumes and what is on them stay."
