"""Members, invitations and join requests as REST takes and shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.people.policy import ADDRESS_MAX
from accounts.rest.etag import etag_of
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import DocumentedChoiceField, documented_length
from tenants.members import policy as member_policy
from tenants.members.models import Membership

ROLES = ", ".join(member_policy.MEMBER_ROLES)


class PersonSerializer(serializers.Serializer[Any]):
    """A member; `id` is the person's, as in the address of PATCH and DELETE."""

    id = serializers.IntegerField(source="user_id")
    email = serializers.CharField(source="user.email")
    name = serializers.CharField(source="user.name")
    role = serializers.CharField(help_text=ROLES)
    since = serializers.DateTimeField()


class InvitationSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    team = serializers.CharField(source="tenant.slug")
    email = serializers.CharField()
    role = serializers.CharField(help_text=ROLES)
    state = serializers.CharField(help_text="pending, accepted, declined or revoked")
    expires_at = serializers.DateTimeField()


class JoinSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    team = serializers.CharField(source="tenant.slug")
    email = serializers.CharField(source="user.email")
    name = serializers.CharField(source="user.name")
    message = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text="pending, accepted, declined or withdrawn")
    asked_at = serializers.DateTimeField()
    reason = serializers.CharField(allow_blank=True, help_text="Reason if declined.")


class NewMemberSerializer(StrictSerializer):
    email = serializers.CharField(validators=documented_length(ADDRESS_MAX))
    role = DocumentedChoiceField(choices=member_policy.MEMBER_ROLES, default=member_policy.MEMBER)


class RoleSerializer(StrictSerializer):
    role = DocumentedChoiceField(choices=member_policy.MEMBER_ROLES)


class SharingSerializer(StrictSerializer):
    shares_notebooks = serializers.BooleanField(
        help_text="Whether every member who may launch can open a notebook that is launched without `visibility`. "
        "Existing notebooks do not change."
    )


class JoinAnswerSerializer(StrictSerializer):
    accept = serializers.BooleanField()
    role = DocumentedChoiceField(choices=member_policy.MEMBER_ROLES, default=member_policy.MEMBER)
    reason = serializers.CharField(
        default="",
        allow_blank=True,
        validators=documented_length(member_policy.MESSAGE_MAX),
        help_text="Required to decline.",
    )


class NewJoinSerializer(StrictSerializer):
    team = serializers.CharField(max_length=40, help_text="Slug of a team.")
    message = serializers.CharField(
        default="", allow_blank=True, validators=documented_length(member_policy.MESSAGE_MAX)
    )


def member_etag(row: Membership) -> str:
    return etag_of(row.pk, row.role)
