"""/api/v1/inbox: pending requests of an approver, sorted as on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.actor import ALL_SCOPES
from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.query import choice_parameter, text_parameter
from catalog.models import GpuClass
from desk.inbox import queries
from desk.inbox.evidence import TeamUsage, cards_per_unit, plain_activity, team_usage
from desk.inbox.queries import InboxFilter
from desk.inbox.serializers import GROUPS, FactsSerializer, InboxSerializer, UsageSerializer
from portal.core.errors import get_or_refuse, refuse, refuse_if
from tenants.approvers import policy as approver_policy
from tenants.approvers import queries as approver_queries
from tenants.core import queries as core_queries
from tenants.members import queries as member_queries
from tenants.models import Plan, QuotaRequest, Tenant
from tenants.requests import queries as request_queries
from tenants.requests.decisions import policy as decision_policy
from tenants.requests.decisions import queries as decision_queries
from tenants.requests.decisions.queries import ClassFigures
from tenants.requests.serializers import RequestSerializer
from usage.samples.queries import PERIOD, classes_used


class Inbox(generics.GenericAPIView[QuotaRequest]):
    required_scope = Scope.READ
    query = (
        text_parameter("team", 40, "Slug of a team."),
        text_parameter("gpu_class", 60, "Slug of a class."),
        choice_parameter("group", GROUPS, "A group of the inbox."),
    )
    serializer_class = InboxSerializer
    filter_backends = ()
    keyset = ("id",)
    queryset = QuotaRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="inbox_list",
        summary="Pending requests that I decide: oldest first, with group and reasons",
        description="`group` is computed page by page: with this filter a page may have fewer requests. Follow `next`.",
        responses=InboxSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        mine = approver_queries.rights_of(by)
        refuse_if(approver_policy.may_see_inbox(by, mine))
        asked = request.query_params
        chosen = InboxFilter(asked.get("team", ""), asked.get("gpu_class", ""), asked.get("group", ""))
        if chosen.group and chosen.group not in GROUPS:
            text = f"Unknown group '{chosen.group[:40]}'. Use one of {', '.join(GROUPS)}."
            raise refuse("unknown_group", text, field="group")
        queries.check_filter(by, mine, chosen)
        page = self.paginate_queryset(queries.pending_requests(mine, chosen)) or []
        # The group is computed for the user, whatever this token may do.
        rows = queries.inbox_rows(page, by=replace(by, scopes=ALL_SCOPES), mine=mine)
        return self.get_paginated_response([_shown(row) for row in queries.in_group(rows, chosen.group)])


def _shown(row: queries.InboxRow) -> dict[str, Any]:
    reasons = [*row.triage.reasons, *row.triage.besides]
    return {**RequestSerializer(row.request).data, "group": str(row.triage.group), "reasons": reasons}


class TeamUsageDetail(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="teams_usage", summary="What a team used in the last 30 days", responses=UsageSerializer
    )
    def get(self, request: Request, tenant: str) -> Response:
        found = get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=tenant)
        at = core_queries.database_now()
        classes = list(classes_used(found, since=at - PERIOD, at=at))
        use = team_usage(found, classes)
        figures = decision_queries.class_figures(found, classes, at=at)
        body = {
            "since": use.since,
            "until": use.at,
            "classes": [_item(one, figures[one.pk], use) for one in classes],
            "members": use.members,
        }
        return Response(UsageSerializer(body).data)


class RequestFacts(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="requests_facts",
        summary="What the page of a request shows to approvers: figures of its classes, usage, earlier lines, dry run",
        responses=FactsSerializer,
    )
    def get(self, request: Request, pk: int) -> Response:
        by = actor(request)
        found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
        mine = approver_queries.rights_of(by)
        refuse_if(decision_policy.may_see_facts(mine, member_queries.standing_of(by, found.tenant)))
        classes = request_queries.classes_of_request(found)
        use = team_usage(found.tenant, classes, is_decided=True)
        figures = decision_queries.class_figures(found.tenant, classes, at=core_queries.database_now())
        pending = request_queries.requests_to_decide(mine).filter(pk=pk)
        rows = queries.inbox_rows(pending, by=replace(by, scopes=ALL_SCOPES), mine=mine)
        plan = Plan.objects.filter(request=found).first()
        body = {
            "since": use.since,
            "until": use.at,
            "classes": [{**_item(one, figures[one.pk], use), **_figures(figures[one.pk])} for one in classes],
            "members": use.members,
            "group": str(rows[0].triage.group) if rows else None,
            "reasons": [*rows[0].triage.reasons, *rows[0].triage.besides] if rows else [],
            "earlier": decision_queries.past_lines(found.tenant_id, [one.pk for one in classes], request_id=pk),
            "plan": {"made_at": plan.made_at, "error": plan.error_text, "objects": plan.objects_planned}
            if plan
            else None,
        }
        return Response(FactsSerializer(body).data)


def _figures(figures: ClassFigures) -> dict[str, Any]:
    return {name: getattr(figures, name) for name in ("promised", "limit", "allocatable", "in_use", "free", "as_of")}


def _item(one: GpuClass, figures: ClassFigures, use: TeamUsage) -> dict[str, Any]:
    cards, usage, wait = cards_per_unit(one), use.usage[one.pk], use.waits[one.pk]
    return {
        "gpu_class": one.slug,
        "held": figures.held,
        "used": figures.used,
        "peak": usage.peak,
        "mean": None if usage.mean is None else round(usage.mean, 4),
        "seen_share": round(usage.seen_share, 4),
        "runs": wait.runs,
        "runs_waited": wait.waited,
        "median_wait_s": wait.median_s,
        "cards_per_unit": None if cards is None else round(float(cards), 4),
        **plain_activity(use.activity.get(one.pk)),
        "smaller_total": use.smaller.get(one.pk),
    }
