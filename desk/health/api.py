"""/api/v1/operators/health: what the page Health shows, for operators; 404 for all other users."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import operator
from accounts.models import Scope
from accounts.rest.verb_view import VerbView
from cluster.reads.queries import current_cluster
from desk.health.report import take_snapshot
from desk.health.serializers import HealthSerializer


class HealthView(VerbView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="operators_health_get",
        summary="For operators: the state of the installation, each finding with its objects and a remedy",
        responses={200: HealthSerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        operator(request)
        return self.answer(HealthSerializer(take_snapshot(current_cluster(), is_staff=False)))
