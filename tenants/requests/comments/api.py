"""/api/v1/requests/<id>/comments: the comments on a request."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.verb_view import VerbView
from portal.core.errors import get_or_refuse
from tenants.models import QuotaRequest, RequestComment
from tenants.requests.comments import actions, policy
from tenants.requests.comments import queries as comment_queries


class CommentSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    who = serializers.CharField()
    text = serializers.CharField()
    asks_back = serializers.BooleanField()


class NewCommentSerializer(StrictSerializer):
    text = serializers.CharField(max_length=policy.COMMENT_MAX)
    asks_back = serializers.BooleanField(
        default=False, help_text="Approvers only: request information; the team answers first."
    )


def _check_request(request: Request, pk: int) -> None:
    get_or_refuse(QuotaRequest.objects.visible_to(actor(request)), pk=pk)


class Comments(VerbView, generics.GenericAPIView[RequestComment]):
    required_scope = Scope.READ
    required_scopes = {"POST": (Scope.REQUEST, Scope.DECIDE)}
    serializer_class = CommentSerializer
    filter_backends = ()
    keyset = ("id",)
    queryset = RequestComment.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[RequestComment]:
        found = get_or_refuse(QuotaRequest.objects.visible_to(actor(self.request)), pk=self.kwargs["pk"])
        return comment_queries.comments_on(found)

    @extend_schema(
        operation_id="requests_comments",
        summary="List comments on a request, oldest first",
        responses=CommentSerializer(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(CommentSerializer(map(comment_queries.comment_row, page), many=True).data)

    @extend_schema(
        operation_id="requests_comment",
        summary="Comment on a request, or request information",
        parameters=[IDEMPOTENCY_KEY],
        request=NewCommentSerializer,
        responses={201: CommentSerializer},
    )
    @idempotent(_check_request)
    def post(self, request: Request, pk: int) -> Response:
        _check_request(request, pk)
        typed = self.body(NewCommentSerializer)
        row = actions.comment_request(pk, by=self.by, **typed)
        return self.created(CommentSerializer(comment_queries.comment_row(row)))
