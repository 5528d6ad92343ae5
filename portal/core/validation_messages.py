"""Turns DRF's message about an invalid field into a sentence with the field's name and what to do. Pure functions."""

from __future__ import annotations

UNKNOWN = "unknown_field"
MISSING = frozenset({"required"})
EMPTY = frozenset({"blank", "empty", "null"})
# DRF's messages for these codes already state the bound.
WITH_BOUND = frozenset({"max_value", "min_value", "max_length", "min_length", "max_string_length"})
CONTRACT = "/api/v1/openapi.json"


def validation_message(field: str | None, code: str, said: str) -> str:
    """`said`: the message of DRF."""
    if field is None:
        return said
    if code == UNKNOWN:
        return f"Unknown field '{field}'. Nothing was changed. {said}"
    if code in MISSING:
        return f"Field '{field}' is required."
    if code in EMPTY:
        return f"Field '{field}' must not be empty."
    if code in WITH_BOUND:
        return f"Invalid value for '{field}'. {said}"
    return f"Invalid value for '{field}'. {said} See {CONTRACT} for the accepted values."
