"""/api/v1/team-requests and /api/v1/bundles: how a team begins, by the same verbs as the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.actor import Actor
from accounts.bounds import up_to
from accounts.edge import actor
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.known_query import choice
from accounts.models import Scope
from portal.errors import get_or_refuse, refuse
from tenants import founding, founding_policy, policy
from tenants.api import TenantSerializer
from tenants.decisions import OverPromise
from tenants.models import Bundle, TeamRequest
from tenants.queries import founding as teams

STATES = [str(state) for state in TeamRequest.State]


class BundleLineSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="slug", help_text="Slug of a class.")
    units = serializers.IntegerField()


class BundleSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    summary = serializers.CharField(allow_blank=True)
    days = serializers.IntegerField(help_text="How long its grants last.")
    lines = BundleLineSerializer(many=True)


class TeamRequestSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    slug = serializers.CharField(help_text="As asked for.")
    purpose = serializers.CharField()
    bundle = serializers.CharField(source="bundle.name")
    asked_by = serializers.CharField(source="who")
    asked_at = serializers.DateTimeField()
    state = serializers.ChoiceField(choices=STATES)
    decided_by = serializers.CharField(allow_blank=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    tenant = serializers.CharField(allow_blank=True, help_text="Slug of the team that came of it.")


class NewTeamSerializer(KnownFields):
    name = serializers.CharField(max_length=founding_policy.NAME_MAX)
    slug = serializers.CharField(
        max_length=40, required=False, default="", allow_blank=True, help_text="Default: made of the name."
    )
    purpose = serializers.CharField(max_length=founding_policy.PURPOSE_MAX)
    bundle = serializers.CharField(max_length=60, help_text="Name of a bundle.")


class TeamDecisionSerializer(KnownFields):
    approve = serializers.BooleanField()
    slug = serializers.CharField(
        max_length=40, required=False, default="", allow_blank=True, help_text="Default: as asked."
    )
    units = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=policy.UNITS_MAX),
        required=False,
        default=dict,
        validators=up_to(policy.LINES_MAX),
        help_text="By slug of a class; default: as in the bundle.",
    )
    reason = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=policy.REASON_MAX,
        help_text="Needed for a no, or to give less than the bundle.",
    )
    over_promise = serializers.BooleanField(default=False, help_text="Promise more than there is.")
    over_promise_reason = serializers.CharField(default="", allow_blank=True, max_length=policy.REASON_MAX)


class Bundles(generics.GenericAPIView[Bundle]):
    required_scope = Scope.READ
    serializer_class = BundleSerializer
    filter_backends = ()
    keyset = ("position", "name")
    queryset = Bundle.objects.none()  # for the schema

    @extend_schema(
        operation_id="bundles_list",
        summary="What a new team can begin with",
        responses=BundleSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = teams.bundle_rows(self.paginate_queryset(teams.bundles()) or [])
        return self.get_paginated_response(BundleSerializer(rows, many=True).data)


class TeamRequests(generics.GenericAPIView[TeamRequest]):
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.REQUEST}
    is_personal = True
    query_of_get = (choice("state", STATES, "Of the request."),)
    serializer_class = TeamRequestSerializer
    filter_backends = ()
    queryset = TeamRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="team_requests_list",
        summary="Teams that I asked for (staff: that anybody did), newest first",
        responses=TeamRequestSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        found: QuerySet[TeamRequest] = TeamRequest.objects.visible_to(by)
        if state := request.query_params.get("state", ""):
            if state not in STATES:
                text = f"A request is {', '.join(STATES)}; '{state[:40]}' is none of them."
                raise refuse("unknown_state", text, field="state")
            found = found.filter(state=state)
        rows = teams.team_rows(self.paginate_queryset(found) or [], by=by)
        return self.get_paginated_response(TeamRequestSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="team_requests_ask",
        summary="Ask for a team",
        request=NewTeamSerializer,
        responses={201: TeamRequestSerializer},
    )
    def post(self, request: Request) -> Response:
        asked = NewTeamSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        by = actor(request)
        row = founding.ask_for_team(by=by, **asked.validated_data)
        return Response(_shown(row, by), status=status.HTTP_201_CREATED)


class TeamRequestDecide(APIView):
    required_scope = Scope.DECIDE
    is_personal = True

    @extend_schema(
        operation_id="team_requests_decide",
        summary="Found the team with its bundle, or deny it",
        request=TeamDecisionSerializer,
        responses=TeamRequestSerializer,
    )
    def post(self, request: Request, pk: int) -> Response:
        by = actor(request)
        get_or_refuse(TeamRequest.objects.visible_to(by), pk=pk)
        asked = TeamDecisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        promise = OverPromise(values.pop("over_promise"), values.pop("over_promise_reason"))
        return Response(_shown(founding.decide_team(pk, by=by, over_promise=promise, **values), by))


class TeamRequestWithdraw(APIView):
    required_scope = Scope.REQUEST
    is_personal = True

    @extend_schema(
        operation_id="team_requests_withdraw",
        summary="Ask no longer for a team",
        request=None,
        responses=TeamRequestSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        by = actor(request)
        return Response(_shown(founding.withdraw_team_request(pk, by=by), by))


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
        tenant = founding.try_portal(by=actor(request))
        return Response(TenantSerializer(tenant).data, status=status.HTTP_201_CREATED)


def _shown(row: TeamRequest, by: Actor) -> dict[str, Any]:
    found: dict[str, Any] = TeamRequestSerializer(teams.team_rows([row], by=by)[0]).data
    return found
