"""/api/v1/teams/<slug>/tokens: the same actions as the page."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api_tokens.serializers import CreatedTokenSerializer, NewTokenSerializer, TokenSerializer
from accounts.core.request_actor import actor, refuse_without_second_factor
from accounts.models import ApiToken, Scope
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from tenants.members.tokens import actions as token_actions
from tenants.members.tokens import queries as token_queries


class TeamTokens(VerbView, generics.GenericAPIView[ApiToken]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = TokenSerializer
    filter_backends = ()
    queryset = ApiToken.objects.none()  # for the schema

    @extend_schema(
        operation_id="team_tokens_list",
        summary="List team tokens that are not revoked, newest first (owners and managers)",
        responses=TokenSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        _team, found = token_queries.team_with_tokens(tenant, by=actor(request))
        page = self.paginate_queryset(found) or []
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(
        operation_id="team_tokens_create",
        summary="Create a team token that acts as you in this team; the secret is in this response only",
        request=NewTokenSerializer,
        responses={201: CreatedTokenSerializer},
    )
    def post(self, request: Request, tenant: str) -> Response:
        token_queries.team_with_tokens(tenant, by=self.by)
        typed = self.body(NewTokenSerializer)
        if Scope.ADMIN in typed["scopes"]:
            refuse_without_second_factor(request)
        token, text = token_actions.create_team_token(tenant, **typed, by=self.by)
        made = {**TokenSerializer(token).data, "token": text}
        return Response(made, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class TeamTokenDetail(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="team_tokens_revoke",
        summary="Revoke a team token; it stops working immediately",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str, prefix: str) -> Response:
        token_actions.revoke_team_token(tenant, prefix, by=self.by)
        return self.no_content()
