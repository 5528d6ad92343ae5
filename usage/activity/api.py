"""What GPUs did: /api/v1/workloads/<name>/activity, /api/v1/teams/<slug>/activity, /api/v1/classes/<slug>/activity and
/api/v1/operators/activity.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor, staff
from accounts.models import Scope
from cluster.reads import queries as read_queries
from portal.core.errors import NOT_FOUND, Refused
from usage.activity.queries import class_activity, cluster_activity, team_activity, workload_activity
from usage.activity.serializers import ClassActivitySerializer, RunActivitySerializer, TeamActivityDaySerializer
from workloads.core import queries
from workloads.core.parameters import TeamVerbView

MEANING = (
    "Read from Prometheus once a minute. What was not measured is missing or null, never 0. Utilisation of a MIG slice "
    "is not measured, and that of a shared GPU is not of one run."
)


class WorkloadActivity(TeamVerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="workloads_activity",
        summary="What the GPUs of the last run did, by the hour",
        description=MEANING,
        responses=RunActivitySerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        found = workload_activity(self.by, queries.visible_workload(self.by, self.tenant, name))
        if found is None:
            raise Refused(NOT_FOUND)
        return Response(RunActivitySerializer(found).data)


class TeamActivity(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="teams_activity",
        summary="What a team held and how much of it was busy, by day and class, of 30 days",
        description=MEANING,
        responses=TeamActivityDaySerializer(many=True),
    )
    def get(self, request: Request, tenant: str) -> Response:
        namespace, _team = queries.team(actor(request), tenant)
        rows: Any = team_activity(namespace)
        return Response(TeamActivityDaySerializer(rows, many=True).data)


class ClassActivityDetail(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="classes_activity",
        summary="What all teams held of a class and how much of it was busy, by day, of 30 days",
        description=MEANING,
        responses=ClassActivitySerializer,
    )
    def get(self, request: Request, slug: str) -> Response:
        return Response(ClassActivitySerializer(class_activity(actor(request), slug)).data)


class ClusterActivity(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="operators_activity",
        summary="For operators and auditors: what nodes provided, what was held and busy, by class and day, of 30 days",
        description=MEANING,
        responses={200: ClassActivitySerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        staff(request)
        rows: Any = cluster_activity(read_queries.current_cluster())
        return Response(ClassActivitySerializer(rows, many=True).data)
