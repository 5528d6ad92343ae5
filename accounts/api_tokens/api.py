"""/api/v1/tokens: the caller's own tokens, and all tokens for administrators."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api_tokens import actions, policy, queries
from accounts.api_tokens.serializers import CreatedTokenSerializer, NewTokenSerializer, TokenSerializer
from accounts.core.request_actor import actor, refuse_without_second_factor
from accounts.models import ApiToken, Scope
from accounts.rest.strict.query import text_parameter
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import Refused, refuse_if

EVERYBODY = "everybody"
OWNER = text_parameter("owner", 254, f"Administrators only: an email address, or `{EVERYBODY}`. Includes team tokens.")


class Tokens(VerbView, generics.GenericAPIView[ApiToken]):
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
        refuse_without_second_factor(self.request)
        return queries.all_tokens(owner="" if owner == EVERYBODY else owner)

    @extend_schema(
        operation_id="tokens_list",
        summary="List my tokens that are not revoked, newest first",
        responses={200: TokenSerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(
        operation_id="tokens_create",
        summary="Create a token; the secret is in this response only",
        request=NewTokenSerializer,
        responses={201: CreatedTokenSerializer},
    )
    def post(self, request: Request) -> Response:
        typed = self.body(NewTokenSerializer)
        if Scope.ADMIN in typed["scopes"]:
            refuse_without_second_factor(request)
        token, secret = actions.create_token(**typed, by=self.by)
        made = {**TokenSerializer(token).data, "token": secret}
        return Response(made, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class OwnToken(VerbView):
    required_scope = Scope.READ
    required_scopes = {"DELETE": tuple(Scope)}
    is_for_any_token = True

    @extend_schema(
        operation_id="me_token_revoke",
        summary="Revoke the token of this call; it stops working immediately",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request) -> Response:
        if not isinstance(request.auth, ApiToken):
            raise Refused(policy.SESSION_HAS_NO_TOKEN)
        actions.revoke_own_token(request.auth, by=self.by)
        return self.no_content()


class TokenDetail(VerbView):
    required_scope = Scope.ADMIN
    is_personal = True

    @extend_schema(
        operation_id="tokens_revoke", summary="Revoke a token; it stops working immediately", responses={204: None}
    )
    @takes_no_fields
    def delete(self, request: Request, prefix: str) -> Response:
        actions.revoke_token(prefix, by=self.by)
        return self.no_content()
