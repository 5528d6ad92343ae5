"""/api/v1/events: what happened."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.core.teams import TenantsOf, team_slugs
from accounts.events import queries as event_queries
from accounts.events.serializers import EventSerializer
from accounts.models import Event, Scope
from accounts.rest.strict.query import text_filter
from portal.core.errors import NOT_FOUND, Refused


class EventFilter(FilterSet):
    team = text_filter(63, "Slug of a team.", field_name="tenant")
    row = text_filter(120, "The object of the event, as `<app>.<model>.<id>`.")
    verb = text_filter(60, "The verb of the event, for example `token.created`.")

    class Meta:
        model = Event
        fields = ["team", "row", "verb"]


class Events(generics.ListAPIView[Event]):
    required_scope = Scope.READ
    serializer_class = EventSerializer
    filterset_class = EventFilter
    tenants_of: TenantsOf | None = None
    queryset = Event.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Event]:
        by = actor(self.request)
        known, asked = team_slugs(self.tenants_of, by), self.request.query_params.get("team")
        if asked is not None and asked not in known:
            raise Refused(NOT_FOUND)
        return event_queries.events_for(by, tenants=known)

    @extend_schema(operation_id="events_list", summary="List events of my teams and my account, newest first")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.list(request, *args, **kwargs)
