"""Requests for a team as REST takes and shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length
from tenants.core import policy as core_policy
from tenants.models import TeamRequest
from tenants.onboarding.team_requests import policy as team_request_policy
from tenants.requests import policy as request_policy

TEAM_REQUEST_STATES = [str(state) for state in TeamRequest.State]


class TeamRequestSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    slug = serializers.CharField(help_text="The requested short name.")
    purpose = serializers.CharField()
    bundle = serializers.CharField(source="bundle.name")
    asked_by = serializers.CharField(source="who")
    asked_at = serializers.DateTimeField()
    state = serializers.ChoiceField(choices=TEAM_REQUEST_STATES)
    decided_by = serializers.CharField(allow_blank=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    team = serializers.CharField(source="tenant", allow_blank=True, help_text="Slug of the created team.")


class NewTeamSerializer(StrictSerializer):
    name = serializers.CharField(max_length=team_request_policy.NAME_MAX)
    slug = serializers.CharField(
        max_length=40, required=False, default="", allow_blank=True, help_text="Default: derived from the name."
    )
    purpose = serializers.CharField(max_length=team_request_policy.PURPOSE_MAX)
    bundle = serializers.CharField(max_length=60, help_text="Name of a bundle.")


class TeamDecisionSerializer(StrictSerializer):
    approve = serializers.BooleanField()
    slug = serializers.CharField(
        max_length=40, required=False, default="", allow_blank=True, help_text="Default: as requested."
    )
    units = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=request_policy.UNITS_MAX),
        required=False,
        default=dict,
        validators=documented_length(request_policy.LINES_MAX),
        help_text="Units by class slug; default: as in the bundle.",
    )
    reason = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=core_policy.REASON_MAX,
        help_text="Required to deny, or to approve less than the bundle.",
    )
    over_promise = serializers.BooleanField(default=False, help_text="Overcommit: exceed the allocation limit.")
    over_promise_reason = serializers.CharField(default="", allow_blank=True, max_length=core_policy.REASON_MAX)
