"""/api/v1/events: what happened; /api/v1/watch: what happens."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor
from accounts.core.teams import TenantsOf, team_slugs
from accounts.events import queries as event_queries
from accounts.events import stream
from accounts.events.serializers import EventSerializer
from accounts.models import Event, Scope
from accounts.rest.any_accept import AnyAccept
from accounts.rest.strict.query import text_filter, text_parameter
from accounts.rest.waiting import WAITED
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


class Watch(APIView):
    """Checks the call. The doors process goes on with the stream; without it, the response has what there is now and
    ends, and the client comes again.
    """

    required_scope = Scope.READ
    content_negotiation_class = AnyAccept
    tenants_of: TenantsOf | None = None
    query = (
        text_parameter("team", 63, "Slug of a team. Default: all of my teams, and my account."),
        text_parameter("after", 18, "Id of the last event that you have. Default: begin with the next event."),
    )

    @extend_schema(
        operation_id="events_watch",
        summary="Follow events as server-sent events, oldest first",
        tags=["events"],
        parameters=[
            OpenApiParameter(
                "Last-Event-ID", str, OpenApiParameter.HEADER, description="As `after`, and before it: sent by clients."
            )
        ],
        responses={(200, "text/event-stream"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> HttpResponse:
        by = actor(request)
        reader = stream.EventReader(by, team_slugs(self.tenants_of, by), request.query_params.get("team", ""))
        asked = request.headers.get("Last-Event-ID") or request.query_params.get("after", "")
        if reader.team and reader.team not in reader.teams:
            raise Refused(NOT_FOUND)
        after = stream.position_asked(asked)
        if WAITED in request.META:
            return HttpResponse(content_type=stream.CONTENT_TYPE)
        newest = stream.newest_id()
        after = newest if after is None else after
        page = reader.page(after=after, until=after if stream.unfinished_writers() else newest)
        return HttpResponse(page.text + stream.position_text(page.last), content_type=stream.CONTENT_TYPE)
