"""Below which prefixes a team may use images of its own: who says so, and what is refused. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from catalog import references
from catalog.references import Unreadable
from portal.errors import Refusal

PREFIXES_LIMIT = 50


def bad_prefix(text: str) -> Refusal | None:
    try:
        references.parse_prefix(text)
    except Unreadable as error:
        return Refusal("bad_prefix", str(error), "prefix")
    return None


def may_add(count: int) -> Refusal | None:
    if count < PREFIXES_LIMIT:
        return None
    text = f"The team has {count} prefixes, at most {PREFIXES_LIMIT} are possible. Take some away first."
    return Refusal("too_many_prefixes", text, "prefix", status=409)


def may_use(image: str, prefixes: Sequence[str]) -> Refusal | None:
    """Of a reference that is not in the catalog. Says what is allowed, and the way out."""
    way = f"{_allowed(prefixes)} Choose an image of the catalog, or ask the operators to allow its prefix."
    try:
        found = references.parse(image)
    except Unreadable as error:
        return Refusal(
            "unknown_image", f"'{image[:80]}' is not in the catalog, and no reference. {error} {way}", "image"
        )
    if references.prefix_of(found, prefixes):
        return None
    text = f"{image} is not in the catalog, and below no prefix that is allowed to your team. {way}"
    return Refusal("image_not_allowed", text, "image")


def _allowed(prefixes: Sequence[str]) -> str:
    if not prefixes:
        return "No prefix is allowed to it."
    more = f" and {len(prefixes) - 5} more" if len(prefixes) > 5 else ""
    return f"Allowed: what is below {', '.join(prefixes[:5])}{more}."
