"""A namespace's lifecycle, and what closing it takes, as REST takes and shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import DocumentedChoiceField, documented_range
from tenants.core import policy as core_policy
from tenants.lifecycle import policy as lifecycle_policy
from tenants.lifecycle.policy import GRACE_HOURS, GRACE_HOURS_MAX, KEEP_DAYS, KEEP_DAYS_MAX


class WorkSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField()
    gpu_class = serializers.CharField()
    units = serializers.IntegerField()
    who = serializers.CharField()
    since = serializers.DateTimeField(help_text="When it was asked for.")


class VolumeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    size_gib = serializers.IntegerField()


class EndingGrantSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    gpu_class = serializers.CharField(source="slug")
    units = serializers.IntegerField()
    starts_at = serializers.DateTimeField(source="starts")
    ends_at = serializers.DateTimeField(source="ends")


class WaitingLineSerializer(serializers.Serializer[Any]):
    request = serializers.IntegerField()
    gpu_class = serializers.CharField(source="name")
    kind = serializers.CharField()
    units = serializers.IntegerField()


class GoesSerializer(serializers.Serializer[Any]):
    """What closing takes."""

    running = WorkSerializer(many=True, source="inside.running")
    waiting = WorkSerializer(many=True, source="inside.waiting")
    volumes = VolumeSerializer(many=True, source="inside.volumes")
    queue = serializers.CharField(allow_blank=True)
    grants = EndingGrantSerializer(many=True)
    pending = WaitingLineSerializer(many=True, help_text="Can only be denied or withdrawn then.")


class BlockerSerializer(serializers.Serializer[Any]):
    said = serializers.CharField(help_text="What blocks it.")
    do = serializers.CharField(help_text="What to do.")
    raw = serializers.CharField(help_text="The API server's own words.")


class StuckSerializer(serializers.Serializer[Any]):
    """It was deleted in the cluster and is still there."""

    since = serializers.DateTimeField()
    blockers = BlockerSerializer(many=True)
    objects = serializers.ListField(child=serializers.CharField())


class LifeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.CharField(help_text="active, suspended, closing (may be resumed) or closed")
    because = serializers.CharField(allow_blank=True)
    closes_at = serializers.DateTimeField(allow_null=True, help_text="What runs goes on until then.")
    volumes_until = serializers.DateTimeField(allow_null=True, help_text="Volumes are kept until then.")
    gone_at = serializers.DateTimeField(allow_null=True, help_text="Nothing of it is in the cluster since then.")
    stuck = StuckSerializer(allow_null=True)
    goes = GoesSerializer(allow_null=True, help_text="For those who may close it; null for everybody else.")


class WantedLifeSerializer(StrictSerializer):
    wanted = DocumentedChoiceField(choices=lifecycle_policy.NAMESPACE_STATES)
    because = serializers.CharField(
        default="", allow_blank=True, max_length=core_policy.REASON_MAX, help_text="Its owners and managers read it."
    )
    grace_hours = serializers.IntegerField(
        default=GRACE_HOURS,
        validators=documented_range(0, GRACE_HOURS_MAX),
        help_text="Of closing: so long what runs goes on.",
    )
    keep_days = serializers.IntegerField(
        default=KEEP_DAYS,
        validators=documented_range(0, KEEP_DAYS_MAX),
        help_text="Of closing: so long volumes are kept after that.",
    )
