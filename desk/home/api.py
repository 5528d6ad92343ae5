"""/api/v1/teams/<slug>/live: a team's home as JSON, the same snapshot that page and stream show."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor
from accounts.models import Scope
from cluster.reads import queries as mirror
from desk.home import queries
from desk.home.serializers import LiveSerializer
from workloads.core import queries as core_queries

# The kinds of mirror rows that a team's home reads.
KINDS_SHOWN = ("Job", "Pod", "Workload")


class TeamLive(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="teams_live", summary="Quota, running and queued workloads of a team", responses=LiveSerializer
    )
    def get(self, request: Request, tenant: str) -> Response:
        namespace, _team = core_queries.team(actor(request), tenant)
        # Read first, so that the data is at least as new.
        versions = mirror.kind_versions(namespace.cluster_id, *KINDS_SHOWN)
        return Response(LiveSerializer(queries.home_state(namespace), context={"versions": versions}).data)
