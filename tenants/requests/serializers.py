"""Requests for quota and their lines as REST takes and shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from accounts.rest.etag import etag_of
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_range
from tenants.core import policy as core_policy
from tenants.models import QuotaLine, QuotaRequest
from tenants.requests import policy as request_policy
from tenants.requests.decisions.policy import GRACE_HOURS_MAX
from tenants.requests.decisions.types import Decision
from tenants.requests.types import ReclaimLine, RequestedLine

STATES = [str(state) for state in QuotaLine.State]

KINDS_HELP = "base: new total. boost: temporary increase on top of it. reclaim: staff reduce the total, with notice."


class LineSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    gpu_class = serializers.CharField(source="slug", help_text="Slug of a class.")
    kind = serializers.ChoiceField(choices=QuotaLine.Kind.values, help_text=KINDS_HELP)
    state = serializers.ChoiceField(choices=STATES)
    asked_units = serializers.IntegerField()
    asked_from = serializers.DateTimeField()
    asked_until = serializers.DateTimeField()
    decided_units = serializers.IntegerField(allow_null=True)
    decided_from = serializers.DateTimeField(allow_null=True)
    decided_until = serializers.DateTimeField(allow_null=True)
    decided_grace_hours = serializers.IntegerField(
        allow_null=True, help_text="Hours that running workloads continue after the end."
    )
    decided_at = serializers.DateTimeField(allow_null=True)
    decided_by = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    notice_days = serializers.IntegerField(
        allow_null=True, help_text="For reclaim: days between the notice and the reduction."
    )


class RequestSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    team = serializers.CharField(source="tenant.slug")
    state = serializers.ChoiceField(choices=STATES, help_text="Derived from the lines.")
    filed_by = serializers.CharField()
    filed_at = serializers.DateTimeField()
    overdue_since = serializers.DateTimeField(allow_null=True, help_text="Since when the decision is overdue.")
    justification = serializers.CharField()
    lines = LineSerializer(many=True)


class NewLineSerializer(StrictSerializer):
    gpu_class = serializers.CharField(max_length=40, help_text="Slug of a class.")
    units = serializers.IntegerField(min_value=0, max_value=request_policy.UNITS_MAX)
    kind = serializers.ChoiceField(choices=QuotaLine.Kind.values, default=QuotaLine.Kind.BASE)
    starts_at = serializers.DateTimeField(required=False, help_text="Default: now.")
    ends_at = serializers.DateTimeField(
        required=False, help_text="Required, except for reclaim, which ends with the grant that it reduces."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_reclaim = attrs["kind"] == QuotaLine.Kind.RECLAIM
        if is_reclaim and "ends_at" in attrs:
            raise serializers.ValidationError(
                {"ends_at": "Leave it out for reclaim, which ends with the grant that it reduces."}
            )
        if not is_reclaim and "ends_at" not in attrs:
            raise serializers.ValidationError({"ends_at": ErrorDetail("This field is required.", code="required")})
        return attrs


class NewRequestSerializer(StrictSerializer):
    team = serializers.CharField(max_length=40, help_text="Slug of a team.")
    justification = serializers.CharField(max_length=request_policy.JUSTIFICATION_MAX)
    lines = serializers.ListField(child=NewLineSerializer(), min_length=1, max_length=request_policy.LINES_MAX)

    def validate_lines(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len({line["kind"] == QuotaLine.Kind.RECLAIM for line in lines}) > 1:
            raise serializers.ValidationError("Send lines of the kind reclaim in a separate request.")
        return lines


class DecisionLineSerializer(StrictSerializer):
    id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    approve = serializers.BooleanField()
    units = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=request_policy.UNITS_MAX,
        help_text="Default: as requested; the same for the dates.",
    )
    starts_at = serializers.DateTimeField(required=False)
    ends_at = serializers.DateTimeField(required=False)
    grace_hours = serializers.IntegerField(
        required=False,
        validators=documented_range(0, GRACE_HOURS_MAX),
        help_text="Hours that running workloads continue after the end. Default: 24; unchanged for reclaim.",
    )
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=core_policy.REASON_MAX, help_text="Required to deny."
    )


class DecisionSerializer(StrictSerializer):
    lines = serializers.ListField(child=DecisionLineSerializer(), min_length=1, max_length=request_policy.LINES_MAX)
    over_promise = serializers.BooleanField(default=False, help_text="Overcommit: exceed the allocation limit.")
    over_promise_reason = serializers.CharField(default="", allow_blank=True, max_length=core_policy.REASON_MAX)


def requested_line(line: dict[str, Any]) -> RequestedLine:
    return RequestedLine(
        gpu_class=line["gpu_class"],
        units=line["units"],
        starts=line.get("starts_at") or timezone.now(),
        ends=line["ends_at"],
        kind=line["kind"],
    )


def reclaim_line(line: dict[str, Any]) -> ReclaimLine:
    return ReclaimLine(line["gpu_class"], line["units"], line.get("starts_at") or timezone.now())


def line_decision(line: dict[str, Any], measured: Mapping[str, Any]) -> Decision:
    return Decision(
        line_id=line["id"],
        approve=line["approve"],
        units=line.get("units"),
        starts=line.get("starts_at"),
        ends=line.get("ends_at"),
        reason=line["reason"],
        grace_hours=line.get("grace_hours"),
        measured=measured,
    )


def request_etag(found: QuotaRequest) -> str:
    """Built from the fields that a decision sets: a decided line does not change any more."""
    return etag_of(*found.lines.order_by("pk").values_list("pk", "state"))
