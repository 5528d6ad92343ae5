"""A namespace's lifecycle, and what closing it deletes, as REST takes and shows them."""

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
    since = serializers.DateTimeField(help_text="When it was requested.")


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
    """What closing deletes."""

    running = WorkSerializer(many=True, source="inside.running")
    waiting = WorkSerializer(many=True, source="inside.waiting")
    volumes = VolumeSerializer(many=True, source="inside.volumes")
    queue = serializers.CharField(allow_blank=True)
    grants = EndingGrantSerializer(many=True)
    pending = WaitingLineSerializer(many=True, help_text="After that, these can only be denied or withdrawn.")


class BlockerSerializer(serializers.Serializer[Any]):
    said = serializers.CharField(help_text="What blocks the deletion.")
    do = serializers.CharField(help_text="What to do.")
    raw = serializers.CharField(help_text="The message of the API server.")


class StuckSerializer(serializers.Serializer[Any]):
    """It was deleted in the cluster and still exists."""

    since = serializers.DateTimeField()
    blockers = BlockerSerializer(many=True)
    objects = serializers.ListField(child=serializers.CharField())


class LifeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.CharField(help_text="active, suspended, closing (can be resumed) or closed")
    because = serializers.CharField(allow_blank=True)
    closes_at = serializers.DateTimeField(allow_null=True, help_text="Running workloads continue until then.")
    volumes_until = serializers.DateTimeField(allow_null=True, help_text="Volumes are kept until then.")
    gone_at = serializers.DateTimeField(
        allow_null=True, help_text="All its objects in the cluster were deleted by then."
    )
    stuck = StuckSerializer(allow_null=True)
    goes = GoesSerializer(allow_null=True, help_text="Only for users who can close the team, else null.")


class WantedLifeSerializer(StrictSerializer):
    wanted = DocumentedChoiceField(choices=lifecycle_policy.NAMESPACE_STATES)
    because = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=core_policy.REASON_MAX,
        help_text="Shown to the owners and managers of the team.",
    )
    grace_hours = serializers.IntegerField(
        default=GRACE_HOURS,
        validators=documented_range(0, GRACE_HOURS_MAX),
        help_text="For closing: hours that running workloads continue.",
    )
    keep_days = serializers.IntegerField(
        default=KEEP_DAYS,
        validators=documented_range(0, KEEP_DAYS_MAX),
        help_text="For closing: days that volumes are kept after that.",
    )
