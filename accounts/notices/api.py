"""/api/v1/me/notices: the caller's own notices and preferences."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Notice, Scope
from accounts.notices import actions, queries
from accounts.notices.serializers import (
    NoticePreferencesSerializer,
    NoticeSerializer,
    PutNoticePreferencesSerializer,
    ReadNoticesSerializer,
    UnreadNoticesSerializer,
)
from accounts.rest.strict.query import choice_parameter
from accounts.rest.verb_view import VerbView
from portal.core.errors import refuse

UNREAD = "unread"
SHOW = choice_parameter("show", [UNREAD], "`unread`: only notices that were not read.")


class Notices(generics.GenericAPIView[Notice]):
    required_scope = Scope.READ
    is_personal = True
    query_of_get = (SHOW,)
    keyset = queries.KEYS
    serializer_class = NoticeSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Notice]:
        show = self.request.query_params.get("show")
        if show not in (None, UNREAD):
            raise refuse("invalid", f"show must be '{UNREAD}'.", field="show")
        return queries.notices_of(actor(self.request).person.pk, only_unread=show == UNREAD)

    @extend_schema(
        operation_id="notices_list",
        summary="List my notices, newest first",
        responses=NoticeSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(NoticeSerializer(page, many=True).data)


class NoticesRead(VerbView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="notices_read",
        summary="Mark my notices as read, all or some",
        request=ReadNoticesSerializer,
        responses=UnreadNoticesSerializer,
    )
    def post(self, request: Request) -> Response:
        user_id = self.by.person.pk
        actions.mark_read(user_id, self.body(ReadNoticesSerializer).get("ids"))
        unread = queries.notices_of(user_id, only_unread=True).count()
        return self.answer(UnreadNoticesSerializer({"unread": unread}))


class NoticePreferences(VerbView):
    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.REQUEST}
    is_personal = True

    @extend_schema(
        operation_id="notice_preferences_get",
        summary="How I am notified, by kind of notice",
        responses=NoticePreferencesSerializer,
    )
    def get(self, request: Request) -> Response:
        return self.answer(NoticePreferencesSerializer({"items": queries.preferences_of(self.by.person.pk)}))

    @extend_schema(
        operation_id="notice_preferences_put",
        summary="Set how I am notified; kinds that are not named get their default; idempotent",
        request=PutNoticePreferencesSerializer,
        responses=NoticePreferencesSerializer,
    )
    def put(self, request: Request) -> Response:
        made = actions.set_preferences(self.body(PutNoticePreferencesSerializer), by=self.by)
        return self.answer(NoticePreferencesSerializer({"items": made}))
