"""/api/v1/capacity and the banner as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length
from catalog.banner.policy import TEXT_MAX


class FiguresSerializer(serializers.Serializer[Any]):
    """Whole units of the class. null: not known, never 0."""

    slug = serializers.CharField()
    name = serializers.CharField()
    unit = serializers.CharField(help_text="What one unit is: card, slice, share or core.")
    is_shared = serializers.BooleanField(help_text="Whether others are on the same card at the same time.")
    weight = serializers.CharField(help_text="GPU equivalents per unit, a decimal number.")
    allocatable = serializers.IntegerField(allow_null=True, help_text="Units on ready nodes, cordoned ones too.")
    promised = serializers.IntegerField(help_text="Units granted to teams and in force now.")
    used = serializers.IntegerField(allow_null=True, help_text="Units of pods on nodes that are not finished.")
    queued = serializers.IntegerField(allow_null=True, help_text="Units of work that waits in the queue.")
    borrowed = serializers.IntegerField(
        allow_null=True, help_text="Units that teams use beyond what they were granted."
    )
    free = serializers.IntegerField(allow_null=True, help_text="On ready nodes that take new pods.")
    most_on_one_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod could have now.")
    largest_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod can ever have.")
    unhealthy = serializers.IntegerField(allow_null=True, help_text="Units that ready nodes have and do not offer.")
    cordoned = serializers.IntegerField(allow_null=True, help_text="Units on nodes that take no new pods.")
    free_cards = serializers.CharField(
        allow_null=True, help_text="Free slices of a MIG class as physical cards, a decimal number; null otherwise."
    )
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField(help_text="Whether `as_of` is as recent as it should be.")
    problem = serializers.CharField(allow_blank=True, help_text="Why the figures are old or not known.")


class TotalSerializer(serializers.Serializer[Any]):
    """GPU equivalents as decimal numbers. null where a class is not known."""

    allocatable = serializers.CharField(allow_null=True)
    promised = serializers.CharField()
    used = serializers.CharField(allow_null=True)
    queued = serializers.CharField(allow_null=True)
    borrowed = serializers.CharField(allow_null=True)
    free = serializers.CharField(allow_null=True)


class TotalsSerializer(serializers.Serializer[Any]):
    exclusive = TotalSerializer()
    shared = TotalSerializer()


class CapacityOverviewSerializer(serializers.Serializer[Any]):
    items = FiguresSerializer(many=True)
    totals = TotalsSerializer(
        help_text="Weighed sums over the items. A share of a card is no card: the two are never added up. What two "
        "classes select together is counted once."
    )


class ClassLineSerializer(serializers.Serializer[Any]):
    """null: not known, never 0."""

    slug = serializers.CharField()
    name = serializers.CharField()
    unit = serializers.CharField()
    allocatable = serializers.IntegerField(allow_null=True)
    free = serializers.IntegerField(allow_null=True)
    yours = serializers.IntegerField(allow_null=True, help_text="Runs of your teams that wait.")
    others = serializers.IntegerField(
        allow_null=True, help_text="Runs of other teams; null as well where they are few."
    )
    others_text = serializers.CharField(help_text="The number, “a few” or “unknown”.")
    median_s = serializers.FloatField(
        allow_null=True, help_text="Half of the runs of 30 days waited no longer; null where too few started to tell."
    )
    hold = serializers.CharField(allow_blank=True, help_text="What is said of its hold; empty while it is open.")


class BannerSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    until = serializers.DateTimeField(allow_null=True)


class PutBannerSerializer(StrictSerializer):
    text = serializers.CharField(validators=documented_length(TEXT_MAX), help_text="In place of what stands there.")
    until = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Shown until then; without it, until it is taken down."
    )


class ClusterSerializer(serializers.Serializer[Any]):
    banner = BannerSerializer(allow_null=True)
    lines = ClassLineSerializer(many=True)
    as_of = serializers.DateTimeField(allow_null=True)
    is_stale = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)
