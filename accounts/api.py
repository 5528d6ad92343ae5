"""/api/v1/: who am I, my tokens, events."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import actions, policy, queries
from accounts.actor import Actor
from accounts.edge import actor
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.known_query import text, text_filter
from accounts.models import ApiToken, Event, Role, Scope
from portal.errors import refuse_if

# Handed in by portal/urls.py: this app knows teams by name only.
TenantsOf = Callable[[Actor], Collection[str]]
EVERYBODY = "everybody"
OWNER = text("owner", 254, f"For administrators: an e-mail address, or `{EVERYBODY}`; with the tokens of teams.")


class TokenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The recognisable part, after `gpt_`.")
    tenant = serializers.CharField(allow_blank=True, help_text="The team that it is confined to; empty: your own.")
    owner = serializers.EmailField(source="user.email", help_text="As whom it acts.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.values))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute; null: never used.")


class CreatedTokenSerializer(TokenSerializer):
    token = serializers.CharField(help_text="The token itself. Shown in this answer only.")


class NewTokenSerializer(KnownFields):
    name = serializers.CharField(max_length=60)
    scopes = serializers.ListField(child=serializers.CharField(max_length=10), min_length=1, max_length=len(Scope))
    expires_in_days = serializers.IntegerField(min_value=1, max_value=365, default=90)


class MeSerializer(serializers.Serializer[Any]):
    email = serializers.EmailField()
    name = serializers.CharField()
    roles = serializers.ListField(child=serializers.ChoiceField(choices=Role.values))
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.values))
    tenants = serializers.ListField(
        child=serializers.CharField(),
        help_text="Slugs of your own teams. Staff see others, too: `GET /api/v1/tenants`.",
    )
    via = serializers.CharField(help_text="`page`, or `token <prefix>`.")
    confined_to = serializers.CharField(allow_blank=True, help_text="The team whose token this is; empty: your own.")


class EventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    via = serializers.CharField()
    verb = serializers.CharField()
    tenant = serializers.CharField(allow_blank=True)
    row = serializers.CharField(help_text="`<app>.<model>.<id>`")
    name = serializers.CharField(allow_blank=True)
    before = serializers.DictField()
    after = serializers.DictField()
    request_id = serializers.CharField(allow_blank=True)


class EventFilter(FilterSet):
    tenant = text_filter(63, "Slug of a team.")
    row = text_filter(120, "What it was done to, as `<app>.<model>.<id>`.")
    verb = text_filter(60, "What was done, for example `token.created`.")

    class Meta:
        model = Event
        fields = ["tenant", "row", "verb"]


class Me(APIView):
    required_scope = Scope.READ
    tenants_of: TenantsOf | None = None

    @extend_schema(operation_id="me", summary="Who am I, and what may this token do", responses=MeSerializer)
    def get(self, request: Request) -> Response:
        by = actor(request)
        me = {
            "email": by.person.email,
            "name": by.person.name,
            "roles": by.roles,
            "scopes": sorted(by.scopes),
            "tenants": sorted(_tenants(self.tenants_of, by)),
            "via": by.via,
            "confined_to": by.confined_to,
        }
        return Response(MeSerializer(me).data)


class Tokens(generics.GenericAPIView[ApiToken]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    is_personal = True
    query_of_get = (OWNER,)
    serializer_class = TokenSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[ApiToken]:
        by, owner = actor(self.request), self.request.query_params.get("owner")
        if owner is None:
            return queries.tokens_of(by.person)
        refuse_if(policy.may_see_all_tokens(by))
        return queries.all_tokens(owner="" if owner == EVERYBODY else owner)

    @extend_schema(
        operation_id="tokens_list",
        summary="My tokens that are not revoked, newest first",
        responses={200: TokenSerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(
        operation_id="tokens_create",
        summary="A new token; its text is in this answer only",
        request=NewTokenSerializer,
        responses={201: CreatedTokenSerializer},
    )
    def post(self, request: Request) -> Response:
        asked = NewTokenSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        token, secret = actions.create_token(**asked.validated_data, by=actor(request))
        made = {**TokenSerializer(token).data, "token": secret}
        return Response(made, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class TokenDetail(APIView):
    required_scope = Scope.ADMIN
    is_personal = True

    @extend_schema(
        operation_id="tokens_revoke", summary="Revoke a token; it stops working at once", responses={204: None}
    )
    @takes_no_fields
    def delete(self, request: Request, prefix: str) -> Response:
        actions.revoke_token(prefix, by=actor(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Events(generics.ListAPIView[Event]):
    required_scope = Scope.READ
    serializer_class = EventSerializer
    filterset_class = EventFilter
    tenants_of: TenantsOf | None = None
    queryset = Event.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Event]:
        by = actor(self.request)
        return queries.events_for(by, tenants=_tenants(self.tenants_of, by))

    @extend_schema(operation_id="events_list", summary="What happened in my teams and to my account, newest first")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.list(request, *args, **kwargs)


@functools.cache
def contract_text() -> bytes:
    """The OpenAPI document of all apps: the same for everybody, and half a second of work."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    return json.dumps(document, indent=1).encode()


@require_safe
def contract(request: HttpRequest) -> HttpResponse:
    return HttpResponse(contract_text(), content_type="application/vnd.oai.openapi+json")


def _tenants(tenants_of: TenantsOf | None, by: Actor) -> Collection[str]:
    return tenants_of(by) if tenants_of else ()
