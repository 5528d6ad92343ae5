"""/api/v1/queue: everything that waits, for staff."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from accounts.edge import actor
from accounts.known_query import text
from accounts.models import Scope
from accounts.paging import PAGING, parse_limit
from catalog import queries as catalog
from desk.queries import queue as queries
from desk.queries.queue import Filter, Waiting


class WaitingSerializer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    workload = serializers.CharField()
    kind = serializers.CharField()
    run = serializers.IntegerField(help_text="The run's number.")
    gpu_class = serializers.CharField()
    units = serializers.IntegerField()
    priority = serializers.IntegerField(help_text="Kueue's; the higher goes first.")
    goes_as = serializers.CharField(help_text="Its priority by name.")
    moving_to = serializers.CharField(
        allow_blank=True, help_text="The priority that operators gave it and that Kueue does not have yet."
    )
    place = serializers.IntegerField(help_text="1 is the first of its team for the class.")
    waits_since = serializers.DateTimeField()
    phase = serializers.CharField()
    reason = serializers.CharField(help_text="A stable code: what blocks it.")
    sentence = serializers.CharField()
    is_suspended = serializers.BooleanField(help_text="Whether its team is.")


class QueueLineSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    runs = serializers.IntegerField()
    units = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True)
    hold = serializers.CharField(allow_blank=True, help_text="What is said of its hold; empty while it is open.")


class QueueSerializer(serializers.Serializer[Any]):
    items = WaitingSerializer(many=True)
    next = serializers.URLField(allow_null=True)
    classes = QueueLineSerializer(many=True, help_text="All that waits for each class, whatever the filters say.")
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)


class QueueView(APIView):
    required_scope = Scope.READ
    query = (
        text("gpu_class", 60, "Slug of a class."),
        text("tenant", 40, "Slug of a team."),
        text("reason", 60, "A code of `status.reason`."),
        *PAGING,
    )

    @extend_schema(
        operation_id="queue_get",
        summary="For operators and auditors: every run that waits, by class and team in Kueue's order",
        description="`reason` is looked for in the whole queue, 2,000 runs at most in one answer: `next` goes on after "
        "them, so that a page may hold fewer runs than `limit`, or none.",
        responses=QueueSerializer,
    )
    def get(self, request: Request) -> Response:
        queries.reader(actor(request))
        asked = request.query_params
        chosen = Filter(asked.get("gpu_class", ""), asked.get("tenant", ""), asked.get("reason", ""))
        limit = parse_limit(asked.get("limit"))
        found = queries.queue(catalog.cluster(), chosen, cursor=asked.get("cursor"), limit=limit)
        address = request.build_absolute_uri()
        shown = {
            "items": [_item(row) for row in found.rows],
            "next": replace_query_param(address, "cursor", found.next_cursor) if found.next_cursor else None,
            "classes": found.lines,
            "as_of": found.as_of.at,
            "is_current": found.as_of.is_current,
            "problem": found.as_of.problem,
        }
        return Response(QueueSerializer(shown).data)


def _item(row: Waiting) -> dict[str, Any]:
    same = (
        "workload",
        "kind",
        "gpu_class",
        "units",
        "priority",
        "place",
        "waits_since",
        "is_suspended",
        "goes_as",
        "moving_to",
    )
    return {
        **{name: getattr(row, name) for name in same},
        "tenant": row.team,
        "run": row.number,
        "phase": row.status.phase,
        "reason": row.status.reason,
        "sentence": row.status.sentence,
    }
