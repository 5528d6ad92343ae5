"""Announcements as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from tenants.announcements import shown
from tenants.announcements.policy import BODY_MAX, NAMED_MAX, TITLE_MAX
from tenants.models import Announcement

STATES = ("later", "now", "ended", "withdrawn")


class ClassMigrationSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(help_text="Slug of a class that is being retired.")
    name = serializers.CharField()
    successor = serializers.CharField(
        allow_blank=True, help_text="Slug of its successor; empty if there is none that you may see."
    )
    advice = serializers.CharField(allow_blank=True, help_text="What its users should do; empty for storage.")


class OwnAnnouncementSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    title = serializers.CharField()
    body = serializers.CharField()
    severity = serializers.ChoiceField(choices=Announcement.Severity.choices)
    starts_at = serializers.DateTimeField(source="period.lower")
    ends_at = serializers.DateTimeField(source="period.upper", help_text="Shown until then.")
    wants_acknowledgement = serializers.BooleanField()
    acknowledged_at = serializers.DateTimeField(
        allow_null=True, help_text="When you acknowledged it. null: your pages show it."
    )
    retiring = serializers.SerializerMethodField(help_text="Its classes that are being retired, with what to do.")
    url = serializers.SerializerMethodField()

    @extend_schema_field(ClassMigrationSerializer(many=True))
    def get_retiring(self, row: Any) -> Any:
        return ClassMigrationSerializer(shown.migrations(row.retiring), many=True).data

    def get_url(self, row: Announcement) -> str:
        return f"{settings.PORTAL_URL}/announcements/{row.pk}"


class AcknowledgementSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="announcement_id", help_text="The announcement.")
    acknowledged_at = serializers.DateTimeField(source="at")


class AnnouncementSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    title = serializers.CharField()
    body = serializers.CharField()
    severity = serializers.ChoiceField(choices=Announcement.Severity.choices)
    audience = serializers.ChoiceField(choices=Announcement.Audience.choices)
    classes = serializers.SerializerMethodField(help_text="Slugs, for `classes`.")
    teams = serializers.SerializerMethodField(help_text="Slugs, for `teams`.")
    starts_at = serializers.DateTimeField(source="period.lower")
    ends_at = serializers.DateTimeField(source="period.upper")
    state = serializers.SerializerMethodField()
    wants_acknowledgement = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.name")
    withdrawn_at = serializers.DateTimeField(allow_null=True)
    url = serializers.SerializerMethodField()

    def get_classes(self, row: Announcement) -> list[str]:
        return sorted(one.slug for one in row.classes.all())

    def get_teams(self, row: Announcement) -> list[str]:
        return sorted(one.slug for one in row.teams.all())

    def get_state(self, row: Announcement) -> str:
        return shown.state_of(row, at=timezone.now())

    def get_url(self, row: Announcement) -> str:
        return f"{settings.PORTAL_URL}/announcements/{row.pk}"


class AnnouncementDetailSerializer(AnnouncementSerializer):
    people = serializers.IntegerField(help_text="People in the audience now.")
    acknowledged = serializers.IntegerField(help_text="How many of them acknowledged it.")


class NewAnnouncementSerializer(StrictSerializer):
    title = serializers.CharField(max_length=TITLE_MAX)
    body = serializers.CharField(max_length=BODY_MAX, help_text="Several paragraphs are possible.")
    severity = serializers.ChoiceField(choices=Announcement.Severity.choices, default=Announcement.Severity.INFORMATION)
    audience = serializers.ChoiceField(choices=Announcement.Audience.choices)
    classes = serializers.ListField(
        child=serializers.CharField(max_length=60),
        max_length=NAMED_MAX,
        required=False,
        default=list,
        help_text="Slugs, for `classes`: their users.",
    )
    teams = serializers.ListField(
        child=serializers.CharField(max_length=40),
        max_length=NAMED_MAX,
        required=False,
        default=list,
        help_text="Slugs, for `teams`.",
    )
    starts_at = serializers.DateTimeField(required=False, help_text="Default: now.")
    ends_at = serializers.DateTimeField(help_text="Pages show it until then.")
    wants_acknowledgement = serializers.BooleanField(default=False, help_text="Each person can hide it.")


class ChangeAnnouncementSerializer(StrictSerializer):
    ends_at = serializers.DateTimeField(help_text="Pages show it until then.")
