"""/api/v1/nodes/<name>/measurements: what operators measured of the interconnect of a node."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import operator
from accounts.models import Scope
from catalog.interconnect.actions import record_measurement
from catalog.interconnect.queries import measurements
from catalog.models import NodeMeasurement
from cluster.reads import queries as read_queries
from desk.nodes.serializers import (
    NodeMeasurementSerializer,
    RecordedMeasurementsSerializer,
    RecordMeasurementSerializer,
)
from portal.core.errors import NOT_FOUND, Refused


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
