"""/api/v1/operators/nodes: the nodes with their devices. /api/v1/nodes/<name>/measurements: what operators measured of
the interconnect of a node. For operators; 404 for all other users.
"""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from accounts.core.request_actor import operator
from accounts.models import Scope
from accounts.rest.paging import PAGING, next_link, parse_limit
from accounts.rest.strict.query import choice_parameter, text_parameter
from catalog.interconnect.actions import record_measurement, withdraw_measurement
from catalog.interconnect.queries import measurements
from catalog.models import NodeMeasurement
from cluster.reads import queries as read_queries
from desk.nodes import queries
from desk.nodes.serializers import (
    NodeListSerializer,
    NodeMeasurementSerializer,
    RecordedMeasurementsSerializer,
    RecordMeasurementSerializer,
    WithdrawMeasurementSerializer,
)
from portal.core.errors import NOT_FOUND, Refused, refuse
from usage.faults.shown import reading_sentence

STATES = tuple(filter(None, queries.FILTERS))


class Nodes(APIView):
    required_scope = Scope.READ
    query = (
        text_parameter("q", 100, "A part of its name or of a label."),
        choice_parameter("state", STATES, "Only nodes in this state; `changing`: its MIG layout."),
        *PAGING,
    )

    @extend_schema(
        operation_id="operators_nodes_get",
        summary="For operators: nodes by name, with devices, use, cordons and open faults",
        responses={200: NodeListSerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        operator(request)
        asked = request.query_params
        state = asked.get("state", "")
        if state and state not in STATES:
            raise refuse("invalid", f"state must be one of {', '.join(STATES)}.", field="state")
        found = queries.node_list(
            read_queries.current_cluster(),
            q=asked.get("q", ""),
            state=state,
            cursor=asked.get("cursor"),
            limit=parse_limit(asked.get("limit")),
        )
        address = request.build_absolute_uri()
        following = replace_query_param(address, "cursor", found.next_cursor) if found.next_cursor else None
        shown = {
            "items": found.lines,
            "next": following,
            "faults": reading_sentence(found.reading),
            "as_of": found.as_of.at,
            "is_current": found.as_of.is_current,
            "problem": found.as_of.problem,
        }
        return Response(NodeListSerializer(shown).data, headers=next_link(following))


class NodeMeasurements(generics.GenericAPIView[NodeMeasurement]):
    """For operators and administrators; 404 for other users."""

    required_scope = Scope.READ
    required_scopes = {"POST": Scope.ADMIN}
    serializer_class = NodeMeasurementSerializer
    filter_backends = ()
    keyset = ("-measured_on", "-id")
    queryset = NodeMeasurement.objects.none()  # for the schema

    @extend_schema(
        operation_id="node_measurements_list",
        summary="For operators: what was measured of the interconnect of a node, the latest first",
        responses={200: NodeMeasurementSerializer(many=True), 404: None},
    )
    def get(self, request: Request, name: str) -> Response:
        operator(request)
        cluster = read_queries.current_cluster()
        rows = measurements(cluster, name)
        # Also of a node that is gone.
        if read_queries.node_named(cluster.pk, name) is None and not rows.exists():
            raise Refused(NOT_FOUND)
        found = self.paginate_queryset(rows) or []
        return self.get_paginated_response(NodeMeasurementSerializer(found, many=True).data)

    @extend_schema(
        operation_id="node_measurements_record",
        summary="For operators: record an output of nvidia-smi topo -m or all_reduce_perf",
        description="One output may contain both. It is recorded with the product and driver that the node has now.",
        request=RecordMeasurementSerializer,
        responses={201: RecordedMeasurementsSerializer, 404: None},
    )
    def post(self, request: Request, name: str) -> Response:
        by = operator(request)
        asked = RecordMeasurementSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = record_measurement(read_queries.current_cluster(), name, **asked.validated_data, by=by)
        return Response(RecordedMeasurementsSerializer({"items": made}).data, status=status.HTTP_201_CREATED)


class NodeMeasurementWithdrawal(APIView):
    """For operators and administrators; 404 for other users."""

    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="node_measurements_withdraw",
        summary="For operators: withdraw a measurement; the one before it counts again",
        description="The row stays, with the reason. To withdraw it again changes nothing.",
        request=WithdrawMeasurementSerializer,
        responses={200: NodeMeasurementSerializer, 404: None},
    )
    def post(self, request: Request, name: str, pk: int) -> Response:
        by = operator(request)
        asked = WithdrawMeasurementSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = withdraw_measurement(read_queries.current_cluster(), name, pk, **asked.validated_data, by=by)
        return Response(NodeMeasurementSerializer(row).data)
