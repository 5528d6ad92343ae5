"""An adoption as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from operations.adoption.actions import loss_text
from operations.adoption.findings import Effect, losses
from operations.models import Adoption


class NewAdoptionSerializer(StrictSerializer):
    namespace = serializers.CharField(max_length=63, help_text="It exists in the cluster.")
    slug = serializers.CharField(max_length=40, help_text="Short name of the new team.")
    name = serializers.CharField(max_length=80)
    owner = serializers.EmailField(help_text="The address of an account. Owners of the team accept the adoption.")
    purpose = serializers.CharField(max_length=300, required=False, allow_blank=True)


class AcceptAdoptionSerializer(StrictSerializer):
    accepted = serializers.ListField(
        child=serializers.CharField(max_length=400), max_length=5000, help_text="`losses`, as they were read."
    )


class AdoptionFindingSerializer(serializers.Serializer[Any]):
    effect = serializers.ChoiceField([(str(one), str(one)) for one in Effect])
    code = serializers.CharField()
    kind = serializers.CharField()
    name = serializers.CharField()
    message = serializers.CharField(source="text")


class AdoptionSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="namespace.tenant.slug")
    namespace = serializers.CharField(source="namespace.name_in_cluster")
    state = serializers.ChoiceField(Adoption.State.choices)
    consent = serializers.CharField(
        allow_blank=True, help_text='The value of the label gpu-portal/adopt of the namespace; "" without it.'
    )
    proposed_by = serializers.CharField(source="proposed_by.name")
    proposed_at = serializers.DateTimeField()
    read_at = serializers.DateTimeField(allow_null=True, help_text="When the namespace was read last.")
    accepted_by = serializers.CharField(source="accepted_by.name", default=None, allow_null=True)
    accepted_at = serializers.DateTimeField(allow_null=True)
    adopted_at = serializers.DateTimeField(allow_null=True)
    undone_at = serializers.DateTimeField(allow_null=True)
    findings = AdoptionFindingSerializer(many=True)
    losses = serializers.SerializerMethodField(help_text="What the owner has to accept.")

    def get_losses(self, row: Adoption) -> list[str]:
        return [loss_text(key) for key in sorted(losses(row.findings))]
