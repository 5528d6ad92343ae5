"""/api/v1/workloads/{name}/extend and /keep: extend the time limit of a run, and keep an idle notebook."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length, documented_range
from catalog.classes.validation.run_limits import RUN_HOURS_MOST
from portal.core.errors import get_or_refuse
from workloads.core import queries
from workloads.core.parameters import TeamVerbView, require_team
from workloads.lifetime.idle import actions as idle_actions
from workloads.lifetime.idle.policy import KEEP_HOURS_MOST, REASON_LIMIT
from workloads.lifetime.run_time import actions as run_time_actions
from workloads.rest.responses import workload_response
from workloads.rest.serializers import WorkloadSerializer


class ExtendSerializer(StrictSerializer):
    hours = serializers.IntegerField(
        validators=documented_range(1, RUN_HOURS_MOST),
        help_text="Hours to add, within the class's limit from its start.",
    )


class KeepSerializer(StrictSerializer):
    hours = serializers.IntegerField(validators=documented_range(1, KEEP_HOURS_MOST), help_text="Hours from now.")
    reason = serializers.CharField(
        allow_blank=True, validators=documented_length(REASON_LIMIT), help_text="Why the idle notebook is kept."
    )


class Extend(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="workloads_extend",
        summary="Extend the time limit of a run",
        parameters=[IDEMPOTENCY_KEY, ETAG],
        request=ExtendSerializer,
        responses=WorkloadSerializer,
    )
    @idempotent(require_team)
    def post(self, request: Request, name: str) -> Response:
        _require_workload(self, name)
        typed = self.body(ExtendSerializer)
        run_time_actions.extend(self.tenant, name, hours=typed["hours"], by=self.by)
        return workload_response(self.by, self.tenant, name)


class Keep(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="workloads_keep",
        summary="Keep an idle notebook for some hours, with a reason",
        parameters=[ETAG],
        request=KeepSerializer,
        responses=WorkloadSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        _require_workload(self, name)
        typed = self.body(KeepSerializer)
        idle_actions.keep_notebook(self.tenant, name, hours=typed["hours"], reason=typed["reason"], by=self.by)
        return workload_response(self.by, self.tenant, name)


def _require_workload(view: TeamVerbView, name: str) -> None:
    """A caller who may not see it gets 404, whatever the body."""
    get_or_refuse(queries.visible_workloads(view.by, view.tenant), name=name)
