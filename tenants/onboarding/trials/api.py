"""Beginning a trial by REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from tenants.core.serializers import TeamSerializer
from tenants.onboarding.trials import actions as trial_actions


class Trials(VerbView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="trials_begin",
        summary="Start a trial: a personal team with one unit of a starter class for eight hours, once per user",
        request=None,
        responses={201: TeamSerializer, 404: None},
    )
    @takes_no_fields
    def post(self, request: Request) -> Response:
        tenant = trial_actions.begin_trial(by=self.by)
        return self.created(TeamSerializer(tenant))
