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
    priorities = serializers.ListField(child=serializers.CharField(), help_text="Of its own team's workloads.")


class InterruptedSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField(allow_null=True, help_text="null: not known.")
    rule = serializers.CharField(allow_blank=True, help_text=RULE_HELP)
    who = serializers.ChoiceField(choices=WHO, allow_null=True, help_text="null: not known, or not the queue.")
    cause = serializers.CharField(allow_blank=True, help_text="If not preempted: pod_removed, evicted, drained, …")
    times = serializers.IntegerField(help_text="Number of interruptions so far.")
    back_at = serializers.DateTimeField(allow_null=True, help_text="When it ran again; null: not yet.")
    sentence = serializers.CharField()


class InterruptionSerializer(serializers.Serializer[Any]):
    """Before: `standing` to `loses`, null or empty while unknown. After: `last`."""

    standing = serializers.CharField(
        allow_null=True, help_text="own, borrowed (one of its units at least), in_grace, no_queue."
    )
    holds_units = serializers.BooleanField(allow_null=True, help_text="false: all of it is about when it starts.")
    borrowed_units = serializers.IntegerField(allow_null=True)
    by = ThreatSerializer(many=True, help_text="What may preempt it, and by which rule.")
    checkpoints = serializers.BooleanField(help_text="Checkpointing is declared: it continues from its checkpoints.")
    sentence = serializers.CharField(allow_blank=True)
    loses = serializers.CharField(help_text="What is lost by an interruption.")
    last = InterruptedSerializer(allow_null=True, help_text="The last one; null: none.")
