"""/api/v1/tenants/<slug>/tokens: the same verbs as the page."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api import CreatedTokenSerializer, NewTokenSerializer, TokenSerializer
from accounts.edge import actor
from accounts.known_fields import takes_no_fields
from accounts.models import ApiToken, Scope
from tenants import team_tokens


class TeamTokens(generics.GenericAPIView[ApiToken]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = TokenSerializer
    filter_backends = ()
    queryset = ApiToken.objects.none()  # for the schema

    @extend_schema(
        operation_id="team_tokens_list",
        summary="Tokens of the team that are not revoked, newest first; for its owners and managers",
        responses=TokenSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        _team, found = team_tokens.tokens_of(tenant, by=actor(request))
        page = self.paginate_queryset(found) or []
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(
        operation_id="team_tokens_create",
        summary="A new token of the team, as whose maker it acts there; its text is in this answer only",
        request=NewTokenSerializer,
        responses={201: CreatedTokenSerializer},
    )
    def post(self, request: Request, tenant: str) -> Response:
        by = actor(request)
        team_tokens.tokens_of(tenant, by=by)
        asked = NewTokenSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        token, text = team_tokens.create(tenant, **asked.validated_data, by=by)
        made = {**TokenSerializer(token).data, "token": text}
        return Response(made, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class TeamTokenDetail(APIView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="team_tokens_revoke",
        summary="Revoke a token of the team; it stops working at once",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str, prefix: str) -> Response:
        team_tokens.revoke(tenant, prefix, by=actor(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
