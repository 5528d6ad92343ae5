"""/api/v1/workloads/{name}/extend and /keep: more time for a run, and an idle notebook that stays."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.actor import Actor
from accounts.bounds import up_to, within
from accounts.edge import actor
from accounts.etag import ETAG
from accounts.idempotency import IDEMPOTENCY_KEY, once
from accounts.known_fields import KnownFields
from accounts.models import Scope
from catalog.run_limits import RUN_HOURS_MOST
from portal.errors import get_or_refuse
from workloads import idle, queries, run_time
from workloads.api import TENANT, WorkloadSerializer, answer, check_team, tenant_of
from workloads.idle_policy import KEEP_HOURS_MOST, REASON_LIMIT


class ExtendSerializer(KnownFields):
    hours = serializers.IntegerField(
        validators=within(1, RUN_HOURS_MOST), help_text="Added to its end, within the class's limit from its start."
    )


class KeepSerializer(KnownFields):
    hours = serializers.IntegerField(validators=within(1, KEEP_HOURS_MOST), help_text="From now.")
    reason = serializers.CharField(allow_blank=True, validators=up_to(REASON_LIMIT), help_text="For those who wait.")


class Extend(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT,)

    @extend_schema(
        operation_id="workloads_extend",
        summary="Give a run more time",
        parameters=[IDEMPOTENCY_KEY, ETAG],
        request=ExtendSerializer,
        responses=WorkloadSerializer,
    )
    @once(check_team)
    def post(self, request: Request, name: str) -> Response:
        by, tenant = _asker(request, name)
        said = _said(ExtendSerializer, request)
        run_time.extend(tenant, name, hours=said["hours"], by=by)
        return answer(by, tenant, name)


class Keep(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT,)

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
        idle.keep(tenant, name, hours=said["hours"], reason=said["reason"], by=by)
        return answer(by, tenant, name)


def _asker(request: Request, name: str) -> tuple[Actor, str]:
    """Who may not see it gets 404, whatever the body says."""
    by = actor(request)
    tenant = tenant_of(request, by)
    get_or_refuse(queries.of_tenant(by, tenant), name=name)
    return by, tenant


def _said(serializer: type[KnownFields], request: Request) -> dict[str, Any]:
    asked = serializer(data=request.data)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)
