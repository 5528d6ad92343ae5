"""What DRF says of a field comes as a sentence with the field and a way out."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from portal.core.errors import to_refusal

LOOK = "See /api/v1/openapi.json for the accepted values."


class Line(serializers.Serializer[None]):
    units = serializers.IntegerField(min_value=1, max_value=8)


class Call(serializers.Serializer[None]):
    name = serializers.CharField(max_length=4)
    kind = serializers.ChoiceField(choices=["notebook", "job"], required=False)
    words = serializers.ListField(required=False)
    lines = Line(many=True, required=False)


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "name", "Field 'name' is required."),
        ({"name": ""}, "name", "Field 'name' must not be empty."),
        ({"name": None}, "name", "Field 'name' must not be empty."),
        ({"name": "notebook"}, "name", "Invalid value for 'name'. Ensure this field has no more than 4 characters."),
        ({"name": "n", "kind": "pod"}, "kind", f"Invalid value for 'kind'. \"pod\" is not a valid choice. {LOOK}"),
        ({"name": "n", "lines": [{"units": 9}]}, "lines[0].units", "Invalid value for 'lines[0].units'. Ensure this"),
        ({"name": "n", "lines": [{"units": "two"}]}, "lines[0].units", f"A valid integer is required. {LOOK}"),
        ({"name": "n", "words": "sh"}, "words", f'got type "str". {LOOK}'),
    ],
)
def test_a_field_that_cannot_be_says_so(body: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(serializers.ValidationError) as raised:
        Call(data=body).is_valid(raise_exception=True)
    refusal = to_refusal(raised.value)
    assert refusal is not None
    assert (refusal.code, refusal.field) == ("invalid", field)
    assert words in refusal.message


def test_a_field_that_is_asked_for_beside_another_is_missing_too() -> None:
    missing = ErrorDetail("This field is required.", code="required")
    refusal = to_refusal(serializers.ValidationError({"ends_at": missing}))
    assert refusal is not None
    assert (refusal.field, refusal.message) == ("ends_at", "Field 'ends_at' is required.")


def test_what_is_said_of_no_field_stays_as_it_is() -> None:
    refusal = to_refusal(serializers.ValidationError("Not this way."))
    assert refusal is not None
    assert (refusal.field, refusal.message) == (None, "Not this way.")
