"""/api/v1/workloads/<name>/priority: who goes first of what waits, changed by operators."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.bounds import SaidChoiceField, up_to
from accounts.edge import actor
from accounts.etag import ETAG
from accounts.known_fields import KnownFields
from accounts.models import Scope
from cluster.run_spec import PRIORITIES
from workloads import priority, queries
from workloads.api import TENANT, WorkloadSerializer, answer, tenant_of
from workloads.job_policy import BECAUSE_LIMIT


class PrioritySerializer(KnownFields):
    priority = SaidChoiceField(choices=PRIORITIES)
    because = serializers.CharField(validators=up_to(BECAUSE_LIMIT), help_text="Who asked for the run reads it.")


class Priority(APIView):
    required_scope = Scope.ADMIN
    query = (TENANT,)

    @extend_schema(
        operation_id="workloads_priority",
        summary="Change the priority of a run that waits (operators); a worker carries it out",
        parameters=[ETAG],
        request=PrioritySerializer,
        responses={202: WorkloadSerializer},
    )
    def post(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        queries.team(by, tenant)
        asked = PrioritySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        to, because = asked.validated_data["priority"], asked.validated_data["because"]
        priority.set_priority(tenant, name, to, because=because, by=by)
        return answer(by, tenant, name, status.HTTP_202_ACCEPTED)
