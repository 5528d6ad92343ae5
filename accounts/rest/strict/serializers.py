"""Bodies of calls, field by field: an unknown field is refused and never ignored."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.db import transaction
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest.strict.unknown_fields import NAME_LIMIT, first_unknown_field
from portal.core import validation_messages
from portal.core.errors import refuse


class StrictSerializer(serializers.Serializer[Any]):
    """Base of all serializers for bodies. Unknown fields are refused (422, unknown_field): the caller expects an effect
    of each field.
    """

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            name = first_unknown_field([str(name) for name in data], known)
            if name is not None:
                told = ErrorDetail(_fields_are(known, self), validation_messages.UNKNOWN)
                # Not Refused: for an item of a list, only DRF knows its index.
                raise serializers.ValidationError({name[:NAME_LIMIT]: [told]})
            for name, field in self.fields.items():
                if name in data and (problem := _of_another_kind(field, data[name])):
                    raise serializers.ValidationError({name: problem})
        return super().to_internal_value(data)


# The types of the contract, because DRF would accept "5" for 5, 1 for true, and 5 for "5".
KINDS: tuple[tuple[type[serializers.Field[Any, Any, Any, Any]], type, str], ...] = (
    (serializers.BooleanField, bool, "true or false"),
    (serializers.IntegerField, int, "a whole number"),
    (serializers.CharField, str, "a string"),
    (serializers.ChoiceField, str, "a string"),
)


def _of_another_kind(field: Any, value: Any) -> Any:
    """An error in DRF's nested structure, or None. The field itself checks null."""
    if isinstance(field, serializers.ListField | serializers.DictField) and isinstance(value, list | dict):
        items = enumerate(value) if isinstance(value, list) else value.items()
        problems = ((name, _of_another_kind(field.child, one)) for name, one in items)
        return next(({name: problem} for name, problem in problems if problem), None)
    for kind_of_field, kind, said in KINDS:
        if isinstance(field, kind_of_field):
            is_whole = kind is int and isinstance(value, float) and value.is_integer()
            is_kind = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            return None if value is None or is_whole or is_kind else [ErrorDetail(f"It must be {said}.", "invalid")]
    return None


def _fields_are(known: Collection[str], serializer: serializers.BaseSerializer[Any]) -> str:
    one: Any = serializer
    within = one.field_name or getattr(one.parent, "field_name", None)
    return f"Known fields{f' of {within}' if within else ''}: {', '.join(known)}."


def takes_no_fields(post: Callable[..., Response]) -> Callable[..., Response]:
    """Decorator for a view's method without body. Any field that is sent is refused, but only after the verb has run:
    the verb raises 404 for callers who may not see the object. The transaction then undoes the verb's changes.
    """

    @functools.wraps(post)
    def refusing(view: APIView, request: Request, *args: Any, **kwargs: Any) -> Response:
        if request.META.get("CONTENT_LENGTH") in (None, "", "0"):
            return post(view, request, *args, **kwargs)
        with transaction.atomic():
            answer = post(view, request, *args, **kwargs)
            name = first_unknown_field(list(request.data), ())
            if name is not None:
                told = validation_messages.validation_message(
                    name[:NAME_LIMIT], validation_messages.UNKNOWN, "This call has no fields."
                )
                raise refuse("unknown_field", told, field=name[:NAME_LIMIT])
        return answer

    return refusing
