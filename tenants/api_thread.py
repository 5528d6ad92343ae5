"""/api/v1/requests/<id>/comments: what was said about a request."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.edge import actor
from accounts.idempotency import IDEMPOTENCY_KEY, once
from accounts.known_fields import KnownFields
from accounts.models import Scope
from portal.errors import get_or_refuse
from tenants import actions, policy, thread
from tenants.models import QuotaRequest, RequestComment


class CommentSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    who = serializers.CharField()
    text = serializers.CharField()
    asks_back = serializers.BooleanField()


class NewCommentSerializer(KnownFields):
    text = serializers.CharField(max_length=policy.COMMENT_MAX)
    asks_back = serializers.BooleanField(default=False, help_text="By an approver: the team shall answer first.")


def _check_request(request: Request, pk: int) -> None:
    get_or_refuse(QuotaRequest.objects.visible_to(actor(request)), pk=pk)


class Comments(generics.GenericAPIView[RequestComment]):
    required_scope = Scope.READ
    required_scopes = {"POST": (Scope.REQUEST, Scope.DECIDE)}
    serializer_class = CommentSerializer
    filter_backends = ()
    keyset = ("id",)
    queryset = RequestComment.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[RequestComment]:
        found = get_or_refuse(QuotaRequest.objects.visible_to(actor(self.request)), pk=self.kwargs["pk"])
        return thread.rows_of(found)

    @extend_schema(
        operation_id="requests_comments",
        summary="What was said about a request, oldest first",
        responses=CommentSerializer(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(CommentSerializer(map(thread.comment, page), many=True).data)

    @extend_schema(
        operation_id="requests_comment",
        summary="Say something about a request, or ask back",
        parameters=[IDEMPOTENCY_KEY],
        request=NewCommentSerializer,
        responses={201: CommentSerializer},
    )
    @once(_check_request)
    def post(self, request: Request, pk: int) -> Response:
        by = actor(request)
        _check_request(request, pk)
        asked = NewCommentSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = actions.comment_request(pk, by=by, **asked.validated_data)
        return Response(CommentSerializer(thread.comment(row)).data, status=status.HTTP_201_CREATED)
