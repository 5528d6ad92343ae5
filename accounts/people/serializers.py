"""The calling user and its token, as the API shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.api_tokens.serializers import TokenSerializer
from accounts.models import Role, Scope


class MeSerializer(serializers.Serializer[Any]):
    email = serializers.EmailField()
    name = serializers.CharField()
    roles = serializers.ListField(child=serializers.ChoiceField(choices=Role.values))
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.values))
    teams = serializers.ListField(
        child=serializers.CharField(),
        help_text="Slugs of your own teams. Staff can see all teams: `GET /api/v1/teams`.",
    )
    via = serializers.CharField(help_text="`page`, or `token <prefix>`.")
    token = TokenSerializer(
        allow_null=True,
        help_text="The token of this call; null for a session. `scopes` of the account apply now.",
    )
    confined_to = serializers.CharField(
        allow_blank=True, help_text="The team that the token is limited to; empty for a personal token."
    )
