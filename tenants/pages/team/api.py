"""/api/v1/teams: teams, and one team with members, quota and objects."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.query import text_parameter
from accounts.rest.verb_view import VerbView
from portal.core.errors import get_or_refuse
from tenants.core import queries as core_queries
from tenants.core.serializers import TeamSerializer
from tenants.grants import queries as grant_queries
from tenants.members import actions as member_actions
from tenants.members.serializers import SharingSerializer
from tenants.models import Membership, Tenant
from tenants.pages.team.serializers import TeamDetailSerializer
from tenants.provisioning import queries as provisioning_queries
from tenants.provisioning import shown as provisioning_shown


class Tenants(generics.GenericAPIView[Tenant]):
    required_scope = Scope.READ
    serializer_class = TeamSerializer
    query = (text_parameter("q", 80, "Part of the name or the slug."),)
    filter_backends = ()
    keyset = ("slug",)
    queryset = Tenant.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Tenant]:
        seen = Tenant.objects.visible_to(actor(self.request))
        return core_queries.teams_matching(seen, self.request.query_params.get("q", ""))

    @extend_schema(
        operation_id="teams_list",
        summary="List my teams (staff: all), by slug",
        responses=TeamSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(TeamSerializer(page, many=True).data)


class TeamDetail(VerbView):
    required_scope = Scope.READ
    required_scopes = {"PATCH": Scope.ADMIN}

    @extend_schema(
        operation_id="teams_get",
        summary="Get a team with its members, quota and objects in the cluster",
        responses=TeamDetailSerializer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        return Response(_body(get_or_refuse(Tenant.objects.visible_to(self.by), slug=tenant)))

    @extend_schema(
        operation_id="teams_set",
        summary="Choose who can open the team's new notebooks",
        request=SharingSerializer,
        responses=TeamDetailSerializer,
    )
    def patch(self, request: Request, tenant: str) -> Response:
        get_or_refuse(Tenant.objects.visible_to(self.by), slug=tenant)
        typed = self.body(SharingSerializer)
        return Response(_body(member_actions.set_sharing(tenant, by=self.by, **typed)))


def _body(found: Tenant) -> dict[str, Any]:
    members = Membership.objects.filter(tenant=found).select_related("user").order_by("since", "pk")
    body = {
        "slug": found.slug,
        "name": found.name,
        "purpose": found.purpose,
        "shares_notebooks": found.shares_notebooks,
        "members": list(members),
        "holdings": grant_queries.holdings_of(found),
        "namespace": _namespace(found),
    }
    shown: dict[str, Any] = TeamDetailSerializer(body).data
    return shown


def _namespace(tenant: Tenant) -> dict[str, Any] | None:
    row = tenant.namespaces.select_related("cluster").first()
    if row is None:
        return None
    objects = [
        {
            "kind": one.kind,
            "name": one.name,
            "result": provisioning_shown.result_of(one),
            "code": one.code,
            "text": one.text,
            "sent_at": one.sent_at,
        }
        for one in provisioning_queries.namespace_objects(row)
    ]
    return {
        "name": row.name,
        "wanted": row.wanted,
        "is_settled": row.observed_generation >= row.generation,
        "applied_as_of": row.applied_as_of,
        "error": row.error_text,
        "objects": objects,
    }
