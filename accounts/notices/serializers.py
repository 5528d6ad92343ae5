"""Notices and preferences as the API shows and reads them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers

from accounts.events import kinds
from accounts.models import Notice, NoticeChannel, NoticeKind
from accounts.rest.strict.serializers import StrictSerializer

IDS_MAX = 200


class NoticeSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=NoticeKind.choices)
    subject = serializers.CharField()
    url = serializers.SerializerMethodField(help_text="The page that it is about; empty for none.")
    read_at = serializers.DateTimeField(allow_null=True, help_text="null: unread.")
    event = serializers.IntegerField(source="event_id", help_text="The event, as in `GET /api/v1/events`.")

    def get_url(self, notice: Notice) -> str:
        return f"{settings.PORTAL_URL}{notice.link}" if notice.link else ""


class ReadNoticesSerializer(StrictSerializer):
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        max_length=IDS_MAX,
        required=False,
        help_text="Notices to mark as read. Without this field: all.",
    )


class UnreadNoticesSerializer(serializers.Serializer[Any]):
    unread = serializers.IntegerField(help_text="Number of notices that are still unread.")


class NoticePreferenceSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=NoticeKind.choices)
    title = serializers.CharField(source="label")
    channel = serializers.ChoiceField(
        choices=NoticeChannel.choices, help_text="`mail`: notice and email. `page`: notice only. `off`: neither."
    )
    default = serializers.ChoiceField(choices=NoticeChannel.choices)
    may_change = serializers.BooleanField()


class NoticePreferencesSerializer(serializers.Serializer[Any]):
    items = NoticePreferenceSerializer(many=True)


class PutNoticePreferencesSerializer(StrictSerializer):
    """One field for each kind that a person may change."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            str(kind): serializers.ChoiceField(
                choices=NoticeChannel.choices,
                required=False,
                help_text=f"{kind.label}. Default: `{kinds.DEFAULTS[kind]}`.",
            )
            for kind in NoticeKind
            if kind not in kinds.FIXED
        }
