"""/api/v1/teams/<slug>/usage-report and /api/v1/operators/usage-report: the usage of a month, as JSON and as CSV; for
operators with the capacity that was not allocated.
"""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor, staff
from accounts.models import Scope
from accounts.rest.any_accept import AnyAccept
from accounts.rest.strict.query import text_parameter
from portal.core.csv_text import CONTENT_TYPE
from portal.core.errors import get_or_refuse
from tenants.models import Tenant
from usage.reports.export import capacity_csv, report_csv
from usage.reports.queries import read_report
from usage.reports.serializers import AllUsageReportSerializer, UsageReportSerializer
from usage.reports.types import UsageReport

MONTH = text_parameter("month", 40, "YYYY-MM, in the time zone of the server. Default: the current month.")
FIGURES = (
    "Counts the time in which units were held, from admission to end, and not how busy the GPUs were. Each line is "
    "rounded; totals are sums of the rounded lines."
)
AS_CSV = {(200, "text/csv"): OpenApiTypes.STR, 404: None}


class TeamReport(APIView):
    required_scope = Scope.READ
    query = (MONTH,)

    @extend_schema(
        operation_id="teams_usage_report",
        summary="What the members of a team held in a month, and its cost",
        description=FIGURES,
        responses=UsageReportSerializer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        return Response(UsageReportSerializer(_of_team(request, tenant)).data)


class TeamReportCsv(APIView):
    required_scope = Scope.READ
    content_negotiation_class = AnyAccept
    query = (MONTH,)

    @extend_schema(
        operation_id="teams_usage_report_csv",
        summary="The lines of the team's usage report as CSV",
        description=FIGURES,
        responses=AS_CSV,
    )
    def get(self, request: Request, tenant: str) -> HttpResponse:
        return HttpResponse(report_csv(_of_team(request, tenant)), content_type=CONTENT_TYPE)


class AllReport(APIView):
    required_scope = Scope.READ
    query = (MONTH,)

    @extend_schema(
        operation_id="operators_usage_report",
        summary="For operators and auditors: what all teams held in a month, what was not allocated, and the cost",
        description=FIGURES,
        responses={200: AllUsageReportSerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        return Response(AllUsageReportSerializer(_of_all(request)).data)


class AllReportCsv(APIView):
    required_scope = Scope.READ
    content_negotiation_class = AnyAccept
    query = (MONTH,)

    @extend_schema(
        operation_id="operators_usage_report_csv",
        summary="For operators and auditors: the lines of the usage report of all teams as CSV",
        description=FIGURES,
        responses=AS_CSV,
    )
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(report_csv(_of_all(request)), content_type=CONTENT_TYPE)


class CapacityCsv(APIView):
    required_scope = Scope.READ
    content_negotiation_class = AnyAccept
    query = (MONTH,)

    @extend_schema(
        operation_id="operators_usage_report_capacity_csv",
        summary="For operators and auditors: capacity, allocated and unallocated by class as CSV",
        description=FIGURES,
        responses=AS_CSV,
    )
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(capacity_csv(_of_all(request)), content_type=CONTENT_TYPE)


def _of_team(request: Request, slug: str) -> UsageReport:
    found = get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=slug)
    return read_report(found, request.query_params.get("month"))


def _of_all(request: Request) -> UsageReport:
    staff(request)
    return read_report(None, request.query_params.get("month"))
