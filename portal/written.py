"""Rows of a serializer by plain functions: what DRF finds out about each field for every row is found out once.

The serializer stays the one place where an answer is described, for people and for the contract. What is written is the
same to the letter.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from rest_framework import serializers
from rest_framework.fields import SkipField, _UnvalidatedField, empty

Write = Callable[[Any], Any]
# In place of a value that is to be left out.
_LEFT_OUT = object()


def writer(serializer: serializers.BaseSerializer[Any]) -> Write:
    """What `serializer.to_representation` does to one row, a dict or an object. Raises what DRF raises."""
    assert isinstance(serializer, serializers.Serializer)
    fields = [(name, _read(one), _write(one)) for name, one in serializer.fields.items() if not one.write_only]

    def write(row: Any) -> dict[str, Any]:
        found = {}
        for name, read, written in fields:
            value = read(row)
            if value is not _LEFT_OUT:
                found[name] = None if value is None else written(value)
        return found

    return write


def _read(field: Any) -> Callable[[Any], Any]:
    path = tuple(field.source_attrs)

    def read(row: Any) -> Any:
        value = row
        try:
            for key in path:
                value = value.get(key, _LEFT_OUT) if isinstance(value, dict) else getattr(value, key)
                if value is _LEFT_OUT or callable(value):
                    return missing(row)
        except (AttributeError, ObjectDoesNotExist):
            return missing(row)
        return value

    def missing(row: Any) -> Any:
        """It knows what stands for a value that is missing, and what to call."""
        try:
            return field.get_attribute(row)
        except SkipField:
            return _LEFT_OUT

    is_left_out = field.default is empty and not field.allow_null and not field.required
    (only,) = path if len(path) == 1 else ("",)
    if not is_left_out or not only:
        return read
    return lambda row: row.get(only, _LEFT_OUT) if isinstance(row, dict) else read(row)


def _write(field: Any) -> Write:
    """A field with a way of its own is asked itself."""
    if isinstance(field, serializers.Serializer) and _is_as_in(serializers.Serializer, field):
        return writer(field)
    if isinstance(field, serializers.ListSerializer) and _is_as_in(serializers.ListSerializer, field):
        row = _write(field.child)
        return lambda values: [row(one) for one in values]
    if isinstance(field, serializers.ListField) and _is_as_in(serializers.ListField, field):
        item = _write(field.child)
        return lambda values: [None if one is None else item(one) for one in values]
    if isinstance(field, serializers.DictField) and _is_as_in(serializers.DictField, field):
        entry = _write(field.child)
        return lambda values: {str(key): None if one is None else entry(one) for key, one in values.items()}
    if isinstance(field, serializers.DateTimeField) and _is_as_in(serializers.DateTimeField, field):
        return _time(field)
    for kind, plain in _PLAIN.items():
        if _is_as_in(kind, field):
            return plain
    own: Write = field.to_representation
    return own


def _is_as_in(kind: type[serializers.Field[Any, Any, Any, Any]], field: Any) -> bool:
    return type(field).to_representation is kind.to_representation


def _time(field: Any) -> Write:
    own: Write = field.to_representation
    if hasattr(field, "format") or hasattr(field, "timezone"):
        return own

    def write(value: Any) -> Any:
        is_plain = isinstance(value, datetime) and value.tzinfo is not None
        return f"{value.astimezone(UTC).isoformat()[:-6]}Z" if is_plain else own(value)

    return write


def _as_it_is(value: Any) -> Any:
    return value


_PLAIN: dict[Any, Write] = {
    serializers.CharField: str,
    serializers.IntegerField: int,
    _UnvalidatedField: _as_it_is,
}
