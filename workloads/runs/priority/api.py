"""/api/v1/workloads/<name>/priority: operators change the priority of a queued run."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import DocumentedChoiceField, documented_length
from cluster.manifests.run_spec import PRIORITIES
from workloads.core import queries
from workloads.core.parameters import TeamVerbView
from workloads.rest.responses import workload_response
from workloads.rest.serializers import WorkloadSerializer
from workloads.runs.priority import actions as priority_actions
from workloads.runs.priority.policy import BECAUSE_LIMIT


class PrioritySerializer(StrictSerializer):
    priority = DocumentedChoiceField(choices=PRIORITIES)
    because = serializers.CharField(
        validators=documented_length(BECAUSE_LIMIT), help_text="Reason; the person who requested the run reads it."
    )


class Priority(TeamVerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="workloads_priority",
        summary="Change the priority of a queued run (operators); a worker applies it",
        parameters=[ETAG],
        request=PrioritySerializer,
        responses={202: WorkloadSerializer},
    )
    def post(self, request: Request, name: str) -> Response:
        queries.team(self.by, self.tenant)
        typed = self.body(PrioritySerializer)
        priority_actions.set_priority(self.tenant, name, typed["priority"], because=typed["because"], by=self.by)
        return workload_response(self.by, self.tenant, name, status.HTTP_202_ACCEPTED)
