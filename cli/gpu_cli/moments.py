"""Times that people type. Pure."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time

from gpu_cli.api.errors import UsageError


def parse_moment(text: str, *, at: time) -> str:
    """Returns the time in ISO format. Days are in UTC, as on the pages; `at` is the time of day for a date."""
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            found = datetime.combine(date.fromisoformat(text), at.replace(microsecond=0), UTC)
        else:
            found = datetime.fromisoformat(text)
            found = found if found.tzinfo else found.replace(tzinfo=UTC)
    except ValueError:
        raise UsageError(f"'{text}' is not a date. Use the form 2027-03-31.") from None
    return found.isoformat()
