"""/api/v1/workloads/<name>/runs: start, list, look or wait how one of them is doing; and stop, also to begin anew."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse
from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.actor import Actor
from accounts.edge import actor
from accounts.etag import ETAG
from accounts.idempotency import IDEMPOTENCY_KEY, once
from accounts.known_fields import takes_no_fields
from accounts.known_query import text_filter
from accounts.models import Scope
from portal.written import writer
from workloads import actions, following, pushing, queries
from workloads.api import (
    TENANT,
    WAIT,
    RunSerializer,
    StatusSerializer,
    WorkloadSerializer,
    answer,
    check_team,
    check_wait,
    status_of,
    tenant_of,
    unless_waited,
)
from workloads.asked_api import StartSerializer
from workloads.models import GROUP_LIMIT, Run, Workload
from workloads.next_steps import OVER
from workloads.phase import Phase
from workloads.queries import runs
from workloads.queries.helping import advices_for
from workloads.queries.runs import RunRow
from workloads.telling import page_of


class OneRunSerializer(RunSerializer):
    requested_at = serializers.DateTimeField(
        allow_null=True, help_text="null: it begins when the run before it has ended."
    )
    workload = serializers.CharField()
    tenant = serializers.CharField()
    namespace = serializers.CharField()
    url = serializers.URLField(help_text="The page of its workload.")
    status = StatusSerializer(help_text="Of the last run as its workload's; of an earlier one as it ended.")
    followed_by = serializers.IntegerField(
        allow_null=True, help_text="It was interrupted: number of the run that was begun in its place by itself."
    )


_written, _status_written = writer(RunSerializer()), writer(StatusSerializer())
LOCATION = OpenApiParameter(
    "Location", str, location=OpenApiParameter.HEADER, response=[201, 202], description="Address of the run."
)


class RunFilter(FilterSet):
    group = text_filter(GROUP_LIMIT, "As it was started with.")
    outcome = ChoiceFilter(choices=Run.Outcome.choices, help_text="How it ended.")

    class Meta:
        model = Run
        fields = ["group", "outcome"]


class Runs(generics.GenericAPIView[Run]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.LAUNCH}
    query = (TENANT,)
    serializer_class = RunSerializer
    filterset_class = RunFilter
    keyset = ("-number",)
    queryset = Run.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Run]:
        by = actor(self.request)
        return runs.of_workload(_workload(by, tenant_of(self.request, by), self.kwargs["name"]))

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
        summary="Start another run; 202: it begins when the one before it, of the same group, has ended",
        parameters=[IDEMPOTENCY_KEY, LOCATION, ETAG],
        request=StartSerializer,
        responses={201: WorkloadSerializer, 202: WorkloadSerializer},
    )
    @once(check_team)
    def post(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        # To a stranger it is not there, whatever was sent along.
        queries.team(by, tenant)
        asked = StartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        pushed = pushing.start(tenant, name, asked.push(), by=by)
        response = answer(by, tenant, name, status.HTTP_201_CREATED if pushed.has_begun else status.HTTP_202_ACCEPTED)
        response["Location"] = _address(request, tenant, name, pushed.number)
        return response


class RunDetail(APIView):
    required_scope = Scope.READ
    query = (TENANT,)
    query_of_get = WAIT

    @extend_schema(
        operation_id="workload_runs_get",
        summary="One run; with `wait`, when it is so far",
        responses=OneRunSerializer,
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        by = actor(request)
        row = runs.numbered(_workload(by, tenant_of(request, by), name), number)
        waits = check_wait(request)
        return unless_waited(request, Response(_body(row, by)), waits=waits)


class Stop(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT,)

    @extend_schema(
        operation_id="workloads_stop",
        summary="Stop the run and give its units back; asking twice is asking once",
        parameters=[ETAG],
        request=None,
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        actions.stop(tenant, name, by=by)
        return answer(by, tenant, name, status.HTTP_202_ACCEPTED)


class Restart(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT,)

    @extend_schema(
        operation_id="workloads_restart",
        summary="Stop the run; another one begins as declared when it has ended, at once where nothing runs",
        parameters=[ETAG],
        request=None,
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        following.restart(tenant, name, by=by)
        return answer(by, tenant, name, status.HTTP_202_ACCEPTED)


def _address(request: Request, tenant: str, name: str, number: int) -> str:
    path = reverse("api-workload-run", args=[name, number])
    return request.build_absolute_uri(f"{path}?{urlencode({'tenant': tenant})}")


def _workload(by: Actor, tenant: str, name: str) -> Workload:
    return queries.named(by, tenant, name)


def _body(row: RunRow, by: Actor) -> dict[str, Any]:
    workload, tenant = row.workload, row.workload.tenant.slug
    help_ = advices_for(by, [row.of_last]).get(workload.name) if row.of_last else None
    told = status_of(row.status, help_, tenant)
    if row.of_last is None and row.status.phase is Phase.FAILED:
        told["verdict"] = OVER
    return {
        **_written(row.run),
        "workload": workload.name,
        "tenant": tenant,
        "namespace": workload.namespace.name,
        "url": page_of(workload),
        "status": _status_written(told),
        "followed_by": row.followed_by,
    }
