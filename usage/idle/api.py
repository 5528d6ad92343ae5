"""/api/v1/idle-holders: runs that hold units without using them; keep one, and stop one as an operator."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor, operator
from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.strict.query import text_parameter
from portal.core.errors import get_or_refuse
from tenants.core.lookups import team_of_request
from usage.idle import actions, queries
from usage.idle.models import IdleRun
from usage.idle.serializers import IdleHolderSerializer, KeepIdleSerializer, StopIdleSerializer
from workloads.core import queries as core_queries
from workloads.core.parameters import TeamVerbView
from workloads.rest.responses import workload_response
from workloads.rest.serializers import WorkloadSerializer


class IdleHolderList(generics.GenericAPIView[IdleRun]):
    required_scope = Scope.READ
    query = (text_parameter("team", 40, "Slug of a team. Default: all that you may see."),)
    keyset = ("idle_since", "run_id")
    serializer_class = IdleHolderSerializer
    # For the contract alone: what is listed depends on who asks.
    queryset = IdleRun.objects.none()

    @extend_schema(
        operation_id="idle_holders_list",
        summary="Runs whose GPUs are idle, longest idle first; of all teams for staff",
        description="Only runs that are known to be idle now. What is not measured, or is of a shared class, is not in "
        "the list.",
        responses=IdleHolderSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = queries.visible_rows(actor(request))
        if slug := request.query_params.get("team"):
            rows = rows.filter(namespace__tenant=team_of_request(request, slug))
        now = timezone.now()
        found = [queries.holder(row, now) for row in self.paginate_queryset(rows) or ()]
        return self.get_paginated_response(IdleHolderSerializer(found, many=True).data)


class IdleKeep(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="idle_holders_keep",
        summary="Keep a run whose GPUs are idle for some hours, once, with a reason",
        request=KeepIdleSerializer,
        responses=IdleHolderSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        get_or_refuse(core_queries.visible_workloads(self.by, self.tenant), name=name)
        typed = self.body(KeepIdleSerializer)
        row = actions.keep_idle(self.tenant, name, hours=typed["hours"], reason=typed["reason"], by=self.by)
        return self.answer(_holder(queries.visible_rows(self.by).get(pk=row.pk)))


class IdleStop(TeamVerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="idle_holders_stop",
        summary="For operators: stop a run whose GPUs are idle, with a reason",
        parameters=[ETAG],
        request=StopIdleSerializer,
        responses=WorkloadSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        operator(request)
        get_or_refuse(core_queries.visible_workloads(self.by, self.tenant), name=name)
        typed = self.body(StopIdleSerializer)
        actions.stop_idle(self.tenant, name, reason=typed["reason"], by=self.by)
        return workload_response(self.by, self.tenant, name)


def _holder(row: IdleRun) -> Any:
    return IdleHolderSerializer(queries.holder(row, timezone.now()))
