"""/api/v1/workloads/<name>/runs: start, list, stop, restart, and read the status of a run or wait for it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse
from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.actor import Actor
from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.fast_serializer import row_writer
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.strict.query import text_filter
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.waiting import with_retry_after
from workloads.advice.advice import OVER
from workloads.advice.queries import advice_for_rows
from workloads.core import queries
from workloads.core.constraints import GROUP_LIMIT
from workloads.core.notifications import page_url
from workloads.core.parameters import TeamVerbView, require_team
from workloads.launch import actions
from workloads.models import Run
from workloads.rest.responses import WAIT_PARAMETERS, status_body, waits_for_run, workload_response
from workloads.rest.serializers import RunSerializer, StatusSerializer, WorkloadSerializer
from workloads.runs import queries as run_queries
from workloads.runs import restart
from workloads.runs.concurrency import actions as concurrency_actions
from workloads.runs.queries import RunRow
from workloads.runs.serializers import OneRunSerializer, StartSerializer
from workloads.status.types import Phase

_written, _status_written = row_writer(RunSerializer()), row_writer(StatusSerializer())
LOCATION = OpenApiParameter(
    "Location", str, location=OpenApiParameter.HEADER, response=[201, 202], description="Address of the run."
)


class RunFilter(FilterSet):
    group = text_filter(GROUP_LIMIT, "The group it was started with.")
    outcome = ChoiceFilter(choices=Run.Outcome.choices, help_text="How it ended.")

    class Meta:
        model = Run
        fields = ["group", "outcome"]


class Runs(TeamVerbView, generics.GenericAPIView[Run]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.LAUNCH}
    serializer_class = RunSerializer
    filterset_class = RunFilter
    keyset = ("-number",)
    queryset = Run.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Run]:
        return run_queries.runs_of(queries.visible_workload(self.by, self.tenant, self.kwargs["name"]))

    @extend_schema(
        operation_id="workload_runs_list",
        summary="Runs of a workload, newest first",
        responses=RunSerializer(many=True),
    )
    def get(self, request: Request, name: str) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response([_written(run) for run in page])

    @extend_schema(
        operation_id="workloads_start",
        summary="Start another run; 202: it starts when the previous run of the same group has ended",
        parameters=[IDEMPOTENCY_KEY, LOCATION, ETAG],
        request=StartSerializer,
        responses={201: WorkloadSerializer, 202: WorkloadSerializer},
    )
    @idempotent(require_team)
    def post(self, request: Request, name: str) -> Response:
        by, tenant = self.by, self.tenant
        # Without access it is not found, whatever the body is.
        queries.team(by, tenant)
        asked = StartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        pushed = concurrency_actions.start_in_group(tenant, name, asked.push(), by=by)
        response = workload_response(
            by, tenant, name, status.HTTP_201_CREATED if pushed.has_begun else status.HTTP_202_ACCEPTED
        )
        response["Location"] = _address(request, tenant, name, pushed.number)
        return response


class RunDetail(TeamVerbView):
    required_scope = Scope.READ
    query_of_get = WAIT_PARAMETERS

    @extend_schema(
        operation_id="workload_runs_get",
        summary="One run; with `wait`, when it has reached that state",
        responses=OneRunSerializer,
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        row = run_queries.numbered(queries.visible_workload(self.by, self.tenant, name), number)
        waits = waits_for_run(request)
        return with_retry_after(request, Response(_body(row, self.by)), waits=waits)


class Stop(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="workloads_stop",
        summary="Stop the run and release its units; a second call changes nothing",
        parameters=[ETAG],
        request=None,
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, name: str) -> Response:
        actions.stop(self.tenant, name, by=self.by)
        return workload_response(self.by, self.tenant, name, status.HTTP_202_ACCEPTED)


class Restart(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="workloads_restart",
        summary="Stop the run and start another as declared when it has ended; at once if nothing runs",
        parameters=[ETAG],
        request=None,
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, name: str) -> Response:
        restart.restart(self.tenant, name, by=self.by)
        return workload_response(self.by, self.tenant, name, status.HTTP_202_ACCEPTED)


def _address(request: Request, tenant: str, name: str, number: int) -> str:
    path = reverse("api-workload-run", args=[name, number])
    return request.build_absolute_uri(f"{path}?{urlencode({'team': tenant})}")


def _body(row: RunRow, by: Actor) -> dict[str, Any]:
    workload, tenant = row.workload, row.workload.tenant.slug
    help_ = advice_for_rows(by, [row.of_last]).get(workload.name) if row.of_last else None
    told = status_body(row.status, help_, tenant)
    if row.of_last is None and row.status.phase is Phase.FAILED:
        told["verdict"] = OVER
    return {
        **_written(row.run),
        "workload": workload.name,
        "team": tenant,
        "namespace": workload.namespace.name_in_cluster,
        "url": page_url(workload),
        "status": _status_written(told),
        "followed_by": row.followed_by,
    }
