"""/api/v1/team-requests: the same actions as the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.query import choice_parameter
from accounts.rest.strict.serializers import takes_no_fields
from accounts.rest.verb_view import VerbView
from portal.core.errors import get_or_refuse, refuse
from tenants.models import TeamRequest
from tenants.onboarding.team_requests import actions as team_request_actions
from tenants.onboarding.team_requests import queries as teams
from tenants.onboarding.team_requests.serializers import (
    TEAM_REQUEST_STATES,
    NewTeamSerializer,
    TeamDecisionSerializer,
    TeamRequestSerializer,
)
from tenants.requests.decisions.types import OverPromise


class TeamRequests(VerbView, generics.GenericAPIView[TeamRequest]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.REQUEST}
    is_personal = True
    query_of_get = (choice_parameter("state", TEAM_REQUEST_STATES, "State of the request."),)
    serializer_class = TeamRequestSerializer
    filter_backends = ()
    queryset = TeamRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="team_requests_list",
        summary="List my requests for a team (staff: all), newest first",
        responses=TeamRequestSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        found: QuerySet[TeamRequest] = TeamRequest.objects.visible_to(by)
        if state := request.query_params.get("state", ""):
            if state not in TEAM_REQUEST_STATES:
                text = f"There is no state '{state[:40]}'. Choose one of {', '.join(TEAM_REQUEST_STATES)}."
                raise refuse("unknown_state", text, field="state")
            found = found.filter(state=state)
        rows = teams.team_request_rows(self.paginate_queryset(found) or [], by=by)
        return self.get_paginated_response(TeamRequestSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="team_requests_ask",
        summary="Request a team",
        request=NewTeamSerializer,
        responses={201: TeamRequestSerializer},
    )
    def post(self, request: Request) -> Response:
        typed = self.body(NewTeamSerializer)
        row = team_request_actions.request_team(by=self.by, **typed)
        return Response(_shown(row, self.by), status=status.HTTP_201_CREATED)


class TeamRequestDecide(VerbView):
    required_scope = Scope.DECIDE
    is_personal = True

    @extend_schema(
        operation_id="team_requests_decide",
        summary="Approve a request and create the team with its bundle, or deny it",
        request=TeamDecisionSerializer,
        responses=TeamRequestSerializer,
    )
    def post(self, request: Request, pk: int) -> Response:
        by = self.by
        get_or_refuse(TeamRequest.objects.visible_to(by), pk=pk)
        typed = self.body(TeamDecisionSerializer)
        promise = OverPromise(typed.pop("over_promise"), typed.pop("over_promise_reason"))
        return Response(_shown(team_request_actions.decide_team(pk, by=by, over_promise=promise, **typed), by))


class TeamRequestWithdraw(VerbView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="team_requests_withdraw",
        summary="Withdraw a request for a team",
        request=None,
        responses=TeamRequestSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        return Response(_shown(team_request_actions.withdraw_team_request(pk, by=self.by), self.by))


def _shown(row: TeamRequest, by: Actor) -> dict[str, Any]:
    found: dict[str, Any] = TeamRequestSerializer(teams.team_request_rows([row], by=by)[0]).data
    return found
