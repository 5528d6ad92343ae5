"""/api/v1/workloads: declare, launch, delete, and read its status or wait for it. Its runs: workloads/runs/api.py."""

from __future__ import annotations

from functools import partial

from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.actor import Actor
from accounts.models import Scope
from accounts.rest.etag import ETAG, IF_MATCH, IF_NONE_MATCH, if_match
from accounts.rest.filters import is_filtered
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.paging import KeysetPagination
from accounts.rest.strict.query import text_filter
from accounts.rest.strict.serializers import StrictSerializer, takes_no_fields
from accounts.rest.waiting import with_retry_after
from portal.core.errors import Refused
from workloads.advice.queries import advice_for_rows
from workloads.core import queries, workload_sql
from workloads.core.parameters import TeamVerbView, require_team
from workloads.launch import actions
from workloads.launch.serializers import LaunchSerializer, WantedSerializer
from workloads.models import Workload
from workloads.pages import queries as page_queries
from workloads.rest.responses import (
    WAIT_PARAMETERS,
    waits_for_run,
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
        254, "Email address of the user who launched it.", field_name="created_by__email", lookup_expr="iexact"
    )

    class Meta:
        model = Workload
        fields = ["kind", "gpu_class", "created_by"]


class Workloads(TeamVerbView, generics.GenericAPIView[Workload]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.LAUNCH}
    serializer_class = WorkloadSerializer
    filterset_class = WorkloadFilter
    queryset = Workload.objects.none()  # for the schema

    def _page(self) -> list[Workload]:
        if is_filtered(self.request, self):
            asked = self.request.query_params
            page_queries.check_filter(self.by, self.tenant, asked.get("gpu_class", ""), asked.get("created_by", ""))
            found = self.filter_queryset(queries.visible_workloads(self.by, self.tenant).only("pk"))
            return workload_sql.workloads_by_id([one.pk for one in self.paginate_queryset(found) or ()])
        assert isinstance(self.paginator, KeysetPagination)
        newest = partial(queries.newest_workloads, self.by, self.tenant)
        page = self.paginator.paginate_read(Workload, newest, self.request)
        if not page:
            queries.team(self.by, self.tenant)  # 404 for a team that the caller may not see
        return page

    @extend_schema(
        operation_id="workloads_list",
        summary="Workloads of a team, newest first",
        responses=WorkloadSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = status_queries.workload_rows(self._page())
        helps = advice_for_rows(self.by, rows)
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
        sent = LaunchSerializer(data=request.data)
        _check(self, sent)
        workload = actions.launch(self.tenant, sent.wanted(), by=self.by)
        return workload_response(self.by, self.tenant, workload.name, status.HTTP_201_CREATED)


class WorkloadDetail(TeamVerbView):
    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.LAUNCH, "DELETE": Scope.LAUNCH}
    query_of_get = WAIT_PARAMETERS

    @extend_schema(
        operation_id="workloads_get",
        summary="One workload; with `wait`, after it has reached the state",
        parameters=[ETAG],
        responses=WorkloadSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        waits = waits_for_run(request)
        return with_retry_after(request, workload_response(self.by, self.tenant, name), waits=waits)

    @extend_schema(
        operation_id="workloads_declare",
        summary="Declare a workload without starting it; repeating the call changes nothing",
        parameters=[IF_MATCH, IF_NONE_MATCH, ETAG],
        request=WantedSerializer,
        responses={200: WorkloadSerializer, 201: WorkloadSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        sent = WantedSerializer(data=request.data)
        _check(self, sent)
        with if_match(request, lambda: _locked_tag(self.by, self.tenant, name)) as created:
            _workload, is_new = actions.declare(self.tenant, sent.wanted(name), by=self.by)
            created(is_new)
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return workload_response(self.by, self.tenant, name, code)

    @extend_schema(
        operation_id="workloads_delete",
        summary="Stop and delete a workload; its volume is kept",
        description="Objects in the cluster are deleted after the response. Then the address returns 404.",
        parameters=[IF_MATCH],
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def delete(self, request: Request, name: str) -> Response:
        with if_match(request, lambda: _locked_tag(self.by, self.tenant, name)):
            workload = actions.delete(self.tenant, name, by=self.by)
        # By its key: the worker may already have removed it from the lists.
        (row,) = status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=workload.pk)))
        return Response(workload_body(row, {}), status=status.HTTP_202_ACCEPTED)


def _check(view: TeamVerbView, sent: StrictSerializer) -> None:
    """A caller who may not see the team gets 404, whatever the body. Raises ValidationError, Refused."""
    tenant = view.tenant
    try:
        sent.is_valid(raise_exception=True)
    except (Refused, serializers.ValidationError):
        queries.team(view.by, tenant)
        raise


def _locked_tag(by: Actor, tenant: str, name: str) -> str | None:
    queries.team(by, tenant)  # 404 for a caller who may not see the team
    rows = queries.visible_workloads(by, tenant).select_related("gpu_class", "volume").select_for_update(of=("self",))
    found = rows.filter(name=name).first()
    return workload_etag(found) if found else None
