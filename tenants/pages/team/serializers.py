"""A team with members, quota and objects, as REST shows it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenants.core.serializers import TeamSerializer


class ObjectSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField()
    result = serializers.CharField(help_text="applied, refused, foreign, drifted or terminating")
    code = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    sent_at = serializers.DateTimeField()


class NamespaceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    wanted = serializers.CharField()
    is_settled = serializers.BooleanField(help_text="Whether all decided changes are applied in the cluster.")
    applied_as_of = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    objects = ObjectSerializer(many=True)


class HoldingSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="slug")
    units = serializers.IntegerField(help_text="Units in force now.")
    until = serializers.DateTimeField(allow_null=True, help_text="Expiry of the base grant.")


class MemberSerializer(serializers.Serializer[Any]):
    email = serializers.CharField(source="user.email")
    name = serializers.CharField(source="user.name")
    role = serializers.CharField()


class TeamDetailSerializer(TeamSerializer):
    shares_notebooks = serializers.BooleanField(
        help_text="Whether every member who may launch can open a notebook that is launched without `visibility`."
    )
    members = MemberSerializer(many=True)
    holdings = HoldingSerializer(many=True)
    namespace = NamespaceSerializer(allow_null=True)
