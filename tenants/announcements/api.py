"""/api/v1/announcements: those for the caller, and their acknowledgement. /api/v1/operators/announcements: all, for
operators; 404 for all other users.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import operator
from accounts.models import Scope
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.strict.query import choice_parameter
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import get_or_refuse, refuse
from tenants.announcements import actions, queries
from tenants.announcements.serializers import (
    AcknowledgementSerializer,
    AnnouncementDetailSerializer,
    AnnouncementSerializer,
    ChangeAnnouncementSerializer,
    NewAnnouncementSerializer,
    OwnAnnouncementSerializer,
)
from tenants.models import Announcement


class OwnAnnouncements(VerbView, generics.GenericAPIView[Announcement]):
    required_scope = Scope.READ
    is_personal = True
    serializer_class = OwnAnnouncementSerializer
    filter_backends = ()
    queryset = Announcement.objects.none()  # for the schema

    @extend_schema(
        operation_id="announcements_list",
        summary="List announcements that are in force and for me, newest first",
        responses=OwnAnnouncementSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(queries.own_announcements(self.by.person.pk))
        return self.get_paginated_response(OwnAnnouncementSerializer(page, many=True).data)


class AnnouncementAcknowledge(VerbView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="announcements_acknowledge",
        summary="Acknowledge an announcement: my pages do not show it any more; idempotent",
        request=None,
        responses=AcknowledgementSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return self.answer(AcknowledgementSerializer(actions.acknowledge(pk, by=self.by)))


class Announcements(VerbView, generics.GenericAPIView[Announcement]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    query_of_get = (
        choice_parameter("open", ("true", "false"), "Only those that are not over, or only those that are."),
    )
    serializer_class = AnnouncementSerializer
    filter_backends = ()
    queryset = Announcement.objects.none()  # for the schema

    @extend_schema(
        operation_id="operators_announcements_list",
        summary="For operators: all announcements, newest first",
        responses={200: AnnouncementSerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        operator(request)
        rows = Announcement.objects.select_related("created_by").prefetch_related("classes", "teams")
        if is_open := request.query_params.get("open"):
            if is_open not in ("true", "false"):
                raise refuse("invalid", "open is true or false.", field="open")
            rows = rows.not_over() if is_open == "true" else rows.over()
        return self.get_paginated_response(AnnouncementSerializer(self.paginate_queryset(rows), many=True).data)

    @extend_schema(
        operation_id="operators_announcements_create",
        summary="For operators: publish an announcement; its audience is notified when it begins",
        parameters=[IDEMPOTENCY_KEY],
        request=NewAnnouncementSerializer,
        responses={201: AnnouncementDetailSerializer, 404: None},
    )
    @idempotent(operator)
    def post(self, request: Request) -> Response:
        by = operator(request)
        typed = self.body(NewAnnouncementSerializer)
        starts, ends = typed.pop("starts_at", None) or timezone.now(), typed.pop("ends_at")
        row = actions.announce(**typed, starts=starts, ends=ends, by=by)
        return self.created(_detail(row.pk))


class AnnouncementDetail(VerbView):
    required_scope = Scope.READ
    required_scopes = {"PATCH": Scope.ADMIN}

    @extend_schema(
        operation_id="operators_announcements_get",
        summary="For operators: one announcement, with how many people acknowledged it",
        responses={200: AnnouncementDetailSerializer, 404: None},
    )
    def get(self, request: Request, pk: int) -> Response:
        operator(request)
        return self.answer(_detail(pk))

    @extend_schema(
        operation_id="operators_announcements_change",
        summary="For operators: change until when it is shown; its text cannot be changed; idempotent",
        request=ChangeAnnouncementSerializer,
        responses={200: AnnouncementDetailSerializer, 404: None},
    )
    def patch(self, request: Request, pk: int) -> Response:
        by = operator(request)
        get_or_refuse(Announcement.objects.all(), pk=pk)
        actions.change_end(pk, ends=self.body(ChangeAnnouncementSerializer)["ends_at"], by=by)
        return self.answer(_detail(pk))


class AnnouncementWithdraw(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="operators_announcements_withdraw",
        summary="For operators: remove it from all pages at once",
        request=None,
        responses={200: AnnouncementDetailSerializer, 404: None},
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        by = operator(request)
        actions.withdraw_announcement(pk, by=by)
        return self.answer(_detail(pk))


def _detail(pk: int) -> AnnouncementDetailSerializer:
    rows = Announcement.objects.select_related("created_by").prefetch_related("classes", "teams")
    row: Any = get_or_refuse(rows, pk=pk)
    row.acknowledged, row.people = queries.acknowledged_of(row)
    return AnnouncementDetailSerializer(row)
