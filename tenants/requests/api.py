"""/api/v1/requests: the same actions and the same answers as the pages."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.etag import ETAG, IF_MATCH, if_match
from accounts.rest.idempotency import IDEMPOTENCY_KEY, idempotent
from accounts.rest.strict.query import choice_parameter, text_parameter
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from accounts.rest.waiting import wait_parameter, wants_to_wait, with_retry_after
from accounts.schema.responses import LOCATION
from portal.core.errors import get_or_refuse, refuse
from tenants.models import QuotaLine, QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests import queries as request_queries
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.queries import classes_of_request
from tenants.requests.reclaims import actions as reclaim_actions
from tenants.requests.serializers import (
    STATES,
    DecisionSerializer,
    NewRequestSerializer,
    RequestSerializer,
    line_decision,
    reclaim_line,
    request_etag,
    requested_line,
)
from tenants.requests.usage_evidence import MeasureUsage


def _check_team(request: Request) -> None:
    """Checked first, so that a user outside the team learns nothing about the rest of the body."""
    slug = dict(request.data).get("team")
    if isinstance(slug, str):
        get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=slug)


class Requests(VerbView, generics.GenericAPIView[QuotaRequest]):
    # The measurements that a rule can use; the URL configuration passes them in.
    measure: MeasureUsage | None = None
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.REQUEST}
    query_of_get = (
        text_parameter("team", 40, "Slug of a team."),
        choice_parameter("state", STATES, "State of the request."),
    )
    serializer_class = RequestSerializer
    filter_backends = ()
    queryset = QuotaRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="requests_list",
        summary="List requests of my teams (staff: all), newest first",
        responses=RequestSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        asked = request.query_params
        state = asked.get("state", "")
        if state and state not in STATES:
            raise refuse(
                "unknown_state", f"There is no state '{state[:40]}'. Choose one of {', '.join(STATES)}.", field="state"
            )
        team = request_queries.team_of_requests(by, asked["team"]).slug if "team" in asked else ""
        found = request_queries.requests_for(by, tenant=team, state=state)
        rows = request_queries.request_rows(self.paginate_queryset(found) or [], by=by)
        return self.get_paginated_response(RequestSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="requests_file",
        summary="Request quota: new totals and temporary increases; for staff, reduce quota",
        parameters=[IDEMPOTENCY_KEY, LOCATION, ETAG],
        request=NewRequestSerializer,
        responses={201: RequestSerializer},
    )
    @idempotent(_check_team)
    def post(self, request: Request) -> Response:
        _check_team(request)
        typed = self.body(NewRequestSerializer)
        by = self.by
        team, lines, why = typed["team"], typed["lines"], typed["justification"]
        if lines[0]["kind"] == QuotaLine.Kind.RECLAIM:
            filed = reclaim_actions.file_reclaim(
                team, lines=[reclaim_line(line) for line in lines], justification=why, by=by
            )
        else:
            asked_lines = [requested_line(line) for line in lines]
            filed = actions.file_request(team, lines=asked_lines, justification=why, by=by, measure=self.measure)
        address = request.build_absolute_uri(reverse("api-request", args=[filed.pk]))
        headers = {"Location": address, "ETag": request_etag(filed)}
        return Response(_shown(filed, by), status=status.HTTP_201_CREATED, headers=headers)


class RequestDetail(APIView):
    required_scope = Scope.READ
    query_of_get = (wait_parameter("no line is pending"),)

    @extend_schema(
        operation_id="requests_get",
        summary="Get a request with its lines; with `wait`, when all of them are decided or withdrawn",
        parameters=[ETAG],
        responses=RequestSerializer,
    )
    def get(self, request: Request, pk: int) -> Response:
        by = actor(request)
        found = get_or_refuse(QuotaRequest.objects.visible_to(by), pk=pk)
        return with_retry_after(request, _answer(found, by), waits=wants_to_wait(request))


class RequestDecide(VerbView):
    required_scope = Scope.DECIDE
    # The measurements that a decision records with the facts of this app; the URL configuration passes them in.
    measure: MeasureUsage | None = None

    @extend_schema(
        operation_id="requests_decide",
        summary="Approve or deny lines of a request, all of them or none",
        parameters=[IF_MATCH, ETAG],
        request=DecisionSerializer,
        responses=RequestSerializer,
    )
    def post(self, request: Request, pk: int) -> Response:
        by = self.by
        found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
        typed = self.body(DecisionSerializer)
        decisions = self._decisions(found, typed["lines"])
        over_promise = OverPromise(typed["over_promise"], typed["over_promise_reason"])
        with if_match(request, lambda: _locked_tag(found)):
            decided = decision_actions.decide_request(pk, decisions, by=by, over_promise=over_promise)
        return _answer(decided, by)

    def _decisions(self, found: QuotaRequest, lines: list[dict[str, Any]]) -> list[Decision]:
        measured = self.measure(found.tenant, classes_of_request(found)).plain if self.measure else {}
        class_ids = dict(found.lines.values_list("pk", "gpu_class_id"))
        return [line_decision(line, measured.get(class_ids.get(line["id"], 0), {})) for line in lines]


class RequestWithdraw(VerbView):
    required_scope = Scope.REQUEST

    @extend_schema(
        operation_id="requests_withdraw",
        summary="Withdraw all pending lines of a request",
        parameters=[ETAG],
        request=None,
        responses=RequestSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return _answer(actions.withdraw_request(pk, by=self.by), self.by)


def _shown(found: QuotaRequest, by: Actor) -> dict[str, Any]:
    shown_request: dict[str, Any] = RequestSerializer(request_queries.request_rows([found], by=by)[0]).data
    return shown_request


def _answer(found: QuotaRequest, by: Actor) -> Response:
    return Response(_shown(found, by), headers={"ETag": request_etag(found)})


def _locked_tag(found: QuotaRequest) -> str:
    decision_actions.lock_classes(found.tenant, found.lines.values("gpu_class"))
    return request_etag(found)
