"""/api/v1/gpu-faults: faults of GPUs, open ones and those of the last months."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.query import choice_parameter, text_parameter
from portal.core.errors import refuse
from tenants.core.lookups import team_of_request
from usage.faults import queries
from usage.faults.models import GpuFault
from usage.faults.serializers import GpuFaultSerializer


class GpuFaultList(generics.GenericAPIView[GpuFault]):
    required_scope = Scope.READ
    query = (
        text_parameter("team", 40, "Slug of a team: faults of its runs. Default: all that you may see."),
        choice_parameter("open", ("true", "false"), "Only those that are not over, or only those that are."),
    )
    serializer_class = GpuFaultSerializer
    # For the contract alone: what is listed depends on who asks.
    queryset = GpuFault.objects.none()

    @extend_schema(
        operation_id="gpu_faults_list",
        summary="Faults of GPUs, newest first: of all GPUs for staff, of those of your teams' runs for others",
        description="As dcgm-exporter reports them to Prometheus; kept for 90 days. Without metrics nothing is known.",
        responses=GpuFaultSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = queries.visible_faults(actor(request))
        if slug := request.query_params.get("team"):
            rows = queries.of_team(rows, team_of_request(request, slug))
        if is_open := request.query_params.get("open"):
            if is_open not in ("true", "false"):
                raise refuse("invalid", "open is true or false.", field="open")
            rows = rows.filter(cleared_at__isnull=is_open == "true")
        now = timezone.now()
        found = [queries.with_runs(row, now) for row in self.paginate_queryset(rows) or ()]
        return self.get_paginated_response(GpuFaultSerializer(found, many=True).data)
