"""Tokens as the API shows and takes them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.models import Scope
from accounts.rest.strict.serializers import StrictSerializer


class TokenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The visible part after `gpt_`.")
    team = serializers.CharField(
        source="tenant", allow_blank=True, help_text="Team to which the token is limited; empty for a personal token."
    )
    owner = serializers.EmailField(source="user.email", help_text="The account that the token acts as.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.values))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="Accurate to the minute; null if never used.")


class CreatedTokenSerializer(TokenSerializer):
    token = serializers.CharField(help_text="The token. Shown in this response only.")


class NewTokenSerializer(StrictSerializer):
    name = serializers.CharField(max_length=60)
    scopes = serializers.ListField(child=serializers.CharField(max_length=10), min_length=1, max_length=len(Scope))
    expires_in_days = serializers.IntegerField(min_value=1, max_value=365, default=90)
