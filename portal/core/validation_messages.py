"""What a call sent in a field that is not valid: DRF's word for it as a sentence with the field and a way out. Pure."""

from __future__ import annotations

UNKNOWN = "unknown_field"
MISSING = frozenset({"required"})
EMPTY = frozenset({"blank", "empty", "null"})
# These say the bound that was passed: nothing is left to look up.
WITH_BOUND = frozenset({"max_value", "min_value", "max_length", "min_length", "max_string_length"})
CONTRACT = "/api/v1/openapi.json"


def validation_message(field: str | None, code: str, said: str) -> str:
    """`said`: DRF's own words."""
    if field is None:
        return said
    if code == UNKNOWN:
        return f"There is no field '{field}', so nothing was changed. {said}"
    if code in MISSING:
        return f"'{field}' is missing; send it."
    if code in EMPTY:
        return f"'{field}' has no value; send one."
    if code in WITH_BOUND:
        return f"'{field}' is not possible. {said}"
    return f"'{field}' is not possible. {said} What it takes stands in {CONTRACT}."
