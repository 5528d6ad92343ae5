"""The first of the sent names that is not a known field."""

from __future__ import annotations

from collections.abc import Collection

NAME_LIMIT = 60


def first_unknown_field(sent: Collection[str], known: Collection[str]) -> str | None:
    """The first name of `sent`, in alphabetical order, that is not in `known`; else None."""
    return min(set(sent) - set(known), default=None)
