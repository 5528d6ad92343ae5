"""/api/v1/workloads/<name>/priority: operators change the priority of a queued run."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import DocumentedChoiceField, documented_length
from cluster.manifests.run_spec import PRIORITIES
from workloads.core import queries
from workloads.core.parameters import TENANT_PARAMETER, requested_tenant
from workloads.rest.responses import workload_response
from workloads.rest.serializers import WorkloadSerializer
from workloads.runs.priority import actions as priority_actions
from workloads.runs.priority.policy import BECAUSE_LIMIT


class PrioritySerializer(StrictSerializer):
    priority = DocumentedChoiceField(choices=PRIORITIES)
    because = serializers.CharField(
        validators=documented_length(BECAUSE_LIMIT), help_text="Reason; the person who requested the run reads it."
    )


class Priority(APIView):
    required_scope = Scope.ADMIN
    query = (TENANT_PARAMETER,)

    @extend_schema(
        operation_id="workloads_priority",
        summary="Change the priority of a queued run (operators); a worker applies it",
        parameters=[ETAG],
        request=PrioritySerializer,
        responses={202: WorkloadSerializer},
    )
    def post(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = requested_tenant(request, by)
        queries.team(by, tenant)
        asked = PrioritySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        to, because = asked.validated_data["priority"], asked.validated_data["because"]
        priority_actions.set_priority(tenant, name, to, because=because, by=by)
        return workload_response(by, tenant, name, status.HTTP_202_ACCEPTED)
