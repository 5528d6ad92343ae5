"""/api/v1/maintenances: maintenance of nodes, for operators; 404 for all other users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.actor import Actor
from accounts.core.request_actor import operator
from accounts.models import Scope
from accounts.rest.strict.query import choice_parameter
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from cluster.reads.queries import current_cluster
from desk.maintenance.preview import preview
from desk.maintenance.serializers import (
    MaintenanceDetailSerializer,
    MaintenancePreviewSerializer,
    MaintenanceSerializer,
    NewMaintenanceSerializer,
)
from operations.maintenance import actions
from operations.models import Maintenance
from portal.core.errors import get_or_refuse, refuse


class Maintenances(VerbView, generics.GenericAPIView[Maintenance]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    query = (choice_parameter("open", ("true", "false"), "Only those that have not ended, or only those that have."),)
    serializer_class = MaintenanceSerializer
    queryset = Maintenance.objects.none()  # for the schema

    @extend_schema(
        operation_id="maintenances_list",
        summary="For operators: maintenance of nodes, newest first, with the step of each node",
        responses={200: MaintenanceSerializer(many=True), 404: None},
    )
    def get(self, request: Request) -> Response:
        operator(request)
        rows = Maintenance.objects.prefetch_related("nodes").select_related("created_by")
        if is_open := request.query_params.get("open"):
            if is_open not in ("true", "false"):
                raise refuse("invalid", "open is true or false.", field="open")
            rows = rows.filter(ended_at__isnull=is_open == "true")
        return self.get_paginated_response(MaintenanceSerializer(self.paginate_queryset(rows), many=True).data)

    @extend_schema(
        operation_id="maintenances_plan",
        summary="For operators: plan a maintenance; everybody who runs on the nodes is told",
        request=NewMaintenanceSerializer,
        responses={201: MaintenanceDetailSerializer, 404: None},
    )
    def post(self, request: Request) -> Response:
        by = operator(request)
        nodes, values = _typed(self)
        row = actions.plan_maintenance(current_cluster(), nodes, **values, by=by)
        return self.created(_detail(row.pk))


class MaintenancePreview(VerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="maintenances_preview",
        summary="For operators: what such a maintenance would affect, or why it is refused; nothing is planned",
        request=NewMaintenanceSerializer,
        responses={200: MaintenancePreviewSerializer, 404: None},
    )
    def post(self, request: Request) -> Response:
        by, cluster = operator(request), current_cluster()
        nodes, values = _typed(self)
        row = actions.plan_maintenance(cluster, nodes, **values, by=by, is_dry_run=True)
        return self.answer(MaintenancePreviewSerializer(preview(cluster, row, nodes)))


class MaintenanceDetail(VerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="maintenances_get",
        summary="For operators: one maintenance, with whom it affects now and who was told",
        responses=MaintenanceDetailSerializer,
    )
    def get(self, request: Request, pk: int) -> Response:
        operator(request)
        return self.answer(_detail(pk))


class _Control(VerbView):
    required_scope = Scope.ADMIN
    act: Callable[..., Maintenance]

    def _do(self, request: Request, pk: int) -> Response:
        by: Actor = operator(request)
        type(self).act(pk, by=by)
        return self.answer(_detail(pk))


class MaintenanceConfirm(_Control):
    act = staticmethod(actions.confirm_maintenance)

    @extend_schema(
        operation_id="maintenances_confirm",
        summary="For operators: the work by hand is done; the nodes are verified and opened",
        request=None,
        responses=MaintenanceDetailSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return self._do(request, pk)


class MaintenanceCancel(_Control):
    act = staticmethod(actions.cancel_maintenance)

    @extend_schema(
        operation_id="maintenances_cancel",
        summary="For operators: cancel; changed nodes get their configuration of before, and are verified and opened",
        request=None,
        responses=MaintenanceDetailSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return self._do(request, pk)


class MaintenanceRelease(_Control):
    act = staticmethod(actions.release_maintenance)

    @extend_schema(
        operation_id="maintenances_release",
        summary="For operators: open the nodes as they are, without verification",
        request=None,
        responses=MaintenanceDetailSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return self._do(request, pk)


def _typed(view: VerbView) -> tuple[list[str], dict[str, Any]]:
    """The nodes, and the other fields as keywords of the action."""
    values = {"holds_from": timezone.now()} | view.body(NewMaintenanceSerializer)
    return values.pop("nodes"), values


def _detail(pk: int) -> MaintenanceDetailSerializer:
    rows = Maintenance.objects.select_related("created_by", "cluster").prefetch_related("nodes")
    row: Any = get_or_refuse(rows, pk=pk)
    row.told = row.notices.select_related("run__workload__tenant").order_by("told_at", "pk")
    is_open = row.ended_at is None
    row.affected = preview(row.cluster, row, [node.name for node in row.nodes.all()]) if is_open else None
    return MaintenanceDetailSerializer(row)
