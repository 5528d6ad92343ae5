"""Characters that a reader does not see, but that change what the reader sees: controls and directions. Pure.

A justification with U+202E shows other numbers than it has, in the inbox and in a mail. Texts for people are refused
with such a character; older ones are shown with U+FFFD in its place.
"""

from __future__ import annotations

import re
import unicodedata

from portal.core.errors import Refusal

# C0 and C1 controls except tab and the line breaks; directions and isolates (Unicode's Bidi_Control); separators of
# lines and paragraphs; annotations and tags, which are invisible.
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufff9-\ufffb\U000e0000-\U000e007f"
)
HIDDEN = re.compile(f"[{_HIDDEN}]")
REPLACEMENT = "\ufffd"


def hidden_refusal(field: str, text: str) -> Refusal | None:
    """For the policies of texts that other people read."""
    found = HIDDEN.search(text)
    if found is None:
        return None
    name = unicodedata.name(found[0], "a control character").lower()
    told = f"Character {found.start() + 1} is U+{ord(found[0]):04X} ({name}), which readers do not see. Remove it."
    return Refusal("hidden_character", told, field)


def visible(text: str) -> str:
    """The text with each such character replaced."""
    return HIDDEN.sub(REPLACEMENT, text)


# For whole pages: by the first byte of the characters in UTF-8, which Python finds much faster than a class of them.
_TO_SIGN = {*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F}
_CONTROLS = bytes(ord("?") if byte in _TO_SIGN else byte for byte in range(256))
_BY_FIRST_BYTE = tuple(
    re.compile(pattern)
    for pattern in (
        rb"\xc2[\x80-\x84\x86-\x9f]",
        rb"\xd8\x9c",
        rb"\xe2(?:\x80[\x8e\x8f\xa8-\xae]|\x81[\xa6-\xa9])",
        rb"\xef\xbf[\xb9-\xbb]",
        rb"\xf3\xa0[\x80\x81][\x80-\xbf]",
    )
)


def visible_html(page: bytes) -> bytes:
    """The same for HTML in UTF-8: what is stored was perhaps never checked, and names in a cluster come from others."""
    page = page.translate(_CONTROLS)
    for pattern in _BY_FIRST_BYTE:
        page = pattern.sub(REPLACEMENT.encode(), page)
    return page
