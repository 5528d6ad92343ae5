"""/api/v1/teams/<slug>/members: the same actions as the pages."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.etag import ETAG, IF_MATCH, if_match
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import NOT_FOUND, Refused, get_or_refuse
from tenants.core.lookups import team_of_request
from tenants.members import actions as member_actions
from tenants.members.serializers import (
    InvitationSerializer,
    NewMemberSerializer,
    PersonSerializer,
    RoleSerializer,
    member_etag,
)
from tenants.models import Invitation, Membership, Tenant

# The action checks lengths, addresses and roles, with the same message as on the page.


# ---- members of a team -------------------------------------------------------------------------------------------


class Members(VerbView, generics.GenericAPIView[Membership]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = PersonSerializer
    filter_backends = ()
    keyset = ("id",)
    queryset = Membership.objects.none()  # for the schema

    @extend_schema(
        operation_id="members_list", summary="List the members of a team", responses=PersonSerializer(many=True)
    )
    def get(self, request: Request, tenant: str) -> Response:
        found = Membership.objects.filter(tenant=team_of_request(request, tenant)).select_related("user")
        page = self.paginate_queryset(found) or []
        return self.get_paginated_response(PersonSerializer(page, many=True).data)

    @extend_schema(
        operation_id="members_add",
        summary="Add a member; an address without an account is invited (202)",
        parameters=[ETAG],
        request=NewMemberSerializer,
        responses={201: PersonSerializer, 202: InvitationSerializer},
    )
    def post(self, request: Request, tenant: str) -> Response:
        team_of_request(request, tenant)
        typed = self.body(NewMemberSerializer)
        added = member_actions.add_member(tenant, email=typed["email"], role=typed["role"], by=self.by)
        added.refresh_from_db()
        if isinstance(added, Invitation):
            return Response(InvitationSerializer(added).data, status=status.HTTP_202_ACCEPTED)
        return self.created(PersonSerializer(added), headers={"ETag": member_etag(added)})


class MemberDetail(VerbView):
    required_scope = Scope.ADMIN
    required_scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="members_get", summary="Get a member of a team", parameters=[ETAG], responses=PersonSerializer
    )
    def get(self, request: Request, tenant: str, pk: int) -> Response:
        rows = Membership.objects.filter(tenant=team_of_request(request, tenant)).select_related("user")
        return _member(get_or_refuse(rows, user_id=pk))

    @extend_schema(
        operation_id="members_set_role",
        summary="Change the role of a member",
        parameters=[IF_MATCH, ETAG],
        request=RoleSerializer,
        responses=PersonSerializer,
    )
    def patch(self, request: Request, tenant: str, pk: int) -> Response:
        found = team_of_request(request, tenant)
        role = self.body(RoleSerializer)["role"]
        with if_match(request, lambda: _locked_tag(found, pk)):
            member = member_actions.set_role(tenant, user_id=pk, role=role, by=self.by)
        return _member(member)

    @extend_schema(
        operation_id="members_remove",
        summary="Remove a member, or leave the team",
        parameters=[IF_MATCH],
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str, pk: int) -> Response:
        found = team_of_request(request, tenant)
        with if_match(request, lambda: _locked_tag(found, pk)):
            member_actions.remove_member(tenant, user_id=pk, by=self.by)
        return self.no_content()


def _member(row: Membership) -> Response:
    return Response(PersonSerializer(row).data, headers={"ETag": member_etag(row)})


def _locked_tag(tenant: Tenant, user_id: int) -> str:
    """Locks all members in the order of the action."""
    rows = Membership.objects.select_for_update().filter(tenant=tenant).order_by("pk")
    found = next((row for row in rows if row.user_id == user_id), None)
    if found is None:
        raise Refused(NOT_FOUND)
    return member_etag(found)
