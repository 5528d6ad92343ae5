"""/api/v1/workloads/{name}/extend and /keep: extend the time limit of a run, and keep an idle notebook."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length, documented_range
from catalog.classes.validation.run_limits import RUN_HOURS_MOST
from portal.core.errors import get_or_refuse
from workloads.core import queries
from workloads.core.parameters import TENANT_PARAMETER, requested_tenant, require_team
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


class Extend(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT_PARAMETER,)

    @extend_schema(
        operation_id="workloads_extend",
        summary="Extend the time limit of a run",
        parameters=[IDEMPOTENCY_KEY, ETAG],
        request=ExtendSerializer,
        responses=WorkloadSerializer,
    )
    @idempotent(require_team)
    def post(self, request: Request, name: str) -> Response:
        by, tenant = _asker(request, name)
        said = _said(ExtendSerializer, request)
        run_time_actions.extend(tenant, name, hours=said["hours"], by=by)
        return workload_response(by, tenant, name)


class Keep(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT_PARAMETER,)

    @extend_schema(
        operation_id="workloads_keep",
        summary="Keep an idle notebook for some hours, with a reason",
        parameters=[ETAG],
        request=KeepSerializer,
        responses=WorkloadSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        by, tenant = _asker(request, name)
        said = _said(KeepSerializer, request)
        idle_actions.keep_notebook(tenant, name, hours=said["hours"], reason=said["reason"], by=by)
        return workload_response(by, tenant, name)


def _asker(request: Request, name: str) -> tuple[Actor, str]:
    """A caller who may not see it gets 404, whatever the body."""
    by = actor(request)
    tenant = requested_tenant(request, by)
    get_or_refuse(queries.visible_workloads(by, tenant), name=name)
    return by, tenant


def _said(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    asked = serializer(data=request.data)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)
