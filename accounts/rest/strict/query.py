"""The query string of API calls: unknown parameters are refused, as unknown fields are in bodies.

A filter with a slip in its name would answer everything as if nothing had been asked for. This looks at names and
sizes alone, the same for everybody and whatever is there, so that a stranger learns nothing by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.rest.paging import PAGING
from accounts.rest.strict.unknown_fields import NAME_LIMIT
from portal.core import validation_messages
from portal.core.errors import refuse

if TYPE_CHECKING:
    # DRF's views import this module through the settings.
    from django_filters.filters import CharFilter
    from rest_framework.views import APIView

# Whose views say by a code of their own that a value is none.
OWN_CODES = frozenset({"limit", "wait", "until"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
READING = frozenset({"GET", "HEAD"})
# Has the gateway bring a GET to the process that can wait; where nothing is waited for it is answered at once.
WAIT = "wait"


def text_parameter(name: str, most: int, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "string", "minLength": 1, "maxLength": most}, description=description)


def choice_parameter(name: str, choices: Sequence[str], description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "string", "enum": list(choices)}, description=description)


def integer_parameter(name: str, least: int, most: int, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "integer", "minimum": least, "maximum": most}, description=description)


def text_filter(most: int, help_text: str, **more: Any) -> CharFilter:
    """Of a FilterSet: drf-spectacular does not see the length by itself, nor what is said of a field it is told of."""
    from django_filters.filters import CharFilter

    found: Any = CharFilter(max_length=most, **more)
    described: CharFilter = extend_schema_field(
        {"type": "string", "minLength": 1, "maxLength": most, "description": help_text}
    )(found)
    return described


def parameters_of(view: APIView, method: str) -> Iterator[OpenApiParameter]:
    """What a view says of itself: `query = (…)` for all its methods, `query_of_get = (…)` for reading alone."""
    yield from getattr(view, "query", ())
    if method in READING:
        yield from getattr(view, "query_of_get", ())


class StrictQuery(BasePermission):
    """Asked of every API view after who calls and whether they may."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        method = request.method or ""
        if not request.query_params or method not in METHODS or not hasattr(view, method.lower()):
            return True
        known = _known(view, method)
        for name, values in request.query_params.lists():
            if name not in known:
                listed = f"Known parameters: {', '.join(sorted(known))}." if known else "This call has none."
                told = f"There is no query parameter '{name[:NAME_LIMIT]}'. {listed}"
                raise refuse("unknown_field", told, field=name[:NAME_LIMIT])
            _check_value(name, values, known[name])
        return True


def _known(view: APIView, method: str) -> dict[str, int | None]:
    """Names, with how long each may be where that is said."""
    found = {one.name: _most(one) for one in parameters_of(view, method)}
    if method in READING:
        filters = getattr(getattr(view, "filterset_class", None), "base_filters", {})
        found |= {name: one.extra.get("max_length") for name, one in filters.items()}
        if getattr(view, "paginator", None) is not None:
            found |= {one.name: _most(one) for one in PAGING}
        found.setdefault(WAIT)
    return found


def _most(parameter: OpenApiParameter) -> int | None:
    return parameter.type.get("maxLength") if isinstance(parameter.type, dict) else None


def _check_value(name: str, values: list[str], most: int | None) -> None:
    if len(values) > 1:
        told = f"'{name}' appears {len(values)} times in the query. Send it once."
        raise refuse("duplicate_key", told, field=name, status=400)
    said = ""
    if not values[0] and name not in OWN_CODES:
        raise refuse("invalid", f"'{name}' has no value. Send a value, or leave the parameter out.", field=name)
    if most is not None and len(values[0]) > most:
        said = f"It can have at most {most} characters."
    elif "\0" in values[0]:
        said = "It contains a NUL character."
    if said:
        raise refuse("invalid", validation_messages.validation_message(name, "max_length", said), field=name)
