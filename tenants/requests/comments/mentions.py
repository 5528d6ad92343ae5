"""Mentions in the text of a comment: `@alice` or `@alice@example.org`. Pure."""

from __future__ import annotations

import re

# The first part of an address, or a whole one; not the end of an address that only stands in the text.
_MENTION = re.compile(r"(?<![\w.+@-])@([a-z0-9][a-z0-9._+-]{0,63}(?:@[a-z0-9][a-z0-9.-]{0,189})?)", re.IGNORECASE)
# One comment notifies this many people at most.
MENTIONS_MAX = 10


def mentioned_names(text: str) -> list[str]:
    """In lower case, in the order of the text, each once."""
    found = (one.rstrip(".-+_").lower() for one in _MENTION.findall(text))
    return list(dict.fromkeys(found))[:MENTIONS_MAX]
