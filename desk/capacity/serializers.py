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
    unit = serializers.CharField(help_text="What one unit is: GPU, slice, share or core.")
    is_shared = serializers.BooleanField(help_text="Whether several workloads share a GPU at the same time.")
    weight = serializers.CharField(help_text="GPU equivalents per unit, a decimal number.")
    allocatable = serializers.IntegerField(allow_null=True, help_text="Units on ready nodes, including cordoned nodes.")
    promised = serializers.IntegerField(help_text="Units allocated to teams by grants in force now.")
    used = serializers.IntegerField(allow_null=True, help_text="Units of unfinished pods on nodes.")
    queued = serializers.IntegerField(allow_null=True, help_text="Units of queued workloads.")
    borrowed = serializers.IntegerField(allow_null=True, help_text="Units that teams use beyond their quota.")
    free = serializers.IntegerField(allow_null=True, help_text="On ready nodes that are not cordoned.")
    most_on_one_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod can get now.")
    largest_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod can ever get.")
    unhealthy = serializers.IntegerField(
        allow_null=True, help_text="Of ready nodes: in capacity and not in allocatable, or on GPUs with faults."
    )
    cordoned = serializers.IntegerField(allow_null=True, help_text="Units on cordoned nodes.")
    free_cards = serializers.CharField(
        allow_null=True, help_text="Free slices of a MIG class as physical GPUs, a decimal number; null otherwise."
    )
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField(help_text="Whether the data is current.")
    problem = serializers.CharField(allow_blank=True, help_text="Why the figures are outdated or unknown.")


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
        help_text="Weighted sums over the items. Exclusive and shared classes are not added up. Units that two classes "
        "select are counted once."
    )


class ClassLineSerializer(serializers.Serializer[Any]):
    """null: not known, never 0."""

    slug = serializers.CharField()
    name = serializers.CharField()
    unit = serializers.CharField()
    allocatable = serializers.IntegerField(allow_null=True)
    free = serializers.IntegerField(allow_null=True)
    yours = serializers.IntegerField(allow_null=True, help_text="Queued runs of your teams.")
    others = serializers.IntegerField(
        allow_null=True, help_text="Queued runs of other teams; also null if they are few."
    )
    others_text = serializers.CharField(help_text="The number, “a few” or “unknown”.")
    median_s = serializers.FloatField(
        allow_null=True, help_text="Median wait of the last 30 days; null if too few runs started."
    )
    hold = serializers.CharField(allow_blank=True, help_text="Why scheduling is paused; empty otherwise.")
    falls = serializers.ListField(
        child=serializers.CharField(),
        help_text="Which nodes report fewer units than quota counts, and when quota is reduced; empty otherwise.",
    )


class BannerSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    until = serializers.DateTimeField(allow_null=True)


class PutBannerSerializer(StrictSerializer):
    text = serializers.CharField(validators=documented_length(TEXT_MAX), help_text="Replaces the current text.")
    until = serializers.DateTimeField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Shown until this time; without it, until it is removed.",
    )


class ClusterSerializer(serializers.Serializer[Any]):
    banner = BannerSerializer(allow_null=True)
    lines = ClassLineSerializer(many=True)
    as_of = serializers.DateTimeField(allow_null=True)
    is_stale = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)
