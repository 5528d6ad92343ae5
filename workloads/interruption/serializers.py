"""How a run may be interrupted, and how it was, as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from workloads.interruption.preemption import Preemptor

RULE_HELP = "Kueue's name: InClusterQueue, InCohortReclamation, …; empty: not known."
WHO = [str(one) for one in Preemptor]


class ThreatSerializer(serializers.Serializer[Any]):
    who = serializers.ChoiceField(choices=WHO)
    rule = serializers.CharField(help_text=RULE_HELP)
    priorities = serializers.ListField(child=serializers.CharField(), help_text="Of its own team's work.")


class InterruptedSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField(allow_null=True, help_text="null: nobody saw it.")
    rule = serializers.CharField(allow_blank=True, help_text=RULE_HELP)
    who = serializers.ChoiceField(choices=WHO, allow_null=True, help_text="null: not known, or not the queue.")
    cause = serializers.CharField(allow_blank=True, help_text="Of an end that was not the queue's: pod_removed, …")
    times = serializers.IntegerField(help_text="So far; the present try is the next one.")
    back_at = serializers.DateTimeField(allow_null=True, help_text="When it was at work again; null: not yet.")
    sentence = serializers.CharField()


class InterruptionSerializer(serializers.Serializer[Any]):
    """Before: `standing` to `loses`, null or empty while nobody knows. After: `last`."""

    standing = serializers.CharField(
        allow_null=True, help_text="own, borrowed (one of its units at least), in_grace, no_queue."
    )
    holds_units = serializers.BooleanField(allow_null=True, help_text="false: what is said is of when it starts.")
    borrowed_units = serializers.IntegerField(allow_null=True)
    by = ThreatSerializer(many=True, help_text="Who may interrupt it, and by which rule.")
    checkpoints = serializers.BooleanField(help_text="It was said that it goes on from its checkpoints.")
    sentence = serializers.CharField(allow_blank=True)
    loses = serializers.CharField(help_text="What an interruption costs.")
    last = InterruptedSerializer(allow_null=True, help_text="The last one; null: none.")
