"""Who may set the prefixes below which a team may use any image, and which are refused. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.images import image_references
from catalog.images.image_references import InvalidReference
from portal.core.errors import Refusal

PREFIXES_LIMIT = 50


def prefix_refusal(text: str) -> Refusal | None:
    try:
        image_references.parse_prefix(text)
    except InvalidReference as error:
        return Refusal("bad_prefix", str(error), "prefix")
    return None


def may_add_prefix(count: int) -> Refusal | None:
    if count < PREFIXES_LIMIT:
        return None
    text = f"The team has {count} prefixes; the limit is {PREFIXES_LIMIT}. Remove a prefix first."
    return Refusal("too_many_prefixes", text, "prefix", status=409)


def may_use_image(image: str, prefixes: Sequence[str]) -> Refusal | None:
    """Checks a reference that is not in the catalog. The refusal names the allowed prefixes and what to do."""
    way = f"{_allowed(prefixes)} Choose an image from the catalog, or ask an operator to allow its prefix."
    try:
        found = image_references.parse_reference(image)
    except InvalidReference as error:
        return Refusal(
            "unknown_image",
            f"'{image[:80]}' is not in the catalog and is not a valid image reference. {error} {way}",
            "image",
        )
    if image_references.prefix_of(found, prefixes):
        return None
    text = f"{image} is not in the catalog and does not match an allowed prefix of your team. {way}"
    return Refusal("image_not_allowed", text, "image")


def _allowed(prefixes: Sequence[str]) -> str:
    if not prefixes:
        return "Your team has no allowed prefixes."
    more = f" and {len(prefixes) - 5} more" if len(prefixes) > 5 else ""
    return f"Allowed prefixes: {', '.join(prefixes[:5])}{more}."
