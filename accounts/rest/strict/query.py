"""The query string of API calls: unknown parameters are refused, as unknown fields are in bodies.

With a typing error in a filter's name, the response would otherwise be the unfiltered list. Only names and sizes are
checked, and the result is the same for all callers and independent of the data, so that it reveals nothing.
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

# Parameters whose views refuse an invalid value with their own code.
OWN_CODES = frozenset({"limit", "wait", "until"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
READING = frozenset({"GET", "HEAD"})
# The gateway routes a GET with this parameter to the process that can wait. A GET that waits for nothing is answered
# at once.
WAIT = "wait"


def text_parameter(name: str, most: int, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "string", "minLength": 1, "maxLength": most}, description=description)


def choice_parameter(name: str, choices: Sequence[str], description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "string", "enum": list(choices)}, description=description)


def integer_parameter(name: str, least: int, most: int, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "integer", "minimum": least, "maximum": most}, description=description)


def text_filter(most: int, help_text: str, **more: Any) -> CharFilter:
    """A text filter of a FilterSet. The schema has length and description, because drf-spectacular finds neither the
    length by itself nor the description of a field with an explicit schema.
    """
    from django_filters.filters import CharFilter

    found: Any = CharFilter(max_length=most, **more)
    described: CharFilter = extend_schema_field(
        {"type": "string", "minLength": 1, "maxLength": most, "description": help_text}
    )(found)
    return described


def parameters_of(view: APIView, method: str) -> Iterator[OpenApiParameter]:
    """The parameters that a view declares: `query = (…)` for all methods, `query_of_get = (…)` for reads only."""
    yield from getattr(view, "query", ())
    if method in READING:
        yield from getattr(view, "query_of_get", ())


class StrictQuery(BasePermission):
    """Checked for every API view, after authentication and the other permissions."""

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
    """Returns the known names and, where declared, the maximum length of each."""
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
