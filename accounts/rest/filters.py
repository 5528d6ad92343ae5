"""Filters of a list, from a view's `filterset_class`."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework.backends import DjangoFilterBackend
from rest_framework.request import Request


def is_filtered(request: Request, view: Any) -> bool:
    known = getattr(getattr(view, "filterset_class", None), "base_filters", {})
    return not known.keys().isdisjoint(request.query_params)


class OptionalFilterBackend(DjangoFilterBackend):
    """Builds no form for calls without a filter, which are the most frequent."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        if not is_filtered(request, view):
            return queryset
        found: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return found
