"""A team's invitations and join requests by REST, and those of the current user."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import refuse_if
from tenants.core.lookups import team_of_request
from tenants.members import policy as member_policy
from tenants.members import queries as member_queries
from tenants.members.invitations import actions as invitation_actions
from tenants.members.invitations import queries as invitation_queries
from tenants.members.serializers import (
    InvitationSerializer,
    JoinAnswerSerializer,
    JoinSerializer,
    NewJoinSerializer,
    PersonSerializer,
    member_etag,
)
from tenants.models import Invitation, JoinRequest, Tenant


def _team_for_managers(request: Request, slug: str) -> Tenant:
    """Join requests and invitations are shown only to people who manage members."""
    found = team_of_request(request, slug)
    by = actor(request)
    refuse_if(member_policy.may_see_pending_members(by, member_queries.standing_of(by, found)))
    return found


class TeamInvitations(generics.GenericAPIView[Invitation]):
    required_scope = Scope.READ
    serializer_class = InvitationSerializer
    filter_backends = ()
    queryset = Invitation.objects.none()  # for the schema

    @extend_schema(
        operation_id="team_invitations_list",
        summary="List pending invitations of a team, newest first",
        responses=InvitationSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        rows = Invitation.objects.filter(tenant=_team_for_managers(request, tenant), state=Invitation.State.PENDING)
        page = self.paginate_queryset(rows.select_related("tenant")) or []
        return self.get_paginated_response(InvitationSerializer(page, many=True).data)


class TeamInvitation(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="team_invitations_revoke",
        summary="Revoke an invitation",
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str, pk: int) -> Response:
        invitation_actions.revoke_invitation(tenant, pk, by=self.by)
        return self.no_content()


class TeamJoins(generics.GenericAPIView[JoinRequest]):
    required_scope = Scope.READ
    serializer_class = JoinSerializer
    filter_backends = ()
    queryset = JoinRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="team_joins_list",
        summary="List pending join requests of a team, newest first",
        responses=JoinSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        rows = JoinRequest.objects.filter(tenant=_team_for_managers(request, tenant), state=JoinRequest.State.PENDING)
        page = self.paginate_queryset(rows.select_related("tenant", "user")) or []
        return self.get_paginated_response(JoinSerializer(page, many=True).data)


class TeamJoin(VerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="team_joins_answer",
        summary="Accept or decline a join request",
        request=JoinAnswerSerializer,
        responses=JoinSerializer,
    )
    def post(self, request: Request, tenant: str, pk: int) -> Response:
        team_of_request(request, tenant)
        typed = self.body(JoinAnswerSerializer)
        return self.answer(JoinSerializer(invitation_actions.answer_join(tenant, pk, by=self.by, **typed)))


class Joins(VerbView, generics.GenericAPIView[JoinRequest]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.REQUEST}
    is_personal = True
    serializer_class = JoinSerializer
    filter_backends = ()
    queryset = JoinRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="joins_list",
        summary="List my join requests with their answers, newest first",
        responses=JoinSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = JoinRequest.objects.filter(user=actor(request).person).select_related("tenant", "user")
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response(JoinSerializer(page, many=True).data)

    @extend_schema(
        operation_id="joins_ask",
        summary="Request to join a team; its owners are notified",
        request=NewJoinSerializer,
        responses={201: JoinSerializer},
    )
    def post(self, request: Request) -> Response:
        typed = self.body(NewJoinSerializer)
        row = invitation_actions.ask_to_join(typed["team"], message=typed["message"], by=self.by)
        row.refresh_from_db()
        return self.created(JoinSerializer(row))


class JoinDetail(VerbView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="joins_withdraw", summary="Withdraw a join request", request=None, responses={204: None}
    )
    @takes_no_fields
    def delete(self, request: Request, pk: int) -> Response:
        invitation_actions.withdraw_join(pk, by=self.by)
        return self.no_content()


class Invitations(generics.GenericAPIView[Invitation]):
    required_scope = Scope.READ
    is_personal = True
    serializer_class = InvitationSerializer
    filter_backends = ()
    queryset = Invitation.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Invitation]:
        rows = invitation_queries.own_invitations(actor(self.request)).filter(state=Invitation.State.PENDING)
        return rows.filter(expires_at__gt=timezone.now()).select_related("tenant")

    @extend_schema(
        operation_id="invitations_list",
        summary="List my invitations that I can accept, newest first",
        responses=InvitationSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(InvitationSerializer(page, many=True).data)


class InvitationAccept(VerbView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="invitations_accept",
        summary="Accept an invitation and become a member",
        parameters=[ETAG],
        request=None,
        responses=PersonSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        row = invitation_actions.accept_invitation(pk, by=self.by)
        row.refresh_from_db()
        return self.answer(PersonSerializer(row), headers={"ETag": member_etag(row)})


class InvitationDecline(VerbView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="invitations_decline", summary="Decline an invitation", request=None, responses={204: None}
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        invitation_actions.decline_invitation(pk, by=self.by)
        return self.no_content()
