"""Serializes rows with plain functions: field properties that DRF looks up for every row are looked up once.

The serializer stays the only description of a response, for readers and for the contract. The output is identical.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from rest_framework import serializers
from rest_framework.fields import SkipField, _UnvalidatedField, empty

Write = Callable[[Any], Any]
# Stands for a value that is omitted from the output or missing in the row.
_LEFT_OUT = object()


def row_writer(serializer: serializers.BaseSerializer[Any]) -> Write:
    """Returns a function that does the same as `serializer.to_representation` for one row (a dict or an object), with
    the same exceptions.
    """
    assert isinstance(serializer, serializers.Serializer)
    fields = [
        (name, _key(one), _plain(one), _read(one), _write(one))
        for name, one in serializer.fields.items()
        if not one.write_only
    ]

    def write(row: Any) -> dict[str, Any]:
        found = {}
        is_dict = isinstance(row, dict)
        for name, key, plain, read, written in fields:
            try:
                value = row.get(key, _LEFT_OUT) if is_dict else getattr(row, key)
            except ObjectDoesNotExist:
                value = None
            except AttributeError:
                value = _LEFT_OUT
            # The fast path, for nearly all values: found directly in the row and written unchanged.
            if type(value) is plain or value is None:
                found[name] = value
                continue
            if value is _LEFT_OUT or callable(value):
                value = read(row)
            if value is not _LEFT_OUT:
                found[name] = None if value is None else written(value)
        return found

    return write


def _key(field: Any) -> str:
    """The single key of the field's source. "" (which is never a key) if the source has several."""
    return field.source_attrs[0] if len(field.source_attrs) == 1 else ""


def _plain(field: Any) -> type | None:
    """The exact type whose values the field writes unchanged, or None."""
    if isinstance(field, serializers.ChoiceField) and not all(type(one) is str for one in field.choices):
        return None
    return next((plain for kind, plain in _PLAIN.items() if _is_as_in(kind, field)), None)


def _read(field: Any) -> Callable[[Any], Any]:
    """Returns a function that reads nested, callable or missing values."""
    path = tuple(field.source_attrs)
    missing = _missing(field)

    def read(row: Any) -> Any:
        value = row
        try:
            for key in path:
                value = value[key] if isinstance(value, dict) else getattr(value, key)
                if callable(value):
                    return field.get_attribute(row)
        except ObjectDoesNotExist:
            return None
        except SkipField:
            return _LEFT_OUT
        except (AttributeError, KeyError):
            return missing(row)
        return value

    return read


def _missing(field: Any) -> Callable[[Any], Any]:
    """Returns a function that gives the substitute for a missing value."""
    if field.default is not empty and not callable(field.default):
        return lambda _row: field.default
    if field.default is empty and field.allow_null:
        return lambda _row: None
    if field.default is empty and not field.required:
        return lambda _row: _LEFT_OUT
    found: Callable[[Any], Any] = field.get_attribute
    return found


def _write(field: Any) -> Write:
    """A field with its own `to_representation` is written by that method."""
    if isinstance(field, serializers.Serializer) and _is_as_in(serializers.Serializer, field):
        return row_writer(field)
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
    if _is_as_in(serializers.CharField, field):
        return str
    if _is_as_in(serializers.IntegerField, field):
        return int
    if _is_as_in(_UnvalidatedField, field):
        return _as_it_is
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


_PLAIN: dict[Any, type] = {
    serializers.CharField: str,
    serializers.ChoiceField: str,
    serializers.IntegerField: int,
    serializers.FloatField: float,
    serializers.BooleanField: bool,
}
