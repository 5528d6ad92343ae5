"""Beginning a trial by REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.serializers import takes_no_fields
from tenants.core.serializers import TenantSerializer
from tenants.onboarding.trials import actions as trial_actions


class Trials(APIView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="trials_begin",
        summary="Try the portal: a team of my own with one unit of a starter class for eight hours, once",
        request=None,
        responses={201: TenantSerializer, 404: None},
    )
    @takes_no_fields
    def post(self, request: Request) -> Response:
        tenant = trial_actions.begin_trial(by=actor(request))
        return Response(TenantSerializer(tenant).data, status=status.HTTP_201_CREATED)
