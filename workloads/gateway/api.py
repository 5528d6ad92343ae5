"""/api/v1/workloads/{name}/visibility: who can open a notebook."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.strict.serializers import StrictSerializer
from portal.core.errors import get_or_refuse
from workloads.core import queries
from workloads.core.parameters import TeamVerbView
from workloads.gateway import actions
from workloads.launch.serializers import VISIBILITIES
from workloads.rest.responses import workload_response
from workloads.rest.serializers import WorkloadSerializer


class VisibilitySerializer(StrictSerializer):
    visibility = serializers.ChoiceField(choices=VISIBILITIES)


class Visibility(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="workloads_visibility",
        summary="Choose who can open a notebook that you launched",
        parameters=[ETAG],
        request=VisibilitySerializer,
        responses=WorkloadSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        # A caller who may not see it gets 404, whatever the body.
        get_or_refuse(queries.visible_workloads(self.by, self.tenant), name=name)
        typed = self.body(VisibilitySerializer)
        actions.set_visibility(self.tenant, name, typed["visibility"], by=self.by)
        return workload_response(self.by, self.tenant, name)
