"""/api/v1/tenants/<slug>/members and all by which people come and go: the same verbs as the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.bounds import SaidChoiceField, up_to
from accounts.edge import actor
from accounts.etag import ETAG, IF_MATCH, if_match, tag
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.models import Scope
from accounts.policy import ADDRESS_MAX
from portal.errors import NOT_FOUND, Refused, get_or_refuse, refuse_if
from tenants import members, policy, queries
from tenants.models import Invitation, JoinRequest, Membership, Tenant
from tenants.queries import joining

ROLES = ", ".join(policy.MEMBER_ROLES)


class PersonSerializer(serializers.Serializer[Any]):
    """A member; `id` is the person's, as in the address of PATCH and DELETE."""

    id = serializers.IntegerField(source="user_id")
    email = serializers.CharField(source="user.email")
    name = serializers.CharField(source="user.name")
    role = serializers.CharField(help_text=ROLES)
    since = serializers.DateTimeField()


class InvitationSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    tenant = serializers.CharField(source="tenant.slug")
    email = serializers.CharField()
    role = serializers.CharField(help_text=ROLES)
    state = serializers.CharField(help_text="pending, accepted, declined or revoked")
    expires_at = serializers.DateTimeField()


class JoinSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    tenant = serializers.CharField(source="tenant.slug")
    email = serializers.CharField(source="user.email")
    name = serializers.CharField(source="user.name")
    message = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text="pending, accepted, declined or withdrawn")
    asked_at = serializers.DateTimeField()
    reason = serializers.CharField(allow_blank=True, help_text="Of a no.")


# Lengths, addresses and roles are refused by the action, in the sentence that the page shows.


class NewMemberSerializer(KnownFields):
    email = serializers.CharField(validators=up_to(ADDRESS_MAX))
    role = SaidChoiceField(choices=policy.MEMBER_ROLES, default=policy.MEMBER)


class RoleSerializer(KnownFields):
    role = SaidChoiceField(choices=policy.MEMBER_ROLES)


class JoinAnswerSerializer(KnownFields):
    accept = serializers.BooleanField()
    role = SaidChoiceField(choices=policy.MEMBER_ROLES, default=policy.MEMBER)
    reason = serializers.CharField(
        default="", allow_blank=True, validators=up_to(policy.MESSAGE_MAX), help_text="Needed for a no."
    )


class NewJoinSerializer(KnownFields):
    tenant = serializers.CharField(max_length=40, help_text="Slug of a team.")
    message = serializers.CharField(default="", allow_blank=True, validators=up_to(policy.MESSAGE_MAX))


def _typed(serializer: type[KnownFields], request: Request) -> dict[str, Any]:
    asked = serializer(data=request.data)
    asked.is_valid(raise_exception=True)
    values: dict[str, Any] = asked.validated_data
    return values


def _team(request: Request, slug: str) -> Tenant:
    """Looked up before the body is: for a stranger there is no team, whatever was sent."""
    return get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=slug)


def _team_that_waits(request: Request, slug: str) -> Tenant:
    """Who asks to come, and who was invited, is for those who let people in."""
    found = _team(request, slug)
    by = actor(request)
    refuse_if(policy.may_see_who_waits(by, queries.standing(by, found)))
    return found


# ---- of a team ---------------------------------------------------------------------------------------------------


class Members(generics.GenericAPIView[Membership]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = PersonSerializer
    filter_backends = ()
    keyset = ("id",)
    queryset = Membership.objects.none()  # for the schema

    @extend_schema(operation_id="members_list", summary="Who is in the team", responses=PersonSerializer(many=True))
    def get(self, request: Request, tenant: str) -> Response:
        found = Membership.objects.filter(tenant=_team(request, tenant)).select_related("user")
        page = self.paginate_queryset(found) or []
        return self.get_paginated_response(PersonSerializer(page, many=True).data)

    @extend_schema(
        operation_id="members_add",
        summary="Add a person; an address without an account is invited (202)",
        request=NewMemberSerializer,
        responses={201: PersonSerializer, 202: InvitationSerializer},
    )
    def post(self, request: Request, tenant: str) -> Response:
        _team(request, tenant)
        typed = _typed(NewMemberSerializer, request)
        added = members.add_member(tenant, email=typed["email"], role=typed["role"], by=actor(request))
        added.refresh_from_db()
        if isinstance(added, Invitation):
            return Response(InvitationSerializer(added).data, status=status.HTTP_202_ACCEPTED)
        return Response(PersonSerializer(added).data, status=status.HTTP_201_CREATED)


class MemberDetail(APIView):
    required_scope = Scope.ADMIN
    required_scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="members_get", summary="One member of the team", parameters=[ETAG], responses=PersonSerializer
    )
    def get(self, request: Request, tenant: str, pk: int) -> Response:
        rows = Membership.objects.filter(tenant=_team(request, tenant)).select_related("user")
        return _member(get_or_refuse(rows, user_id=pk))

    @extend_schema(
        operation_id="members_set_role",
        summary="Change a role",
        parameters=[IF_MATCH, ETAG],
        request=RoleSerializer,
        responses=PersonSerializer,
    )
    def patch(self, request: Request, tenant: str, pk: int) -> Response:
        found = _team(request, tenant)
        role = _typed(RoleSerializer, request)["role"]
        with if_match(request, lambda: _locked_tag(found, pk)):
            member = members.set_role(tenant, user_id=pk, role=role, by=actor(request))
        return _member(member)

    @extend_schema(
        operation_id="members_remove",
        summary="Remove a member, or leave",
        parameters=[IF_MATCH],
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str, pk: int) -> Response:
        found = _team(request, tenant)
        with if_match(request, lambda: _locked_tag(found, pk)):
            members.remove_member(tenant, user_id=pk, by=actor(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _member(row: Membership) -> Response:
    return Response(PersonSerializer(row).data, headers={"ETag": tag(row.pk, row.role)})


def _locked_tag(tenant: Tenant, user_id: int) -> str:
    """All members locked in the order of the action."""
    rows = Membership.objects.select_for_update().filter(tenant=tenant).order_by("pk")
    found = next((row for row in rows if row.user_id == user_id), None)
    if found is None:
        raise Refused(NOT_FOUND)
    return tag(found.pk, found.role)


class TeamInvitations(generics.GenericAPIView[Invitation]):
    required_scope = Scope.READ
    serializer_class = InvitationSerializer
    filter_backends = ()
    queryset = Invitation.objects.none()  # for the schema

    @extend_schema(
        operation_id="tenant_invitations_list",
        summary="Invitations that wait for an answer, newest first",
        responses=InvitationSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        rows = Invitation.objects.filter(tenant=_team_that_waits(request, tenant), state=Invitation.State.PENDING)
        page = self.paginate_queryset(rows.select_related("tenant")) or []
        return self.get_paginated_response(InvitationSerializer(page, many=True).data)


class TeamInvitation(APIView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="tenant_invitations_revoke",
        summary="Take an invitation back",
        request=None,
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, tenant: str, pk: int) -> Response:
        members.revoke_invitation(tenant, pk, by=actor(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TeamJoins(generics.GenericAPIView[JoinRequest]):
    required_scope = Scope.READ
    serializer_class = JoinSerializer
    filter_backends = ()
    queryset = JoinRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="tenant_joins_list",
        summary="Who asks to join and waits for an answer, newest first",
        responses=JoinSerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        rows = JoinRequest.objects.filter(tenant=_team_that_waits(request, tenant), state=JoinRequest.State.PENDING)
        page = self.paginate_queryset(rows.select_related("tenant", "user")) or []
        return self.get_paginated_response(JoinSerializer(page, many=True).data)


class TeamJoin(APIView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="tenant_joins_answer",
        summary="Let somebody in, or say why not",
        request=JoinAnswerSerializer,
        responses=JoinSerializer,
    )
    def post(self, request: Request, tenant: str, pk: int) -> Response:
        _team(request, tenant)
        typed = _typed(JoinAnswerSerializer, request)
        return Response(JoinSerializer(members.answer_join(tenant, pk, by=actor(request), **typed)).data)


# ---- of a person -------------------------------------------------------------------------------------------------


class Joins(generics.GenericAPIView[JoinRequest]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.REQUEST}
    is_personal = True
    serializer_class = JoinSerializer
    filter_backends = ()
    queryset = JoinRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="joins_list",
        summary="Where I asked to join, newest first, with the answer",
        responses=JoinSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = JoinRequest.objects.filter(user=actor(request).person).select_related("tenant", "user")
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response(JoinSerializer(page, many=True).data)

    @extend_schema(
        operation_id="joins_ask",
        summary="Ask to join a team; its owners are told",
        request=NewJoinSerializer,
        responses={201: JoinSerializer},
    )
    def post(self, request: Request) -> Response:
        typed = _typed(NewJoinSerializer, request)
        row = members.ask_to_join(typed["tenant"], message=typed["message"], by=actor(request))
        row.refresh_from_db()
        return Response(JoinSerializer(row).data, status=status.HTTP_201_CREATED)


class JoinDetail(APIView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(operation_id="joins_withdraw", summary="Do not ask any more", request=None, responses={204: None})
    @takes_no_fields
    def delete(self, request: Request, pk: int) -> Response:
        members.withdraw_join(pk, by=actor(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Invitations(generics.GenericAPIView[Invitation]):
    required_scope = Scope.READ
    is_personal = True
    serializer_class = InvitationSerializer
    filter_backends = ()
    queryset = Invitation.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Invitation]:
        rows = joining.own_invitations(actor(self.request)).filter(state=Invitation.State.PENDING)
        return rows.filter(expires_at__gt=timezone.now()).select_related("tenant")

    @extend_schema(
        operation_id="invitations_list",
        summary="Invitations to my address that I can accept, newest first",
        responses=InvitationSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(InvitationSerializer(page, many=True).data)


class InvitationAccept(APIView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="invitations_accept",
        summary="Accept: I am a member then",
        request=None,
        responses=PersonSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        row = members.accept_invitation(pk, by=actor(request))
        row.refresh_from_db()
        return Response(PersonSerializer(row).data)


class InvitationDecline(APIView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(operation_id="invitations_decline", summary="Decline", request=None, responses={204: None})
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        members.decline_invitation(pk, by=actor(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
