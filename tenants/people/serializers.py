"""Accounts as REST takes and shows them to administrators."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.account_setup import actions as account_setup_actions
from accounts.models import Role
from accounts.people import policy as people_policy
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length


class AccountSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    email = serializers.EmailField()
    name = serializers.CharField()
    roles = serializers.ListField(child=serializers.ChoiceField(choices=Role.values))
    suspended = serializers.BooleanField(source="is_suspended")
    joined_at = serializers.DateTimeField()
    signed_in_at = serializers.DateTimeField(
        source="last_login", allow_null=True, help_text="Last sign-in; null if never."
    )
    has_password = serializers.BooleanField(help_text="Whether a password was set in the portal.")
    has_second_factor = serializers.BooleanField()
    approver_for_all = serializers.BooleanField(source="decides_all", help_text="All current and future classes.")
    approver_for = serializers.ListField(
        source="slugs",
        child=serializers.CharField(),
        help_text="Slugs of classes. In effect only with the role approver.",
    )


class TeamOfSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="slug")
    role = serializers.CharField()
    is_only_owner = serializers.BooleanField(help_text="No other active account owns the team.")


class AccountDetailSerializer(AccountSerializer):
    teams = TeamOfSerializer(many=True)


class NewAccountSerializer(StrictSerializer):
    email = serializers.CharField(validators=documented_length(people_policy.ADDRESS_MAX))
    name = serializers.CharField(validators=documented_length(people_policy.NAME_MAX))


class PasswordCodeSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    email = serializers.EmailField()
    password_code = serializers.CharField(
        help_text=f"Shown once. Works once, within {account_setup_actions.CODE_DAYS} days."
    )


class BecauseSerializer(StrictSerializer):
    because = serializers.CharField(validators=documented_length(people_policy.REASON_MAX))


class AccountChangeSerializer(StrictSerializer):
    """Fields that are left out are not changed."""

    roles = serializers.ListField(
        child=serializers.CharField(max_length=10),
        max_length=len(Role),
        required=False,
        help_text="The complete list of roles.",
    )
    suspended = serializers.BooleanField(required=False)
    because = serializers.CharField(
        max_length=people_policy.REASON_MAX, default="", allow_blank=True, help_text="Required to suspend."
    )
