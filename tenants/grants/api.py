"""A team's grants by REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from portal.core.errors import get_or_refuse
from tenants.core import queries
from tenants.grants.timeline import queries as timeline_queries
from tenants.models import Grant, Tenant


class TakingSerializer(serializers.Serializer[Any]):
    request = serializers.IntegerField()
    is_pending = serializers.BooleanField(help_text="Proposed and not yet decided.")
    units = serializers.IntegerField(help_text="Units that remain.")
    starts_at = serializers.DateTimeField(source="starts")


class GrantSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    gpu_class = serializers.CharField(source="slug")
    kind = serializers.CharField(help_text="base (total) or boost (temporary increase on top of it)")
    units = serializers.IntegerField()
    starts_at = serializers.DateTimeField(source="starts")
    ends_at = serializers.DateTimeField(source="ends", help_text="No new starts after this.")
    runs_until = serializers.DateTimeField(help_text="Running workloads are not reclaimed before this.")
    state = serializers.CharField(help_text="now, later, or grace (expired; running workloads continue)")
    request = serializers.IntegerField(allow_null=True, help_text="The request in which it was approved.")
    reclaim = TakingSerializer(source="taking", allow_null=True, help_text="A proposed or approved quota reduction.")


class TeamGrants(generics.GenericAPIView[Grant]):
    required_scope = Scope.READ
    serializer_class = GrantSerializer
    filter_backends = ()
    queryset = Grant.objects.none()  # for the schema

    @extend_schema(
        operation_id="teams_grants",
        summary="List the grants of a team: in force, future, or in the grace period; newest first",
        responses=GrantSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        found, at = get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=tenant), queries.database_now()
        page = self.paginate_queryset(timeline_queries.grants_of(found, at=at)) or []
        # The row of one grant depends on the other grants of its class.
        rows = {row.pk: row for row in timeline_queries.grant_rows(found, at=at)} if page else {}
        shown = [rows[one.pk] for one in page if one.pk in rows]
        return self.get_paginated_response(GrantSerializer(shown, many=True).data)
