"""Keyset paging, one implementation for pages and API: `limit`, an opaque `cursor`, and no page numbers.

A cursor contains the key of the last row shown. So rows that are added meanwhile neither repeat nor hide other rows,
and page 1,000 costs as much as page 1.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.utils.encoding import iri_to_uri
from drf_spectacular.utils import OpenApiParameter
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from portal.core.errors import Refused, refuse

if TYPE_CHECKING:
    # DRF's views import this module through the settings.
    from rest_framework.views import APIView


LIMIT_DEFAULT = 50
LIMIT_MAX = 200
CURSOR_MAX = 2000
PAGING = (
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        description="Items per page.",
    ),
    OpenApiParameter(
        "cursor",
        {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": CURSOR_MAX},
        description="The cursor from `next`, unchanged.",
    ),
)
Row = TypeVar("Row", bound=Model)
# (rows before this id or None, maximum number of rows) → rows, newest first.
Read = Callable[[int | None, int], list[Row]]


@dataclass(frozen=True)
class Page(Generic[Row]):
    items: list[Row]
    next_cursor: str | None


def page_of(
    rows: QuerySet[Row], *, keys: Sequence[str] = ("-id",), limit: int = LIMIT_DEFAULT, cursor: str | None = None
) -> Page[Row]:
    """The next `limit` rows after `cursor`. `keys`: columns to order by, "-" for descending; the last one is unique.

    Raises Refused (bad_cursor) for text that is not a cursor of this order.
    """
    if cursor:
        rows = rows.filter(_after(keys, _decode(rows.model, keys, cursor)))
    return _page(list(rows.order_by(*keys)[: limit + 1]), keys, limit)


def _page(found: list[Row], keys: Sequence[str], limit: int) -> Page[Row]:
    items = found[:limit]
    return Page(items, _encode(keys, items[-1]) if len(found) > limit else None)


def parse_limit(text: str | None) -> int:
    if text is None:
        return LIMIT_DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= LIMIT_MAX):
        raise refuse("bad_limit", f"limit must be a whole number from 1 to {LIMIT_MAX}.", field="limit")
    return int(text)


class KeysetPagination(BasePagination):
    """Responds {"items": […], "next": url or null}, and has the next address also in the header Link. A view may set
    `keyset = ("-at", "-id")`; default: newest first.
    """

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        limit, cursor = _asked(request)
        keys = getattr(view, "keyset", ("-id",))
        return self._answer(page_of(queryset, keys=keys, limit=limit, cursor=cursor), request)

    def paginate_read(self, model: type[Row], read: Read[Row], request: Request) -> list[Row]:
        """For queries written as SQL text; newest first."""
        keys = ("-id",)
        limit, cursor = _asked(request)
        before = _decode(model, keys, cursor)[0] if cursor else None
        return self._answer(_page(read(before, limit + 1), keys, limit), request)

    def _answer(self, page: Page[Row], request: Request) -> list[Row]:
        address = request.build_absolute_uri()
        self.next = replace_query_param(address, "cursor", page.next_cursor) if page.next_cursor else None
        return page.items

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"items": data, "next": self.next}, headers=next_link(self.next))

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["items", "next"],
            "properties": {
                "items": schema,
                "next": {
                    "type": ["string", "null"],
                    "format": "uri",
                    "description": "URL of the next page; null on the last page.",
                },
            },
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        return [
            {"name": one.name, "in": one.location, "description": one.description, "schema": one.type} for one in PAGING
        ]


def next_link(address: str | None) -> dict[str, str]:
    """Returns the header with the address of the next page, as RFC 8288 writes it. Cursors need no escaping."""
    return {"Link": f'<{iri_to_uri(address)}>; rel="next"'} if address else {}


def _asked(request: Request) -> tuple[int, str | None]:
    return parse_limit(request.query_params.get("limit")), request.query_params.get("cursor")


def _after(keys: Sequence[str], values: list[Any]) -> Q:
    """(a, b) > (x, y), written column by column because directions may differ."""
    condition = Q()
    equal = Q()
    for key, value in zip(keys, values, strict=True):
        name = key.removeprefix("-")
        beyond = f"{name}__lt" if key.startswith("-") else f"{name}__gt"
        condition |= equal & Q(**{beyond: value})
        equal &= Q(**{name: value})
    return condition


def _encode(keys: Sequence[str], row: Model) -> str:
    values = [getattr(row, key.removeprefix("-")) for key in keys]
    text = json.dumps([",".join(keys), *values], default=_exact, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _exact(value: Any) -> str:
    """Keeps microseconds: DjangoJSONEncoder cuts them off, and rows of the same millisecond would be skipped."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _decode(model: type[Model], keys: Sequence[str], cursor: str) -> list[Any]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        order, *raw = json.loads(base64.urlsafe_b64decode(padded))
        values = [
            model._meta.get_field(key.removeprefix("-")).to_python(value)  # type: ignore[union-attr]
            for key, value in zip(keys, raw, strict=True)
        ]
    except (ValueError, TypeError, binascii.Error, ValidationError, RecursionError) as error:
        raise _bad_cursor() from error
    if order != ",".join(keys) or any(value is None or (isinstance(value, str) and "\0" in value) for value in values):
        raise _bad_cursor()
    return values


def _bad_cursor() -> Refused:
    return refuse("bad_cursor", "This cursor does not belong to this list. Start without a cursor.", field="cursor")
