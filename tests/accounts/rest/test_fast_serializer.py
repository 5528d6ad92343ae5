"""Rows as `accounts.rest.fast_serializer` writes them: always the same output as DRF's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from rest_framework import serializers

from accounts.rest.fast_serializer import row_writer

AT = datetime(2026, 11, 22, 10, 0, 0, 123456, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"


class Shouted(serializers.CharField):
    def to_representation(self, value: Any) -> str:
        return str(value).upper()


class Inner(serializers.Serializer[Any]):
    name = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)


class Backwards(Inner):
    def to_representation(self, instance: Any) -> dict[str, Any]:
        return dict(reversed(super().to_representation(instance).items()))


class Row(serializers.Serializer[Any]):
    text = serializers.CharField()
    number = serializers.IntegerField()
    share = serializers.FloatField()
    flag = serializers.BooleanField()
    at = serializers.DateTimeField()
    day = serializers.DateTimeField(format="%Y-%m-%d")
    colour = serializers.ChoiceField(choices=["red", "blue"], allow_blank=True)
    level = serializers.ChoiceField(choices=[(1, "low"), (2, "high")])
    shouted = Shouted()
    words = serializers.ListField(child=serializers.CharField())
    whatever = serializers.ListField()
    facts = serializers.DictField()
    names = serializers.DictField(child=serializers.IntegerField())
    inner = Inner()
    backwards = Backwards()
    many = Inner(many=True)
    deep = serializers.CharField(source="inner.name")
    itself = Inner(source="*")
    written_only = serializers.CharField(write_only=True)
    left_out = serializers.CharField(required=False)
    by_default = serializers.IntegerField(source="spec.nothing", default=None, allow_null=True)
    seven = serializers.IntegerField(default=7)
    absent = serializers.CharField(allow_null=True)
    called = serializers.CharField()


VALUES: dict[str, Any] = {
    "text": Colour.RED, "number": True, "share": 1, "flag": "yes", "at": AT, "day": AT, "colour": Colour.RED,
    "level": "1", "shouted": "loud", "words": ("a", None, 1), "whatever": [1, {"a": AT}], "facts": {1: None, "a": [AT]},
    "names": {"a": "1", "b": None}, "inner": {"name": "in", "at": AT}, "backwards": SimpleNamespace(name="b", at=None),
    "many": [{"name": "one", "at": None}, SimpleNamespace(name="two", at=AT)], "name": "own", "spec": {},
    "called": lambda: "was called",
}  # fmt: skip


@pytest.mark.parametrize("row", [VALUES, SimpleNamespace(**VALUES)], ids=["dict", "object"])
@pytest.mark.parametrize(
    "other",
    [
        {},
        {"at": AT.astimezone(timezone(timedelta(hours=5, minutes=30))), "colour": "", "many": [], "facts": {}},
        {"at": "2026-11-22T10:00:00Z", "flag": None, "text": None, "backwards": None, "many": None, "absent": "there"},
        {"text": 5, "number": "7", "share": "1.5", "flag": 0, "level": 2, "seven": None},
        {"at": datetime(2026, 11, 22, 10, 0), "left_out": "given", "colour": "gone from the choices"},  # noqa: DTZ001
    ],
)
def test_a_row_is_written_as_by_the_serializer(row: Any, other: dict[str, Any]) -> None:
    of_row = {**(row if isinstance(row, dict) else vars(row)), **other}
    changed = of_row if isinstance(row, dict) else SimpleNamespace(**of_row)

    found = row_writer(Row())(changed)

    expected = Row().to_representation(changed)
    assert found == expected
    assert list(found) == list(expected), "in their order"
    assert list(found["backwards"] or ()) == list(expected["backwards"] or ())


def test_what_a_row_points_to_may_be_gone() -> None:
    class Pointing(SimpleNamespace):
        @property
        def watch(self) -> Any:
            raise ObjectDoesNotExist

    class Pointed(serializers.Serializer[Any]):
        watch = Inner(default={"name": "not this", "at": None})
        name = serializers.CharField(source="watch.name", default="nor this")

    assert row_writer(Pointed())(Pointing()) == Pointed().to_representation(Pointing()) == {"watch": None, "name": None}


@pytest.mark.parametrize("row", [{"name": "of two"}, SimpleNamespace(name="of two", spec=None)], ids=["dict", "object"])
def test_what_is_missing_is_no_null(row: Any) -> None:
    class Both(serializers.Serializer[Any]):
        name = serializers.CharField()
        size = serializers.IntegerField()

    with pytest.raises((KeyError, AttributeError), match="size"):
        row_writer(Both())(row)
