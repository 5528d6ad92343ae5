"""Which texts and times a banner may have. Pure."""

from __future__ import annotations

from datetime import datetime

from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal

TEXT_MAX = 300


def banner_refusal(*, text: str, until: datetime | None, now: datetime) -> Refusal | None:
    if not 1 <= len(text) <= TEXT_MAX:
        return Refusal("bad_banner", f"Enter 1 to {TEXT_MAX} characters; the text has {len(text)}.", "text")
    if refusal := hidden_refusal("text", text):
        return refusal
    if until is not None and until <= now:
        return Refusal("bad_period", "Enter an end in the future, or leave it empty for no end.", "until")
    return None
