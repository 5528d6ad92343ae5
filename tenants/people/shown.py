"""Events of an account as the page of a person shows them."""

from __future__ import annotations

from typing import Any

from accounts.events.texts import verb_text
from accounts.models import Event


def account_event(found: Event) -> dict[str, Any]:
    """Like the common event, with what was given or taken: `set the roles of Dana: approver`."""
    told = [value for key, value in (found.after or found.before).items() if key in ("roles", "class", "because")]
    what = "; ".join(", ".join(value) or "none" if isinstance(value, list) else str(value) for value in told)
    text = f"{verb_text(found.verb)} {found.name}" if found.name != found.actor else verb_text(found.verb)
    return {"at": found.at, "who": found.actor, "sentence": f"{text}: {what}" if what else text}
