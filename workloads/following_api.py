"""/api/v1/workloads/<name>/restart: stop what runs, and start it again as declared when it has ended."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.edge import actor
from accounts.etag import ETAG
from accounts.known_fields import takes_no_fields
from accounts.models import Scope
from workloads import following
from workloads.api import TENANT, WorkloadSerializer, answer, tenant_of


class Restart(APIView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="workloads_restart",
        summary="Stop the run; another one begins as declared when it has ended, at once where nothing runs",
        parameters=[TENANT, ETAG],
        request=None,
        responses={202: WorkloadSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        following.restart(tenant, name, by=by)
        return answer(by, tenant, name, status.HTTP_202_ACCEPTED)
