"""Maintenances of a run as JSON, and the body of a choice. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from operations.maintenance.choices.policy import CHOICES, OUTCOMES

NOT_CHOSEN = (
    "ends_before: its time limit ends before, or it is being stopped. stays: the portal cannot move it, and the "
    "maintenance waits until it ends."
)


class RunMaintenanceSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    reason = serializers.CharField()
    starts_at = serializers.DateTimeField(help_text="The nodes are drained from then.")
    ends_at = serializers.DateTimeField(help_text="When users expect the nodes back.")
    nodes = serializers.ListField(child=serializers.CharField(), help_text="Those that the run is on.")
    at_drain = serializers.ChoiceField(OUTCOMES, help_text=f"What happens to the run at the drain. {NOT_CHOSEN}")
    is_chosen = serializers.BooleanField(help_text="Whether `at_drain` happens because somebody chose it.")
    choice = serializers.ChoiceField(
        CHOICES,
        allow_blank=True,
        help_text='What was chosen, "" if nobody chose. It counts if the run has not ended by the drain.',
    )
    may_choose = serializers.SerializerMethodField(help_text="Whether you can choose now.")
    message = serializers.CharField(source="what", help_text="What the maintenance does to the run.")

    def get_may_choose(self, found: Any) -> bool:
        return found.refusal is None


class RunMaintenancesSerializer(serializers.Serializer[Any]):
    maintenances = RunMaintenanceSerializer(many=True, help_text="Planned and running ones of its nodes, by start.")
    is_known = serializers.BooleanField(
        help_text="Whether there are current updates of pods; without them the nodes are those that were known last."
    )


class AtDrainSerializer(StrictSerializer):
    at_drain = serializers.ChoiceField(
        CHOICES, help_text="restart: queued again, starts elsewhere. stop: it ends and does not start again."
    )
