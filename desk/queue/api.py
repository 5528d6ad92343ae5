"""/api/v1/queue: every queued run, for staff."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from accounts.core.request_actor import staff
from accounts.models import Scope
from accounts.rest.paging import PAGING, next_link, parse_limit
from accounts.rest.strict.query import text_parameter
from cluster.reads import queries as read_queries
from desk.queue import queries
from desk.queue.queries import QueuedRun, QueueFilter
from desk.queue.serializers import QueueSerializer
from tenants.class_access import queries as class_access_queries
from tenants.core.lookups import team_of_request


class QueueView(APIView):
    required_scope = Scope.READ
    query = (
        text_parameter("gpu_class", 60, "Slug of a class."),
        text_parameter("team", 40, "Slug of a team."),
        text_parameter("reason", 60, "A code of `status.reason`."),
        *PAGING,
    )

    @extend_schema(
        operation_id="queue_get",
        summary="For operators and auditors: all queued runs, by class and team in Kueue's order",
        description="`reason` filters the whole queue, at most 2,000 runs per response: `next` continues after them. A "
        "page may have fewer runs than `limit`, or none.",
        responses=QueueSerializer,
    )
    def get(self, request: Request) -> Response:
        by, cluster = staff(request), read_queries.current_cluster()
        asked = request.query_params
        chosen = QueueFilter(asked.get("gpu_class", ""), asked.get("team", ""), asked.get("reason", ""))
        if chosen.team:
            team_of_request(request, chosen.team)
        if chosen.gpu_class:
            class_access_queries.class_to_filter(class_access_queries.known_classes(by, cluster), chosen.gpu_class)
        limit = parse_limit(asked.get("limit"))
        found = queries.read_queue(cluster, chosen, cursor=asked.get("cursor"), limit=limit)
        address = request.build_absolute_uri()
        following = replace_query_param(address, "cursor", found.next_cursor) if found.next_cursor else None
        shown = {
            "items": [_item(row) for row in found.rows],
            "next": following,
            "classes": found.lines,
            "as_of": found.as_of.at,
            "is_current": found.as_of.is_current,
            "problem": found.as_of.problem,
        }
        return Response(QueueSerializer(shown).data, headers=next_link(following))


def _item(row: QueuedRun) -> dict[str, Any]:
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
        "needs",
    )
    return {
        **{name: getattr(row, name) for name in same},
        "team": row.team,
        "run": row.number,
        "phase": row.status.phase,
        "reason": row.status.reason,
        "sentence": row.status.sentence,
    }
