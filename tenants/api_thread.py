"""/api/v1/requests/<id>/comments: what was said about a request."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.edge import actor
from accounts.known_fields import KnownFields
from accounts.models import Scope
from portal.errors import get_or_refuse
from tenants import actions, policy, thread
from tenants.models import QuotaRequest


class CommentSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    who = serializers.CharField()
    text = serializers.CharField()
    asks_back = serializers.BooleanField()


class NewCommentSerializer(KnownFields):
    text = serializers.CharField(max_length=policy.COMMENT_MAX)
    asks_back = serializers.BooleanField(default=False, help_text="By an approver: the team shall answer first.")


class Comments(APIView):
    required_scope = Scope.READ
    required_scopes = {"POST": (Scope.REQUEST, Scope.DECIDE)}

    @extend_schema(
        operation_id="requests_comments",
        summary="What was said about a request, oldest first",
        responses=CommentSerializer(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        found = get_or_refuse(QuotaRequest.objects.visible_to(actor(request)), pk=pk)
        return Response(CommentSerializer(thread.comments(found), many=True).data)

    @extend_schema(
        operation_id="requests_comment",
        summary="Say something about a request, or ask back",
        request=NewCommentSerializer,
        responses={201: CommentSerializer(many=True)},
    )
    def post(self, request: Request, pk: int) -> Response:
        by = actor(request)
        get_or_refuse(QuotaRequest.objects.visible_to(by), pk=pk)
        asked = NewCommentSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = actions.comment_request(pk, by=by, **asked.validated_data)
        said = CommentSerializer(thread.comments(row.request), many=True).data
        return Response(said, status=status.HTTP_201_CREATED)
