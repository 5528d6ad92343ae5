"""Which announcements may be made. Who may make them: tenants.core.policy. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal

TITLE_MAX = 100
BODY_MAX = 2000
# Classes or teams of one announcement.
NAMED_MAX = 200


def text_refusal(title: str, body: str) -> Refusal | None:
    for field, text, most in (("title", title, TITLE_MAX), ("body", body, BODY_MAX)):
        if not 1 <= len(text) <= most:
            return Refusal("bad_announcement", f"Enter 1 to {most} characters; the text has {len(text)}.", field)
        if refusal := hidden_refusal(field, text):
            return refusal
    return None


def audience_refusal(audience: str, *, classes: int, teams: int) -> Refusal | None:
    """Exactly what the audience names: no classes or teams beside `everybody`."""
    if (classes > 0, teams > 0) == (audience == "classes", audience == "teams"):
        return None
    text = "Choose classes only for users of classes, teams only for teams, and at least one of them."
    return Refusal("bad_announcement", text, "audience")


def announced_period_refusal(starts: datetime, ends: datetime, *, now: datetime) -> Refusal | None:
    if ends <= max(starts, now):
        return Refusal("bad_period", "Enter an end in the future and after the start.", "until")
    return None


def change_refusal(*, is_over: bool) -> Refusal | None:
    return Refusal("is_over", "This announcement is over.", status=409) if is_over else None


def mail_text(body: str, migrations: Iterable[str], address: str) -> str:
    return "\n\n".join([body, *migrations, address])
