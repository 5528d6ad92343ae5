"""/api/v1/workloads: declare, launch, delete, and read its status or wait for it. Its runs: workloads/runs/api.py."""

from __future__ import annotations

from functools import partial

from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.etag import ETAG, IF_MATCH, if_match
from accounts.rest.filters import is_filtered
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.paging import KeysetPagination
from accounts.rest.strict.query import text_filter
from accounts.rest.strict.serializers import StrictSerializer, takes_no_fields
from portal.core.errors import Refused
from workloads.advice.queries import advice_for_rows
from workloads.core import queries, workload_sql
from workloads.core.parameters import TENANT_PARAMETER, requested_tenant, require_team
from workloads.launch import actions
from workloads.launch.serializers import LaunchSerializer, WantedSerializer
from workloads.models import Workload
from workloads.rest.responses import (
    WAIT_PARAMETERS,
    wants_to_wait,
    with_retry_after,
    workload_body,
    workload_etag,
    workload_response,
)
from workloads.rest.serializers import WorkloadSerializer
from workloads.status import queries as status_queries


class WorkloadFilter(FilterSet):
    kind = ChoiceFilter(choices=Workload.Kind.choices, help_text="Only notebooks or only jobs.")
    gpu_class = text_filter(60, "Slug of a class.", field_name="gpu_class__slug")
    created_by = text_filter(
        254, "E-mail address of the user who launched it.", field_name="created_by__email", lookup_expr="iexact"
    )

    class Meta:
        model = Workload
        fields = ["kind", "gpu_class", "created_by"]


class Workloads(generics.GenericAPIView[Workload]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.LAUNCH}
    query = (TENANT_PARAMETER,)
    serializer_class = WorkloadSerializer
    filterset_class = WorkloadFilter
    queryset = Workload.objects.none()  # for the schema

    def _page(self, by: Actor, tenant: str) -> list[Workload]:
        if is_filtered(self.request, self):
            found = self.filter_queryset(queries.visible_workloads(by, tenant).only("pk"))
            return workload_sql.workloads_by_id([one.pk for one in self.paginate_queryset(found) or ()])
        assert isinstance(self.paginator, KeysetPagination)
        return self.paginator.paginate_read(Workload, partial(queries.newest_workloads, by, tenant), self.request)

    @extend_schema(
        operation_id="workloads_list",
        summary="Workloads of a team, newest first",
        responses=WorkloadSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        rows = status_queries.workload_rows(self._page(by, requested_tenant(request, by)))
        helps = advice_for_rows(by, rows)
        return self.get_paginated_response([workload_body(row, helps) for row in rows])

    @extend_schema(
        operation_id="workloads_launch",
        summary="Launch: declare a new workload and start its first run",
        parameters=[IDEMPOTENCY_KEY, ETAG],
        request=LaunchSerializer,
        responses={201: WorkloadSerializer},
    )
    @idempotent(require_team)
    def post(self, request: Request) -> Response:
        by = actor(request)
        asked = LaunchSerializer(data=request.data)
        tenant = _checked(asked, request, by)
        workload = actions.launch(tenant, asked.wanted(), by=by)
        return workload_response(by, tenant, workload.name, status.HTTP_201_CREATED)


class WorkloadDetail(APIView):
    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.LAUNCH, "DELETE": Scope.LAUNCH}
    query = (TENANT_PARAMETER,)
    query_of_get = WAIT_PARAMETERS

    @extend_schema(
        operation_id="workloads_get",
        summary="One workload; with `wait`, after it has reached the state",
        parameters=[ETAG],
        responses=WorkloadSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        by = actor(request)
        waits = wants_to_wait(request)
        return with_retry_after(request, workload_response(by, requested_tenant(request, by), name), waits=waits)

    @extend_schema(
        operation_id="workloads_declare",
        summary="Declare a workload without starting it; repeating the call changes nothing",
        parameters=[IF_MATCH, ETAG],
        request=WantedSerializer,
        responses={200: WorkloadSerializer, 201: WorkloadSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        by = actor(request)
        asked = WantedSerializer(data=request.data)
        tenant = _checked(asked, request, by)
        with if_match(request, lambda: _locked_tag(by, tenant, name)):
            _workload, is_new = actions.declare(tenant, asked.wanted(name), by=by)
        return workload_response(by, tenant, name, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @extend_schema(
        operation_id="workloads_delete",
        summary="Stop and delete a workload; its volume is kept",
        description="Objects in the cluster are deleted after the response. Then the address returns 404.",
        parameters=[IF_MATCH],
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def delete(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = requested_tenant(request, by)
        with if_match(request, lambda: _locked_tag(by, tenant, name)):
            workload = actions.delete(tenant, name, by=by)
        # By its key: the worker may already have removed it from the lists.
        (row,) = status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=workload.pk)))
        return Response(workload_body(row, {}), status=status.HTTP_202_ACCEPTED)


def _checked(asked: StrictSerializer, request: Request, by: Actor) -> str:
    """The team's slug, if the body is valid. A caller who may not see the team gets 404, whatever the body."""
    tenant = requested_tenant(request, by)
    try:
        asked.is_valid(raise_exception=True)
    except (Refused, serializers.ValidationError):
        queries.team(by, tenant)
        raise
    return tenant


def _locked_tag(by: Actor, tenant: str, name: str) -> str | None:
    queries.team(by, tenant)  # 404 for a caller who may not see the team
    rows = queries.visible_workloads(by, tenant).select_related("gpu_class", "volume").select_for_update(of=("self",))
    found = rows.filter(name=name).first()
    return workload_etag(found) if found else None
