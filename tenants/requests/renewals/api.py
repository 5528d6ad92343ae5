"""Renewing a grant by REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.etag import ETAG
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import get_or_refuse
from tenants.models import Tenant
from tenants.requests import queries as request_queries
from tenants.requests.renewals import actions as renewal_actions
from tenants.requests.serializers import RequestSerializer, request_etag
from tenants.requests.usage_evidence import MeasureUsage


class GrantRenew(VerbView):
    required_scope = Scope.REQUEST
    measure: MeasureUsage | None = None

    @extend_schema(
        operation_id="teams_grant_renew",
        summary="Request the renewal of a base grant from its end, for the same duration",
        parameters=[ETAG],
        request=None,
        responses={201: RequestSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, tenant: str, pk: int) -> Response:
        by = self.by
        get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
        filed = renewal_actions.renew_grant(tenant, pk, by=by, measure=self.measure)
        body = RequestSerializer(request_queries.request_rows([filed], by=by)[0]).data
        return Response(body, status=status.HTTP_201_CREATED, headers={"ETag": request_etag(filed)})
