"""The sentence about nodes that an autoscaler adds, for pages, forms and explanations. Pure."""

from __future__ import annotations

from portal.ui.text import plural


def coming_sentence(minutes: int) -> str:
    return f"No node has this now. A node is added on demand, usually within {plural(minutes, 'minute')}."
