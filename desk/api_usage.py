"""/api/v1/tenants/<slug>/usage: what a team used in the last 30 days, as who decides about it sees it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.edge import actor
from accounts.models import Scope
from catalog.models import GpuClass
from desk.queries.facts import TeamUse, cards_per_unit, team_use
from portal.errors import get_or_refuse
from tenants import queries as tenants
from tenants.models import Tenant
from tenants.queries import Figures
from workloads.queries.usage import PERIOD, classes_used


class ClassUsageSerializer(serializers.Serializer[Any]):
    """Units of one class. null: not known, never 0."""

    gpu_class = serializers.CharField(help_text="Slug of a class.")
    held = serializers.IntegerField(help_text="In force now.")
    used = serializers.IntegerField(allow_null=True, help_text="Now.")
    peak = serializers.IntegerField(allow_null=True)
    mean = serializers.FloatField(allow_null=True, help_text="Over the minutes in which the cluster was looked at.")
    seen_share = serializers.FloatField(help_text="Part of the period in which it was, 0 to 1.")
    runs = serializers.IntegerField(help_text="Asked for in the period.")
    runs_waited = serializers.IntegerField(help_text="Of these, given no quota within a minute.")
    median_wait_s = serializers.FloatField(allow_null=True, help_text="From asking to quota, of those that got it.")
    cards_per_unit = serializers.FloatField(allow_null=True, help_text="Physical cards; null: of no card.")


class MemberUsageSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    gpu_hours = serializers.FloatField(help_text="GPU equivalents × hours from start to end, of all classes.")


class UsageSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    classes = ClassUsageSerializer(many=True, help_text="Held now, used in the period or worked with, by slug.")
    members = MemberUsageSerializer(many=True, help_text="Who asked for the work, the most first.")


class TenantUsage(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="tenants_usage", summary="What a team used in the last 30 days", responses=UsageSerializer
    )
    def get(self, request: Request, tenant: str) -> Response:
        found = get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=tenant)
        at = tenants.now()
        classes = list(classes_used(found, since=at - PERIOD, at=at))
        use = team_use(found, classes)
        figures = tenants.figures(found, classes, at=at)
        body = {
            "since": use.since,
            "until": use.at,
            "classes": [_item(one, figures[one.pk], use) for one in classes],
            "members": use.members,
        }
        return Response(UsageSerializer(body).data)


def _item(one: GpuClass, figures: Figures, use: TeamUse) -> dict[str, Any]:
    cards, usage, wait = cards_per_unit(one), use.usage[one.pk], use.waits[one.pk]
    return {
        "gpu_class": one.slug,
        "held": figures.held,
        "used": figures.used,
        "peak": usage.peak,
        "mean": None if usage.mean is None else round(usage.mean, 4),
        "seen_share": round(usage.seen_share, 4),
        "runs": wait.runs,
        "runs_waited": wait.waited,
        "median_wait_s": wait.median_s,
        "cards_per_unit": None if cards is None else round(float(cards), 4),
    }
