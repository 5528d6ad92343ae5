"""/api/v1/cluster/observe-only: whether the portal writes to the cluster, and what waits. For operators."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import operator
from accounts.models import Scope
from cluster.observe_only import actions
from cluster.reads import queries as read_queries
from desk.health.observe_only.queries import observe_only_of
from desk.health.observe_only.serializers import ObserveOnlySerializer, SetObserveOnlySerializer


class ObserveOnlyView(APIView):
    """For operators and administrators; 404 for other users."""

    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.ADMIN}

    @extend_schema(
        operation_id="observe_only_get",
        summary="Whether the portal only observes the cluster, what waits, and who else uses devices (operators)",
        responses={200: ObserveOnlySerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        operator(request)
        return _shown()

    @extend_schema(
        operation_id="observe_only_set",
        summary="Begin or end observe-only (operators); idempotent",
        request=SetObserveOnlySerializer,
        responses={200: ObserveOnlySerializer, 404: None},
    )
    def put(self, request: Request) -> Response:
        by = operator(request)
        asked = SetObserveOnlySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        actions.set_observe_only(read_queries.current_cluster(), wanted=asked.validated_data["wanted"], by=by)
        return _shown()


def _shown() -> Response:
    return Response(ObserveOnlySerializer(observe_only_of(read_queries.current_cluster())).data)
