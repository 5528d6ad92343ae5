"""/api/v1/delegations: the delegates of approvers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.serializers import StrictSerializer, takes_no_fields
from accounts.rest.verb_view import VerbView
from tenants.approvers.delegation import actions as delegation_actions
from tenants.approvers.delegation.queries import delegation_row, delegations_of, rows_of_delegations
from tenants.models import Deputy


class DelegationSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    approver = serializers.CharField()
    delegate = serializers.CharField(source="deputy")
    starts_at = serializers.DateTimeField(source="starts")
    ends_at = serializers.DateTimeField(source="ends")
    state = serializers.CharField(
        help_text="later, now or over; void: the approver lost the role, or an account is suspended"
    )


class NewDelegationSerializer(StrictSerializer):
    email = serializers.EmailField(max_length=254)
    starts_at = serializers.DateTimeField(required=False, help_text="Default: now.")
    ends_at = serializers.DateTimeField(help_text="At most 92 days later.")


class Delegations(VerbView, generics.GenericAPIView[Deputy]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.DECIDE}
    is_personal = True
    serializer_class = DelegationSerializer
    filter_backends = ()
    queryset = Deputy.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Deputy]:
        return delegations_of(actor(self.request))

    @extend_schema(
        operation_id="delegations_list",
        summary="List current and future delegations from me and to me (staff: all), newest first",
        responses=DelegationSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        rows = rows_of_delegations(page, actor(request))
        return self.get_paginated_response(DelegationSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="delegations_create",
        summary="Name a delegate who decides for me during a period",
        request=NewDelegationSerializer,
        responses={201: DelegationSerializer},
    )
    def post(self, request: Request) -> Response:
        typed = self.body(NewDelegationSerializer)
        starts = typed.get("starts_at") or timezone.now()
        row = delegation_actions.name_delegate(email=typed["email"], starts=starts, ends=typed["ends_at"], by=self.by)
        return self.created(DelegationSerializer(delegation_row(row, self.by)))


class DelegationEnd(VerbView):
    required_scope = Scope.DECIDE
    is_personal = True

    @extend_schema(
        operation_id="delegations_end",
        summary="End a delegation immediately, as approver or as delegate",
        request=None,
        responses=DelegationSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        row: Deputy = delegation_actions.end_delegation(pk, by=self.by)
        return self.answer(DelegationSerializer(delegation_row(row, self.by)))
