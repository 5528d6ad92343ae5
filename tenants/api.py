"""/api/v1/requests and /api/v1/tenants: the same verbs and the same answers as the pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.actor import Actor
from accounts.answers import LOCATION
from accounts.bounds import within
from accounts.edge import actor
from accounts.etag import ETAG, IF_MATCH, if_match, tag
from accounts.idempotency import IDEMPOTENCY_KEY, once
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.known_query import choice, text
from accounts.models import Scope
from portal.errors import get_or_refuse, refuse
from tenants import actions, policy, queries, reclaims, shown
from tenants.decisions import Decision, OverPromise
from tenants.line_policy import GRACE_HOURS_MAX
from tenants.measured import Measure
from tenants.models import Membership, QuotaLine, QuotaRequest, Tenant
from tenants.policy import Asked, Taken
from tenants.queries import requests
from tenants.queries.asks import classes_of

STATES = [str(state) for state in QuotaLine.State]
KINDS = "base: the new total. boost: on top of it. reclaim: staff lower the total, with notice."


class LineSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    gpu_class = serializers.CharField(source="slug", help_text="Slug of a class.")
    kind = serializers.ChoiceField(choices=QuotaLine.Kind.values, help_text=KINDS)
    state = serializers.ChoiceField(choices=STATES)
    asked_units = serializers.IntegerField()
    asked_from = serializers.DateTimeField()
    asked_until = serializers.DateTimeField()
    decided_units = serializers.IntegerField(allow_null=True)
    decided_from = serializers.DateTimeField(allow_null=True)
    decided_until = serializers.DateTimeField(allow_null=True)
    decided_grace_hours = serializers.IntegerField(allow_null=True, help_text="How long what runs at the end goes on.")
    decided_at = serializers.DateTimeField(allow_null=True)
    decided_by = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    notice_days = serializers.IntegerField(
        allow_null=True, help_text="Of a reclaim: how long before the team was told."
    )


class RequestSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    tenant = serializers.CharField(source="tenant.slug")
    state = serializers.ChoiceField(choices=STATES, help_text="Derived from the lines.")
    filed_by = serializers.CharField()
    filed_at = serializers.DateTimeField()
    overdue_since = serializers.DateTimeField(allow_null=True, help_text="Since when it waits too long.")
    justification = serializers.CharField()
    lines = LineSerializer(many=True)


class NewLineSerializer(KnownFields):
    gpu_class = serializers.CharField(max_length=40, help_text="Slug of a class.")
    units = serializers.IntegerField(min_value=0, max_value=policy.UNITS_MAX)
    kind = serializers.ChoiceField(choices=QuotaLine.Kind.values, default=QuotaLine.Kind.BASE)
    starts_at = serializers.DateTimeField(required=False, help_text="Default: now.")
    ends_at = serializers.DateTimeField(
        required=False, help_text="Needed, but not for a reclaim: it lasts as long as the grant that it cuts."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_reclaim = attrs["kind"] == QuotaLine.Kind.RECLAIM
        if is_reclaim and "ends_at" in attrs:
            raise serializers.ValidationError({"ends_at": "A reclaim lasts as long as the grant that it cuts."})
        if not is_reclaim and "ends_at" not in attrs:
            raise serializers.ValidationError({"ends_at": "This field is required."})
        return attrs


class NewRequestSerializer(KnownFields):
    tenant = serializers.CharField(max_length=40, help_text="Slug of a team.")
    justification = serializers.CharField(max_length=policy.JUSTIFICATION_MAX)
    lines = serializers.ListField(child=NewLineSerializer(), min_length=1, max_length=policy.LINES_MAX)

    def validate_lines(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len({line["kind"] == QuotaLine.Kind.RECLAIM for line in lines}) > 1:
            raise serializers.ValidationError("What is taken back stands in a request of its own.")
        return lines


class DecisionLineSerializer(KnownFields):
    id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    approve = serializers.BooleanField()
    units = serializers.IntegerField(
        required=False, min_value=0, max_value=policy.UNITS_MAX, help_text="Default: as asked, as the dates."
    )
    starts_at = serializers.DateTimeField(required=False)
    ends_at = serializers.DateTimeField(required=False)
    grace_hours = serializers.IntegerField(
        required=False,
        validators=within(0, GRACE_HOURS_MAX),
        help_text="How long what runs at the end goes on. Default: 24; a reclaim keeps it.",
    )
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=policy.REASON_MAX, help_text="Needed for a no."
    )


class DecisionSerializer(KnownFields):
    lines = serializers.ListField(child=DecisionLineSerializer(), min_length=1, max_length=policy.LINES_MAX)
    over_promise = serializers.BooleanField(default=False, help_text="Promise more than there is.")
    over_promise_reason = serializers.CharField(default="", allow_blank=True, max_length=policy.REASON_MAX)


class ObjectSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField()
    result = serializers.CharField(help_text="applied, refused, foreign, drifted or terminating")
    code = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    sent_at = serializers.DateTimeField()


class NamespaceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    wanted = serializers.CharField()
    is_settled = serializers.BooleanField(help_text="Whether everything that was decided is in the cluster.")
    applied_as_of = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    objects = ObjectSerializer(many=True)


class HoldingSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="slug")
    units = serializers.IntegerField(help_text="In force now.")
    until = serializers.DateTimeField(allow_null=True, help_text="When the base grant ends.")


class MemberSerializer(serializers.Serializer[Any]):
    email = serializers.CharField(source="user.email")
    name = serializers.CharField(source="user.name")
    role = serializers.CharField()


class TenantSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    purpose = serializers.CharField(allow_blank=True)


class TenantDetailSerializer(TenantSerializer):
    members = MemberSerializer(many=True)
    holdings = HoldingSerializer(many=True)
    namespace = NamespaceSerializer(allow_null=True)


def _check_team(request: Request) -> None:
    """A stranger reads nothing about the rest of the body."""
    slug = dict(request.data).get("tenant")
    if isinstance(slug, str):
        get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=slug)


class Requests(generics.GenericAPIView[QuotaRequest]):
    """`measure`: what a rule may rest on; the URL map hands it in."""

    measure: Measure | None = None
    required_scope = Scope.READ
    required_scopes = {"POST": Scope.REQUEST}
    query_of_get = (text("tenant", 40, "Slug of a team."), choice("state", STATES, "Of the request."))
    serializer_class = RequestSerializer
    filter_backends = ()
    queryset = QuotaRequest.objects.none()  # for the schema

    @extend_schema(
        operation_id="requests_list",
        summary="Requests of my teams (staff: of all), newest first",
        responses=RequestSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        asked = request.query_params
        state = asked.get("state", "")
        if state and state not in STATES:
            raise refuse(
                "unknown_state", f"A request is {', '.join(STATES)}; '{state[:40]}' is none of them.", field="state"
            )
        found = requests.requests_for(by, tenant=asked.get("tenant", ""), state=state)
        rows = requests.request_rows(self.paginate_queryset(found) or [], by=by)
        return self.get_paginated_response(RequestSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="requests_file",
        summary="Ask for quota: new totals and boosts; for staff, take units back",
        parameters=[IDEMPOTENCY_KEY, LOCATION],
        request=NewRequestSerializer,
        responses={201: RequestSerializer},
    )
    @once(_check_team)
    def post(self, request: Request) -> Response:
        _check_team(request)
        asked = NewRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        by = actor(request)
        values = asked.validated_data
        tenant, lines, why = values["tenant"], values["lines"], values["justification"]
        if lines[0]["kind"] == QuotaLine.Kind.RECLAIM:
            filed = reclaims.reclaim(tenant, lines=[_taken(line) for line in lines], justification=why, by=by)
        else:
            asked_lines = [_asked(line) for line in lines]
            filed = actions.file_request(tenant, lines=asked_lines, justification=why, by=by, measure=self.measure)
        address = request.build_absolute_uri(reverse("api-request", args=[filed.pk]))
        return Response(_shown(filed, by), status=status.HTTP_201_CREATED, headers={"Location": address})


class RequestDetail(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="requests_get",
        summary="One request with its lines",
        parameters=[ETAG],
        responses=RequestSerializer,
    )
    def get(self, request: Request, pk: int) -> Response:
        by = actor(request)
        return _answer(get_or_refuse(QuotaRequest.objects.visible_to(by), pk=pk), by)


class RequestDecide(APIView):
    """`measure`: what a decision keeps beside the facts of this app; the URL map hands it in."""

    required_scope = Scope.DECIDE
    measure: Measure | None = None

    @extend_schema(
        operation_id="requests_decide",
        summary="Approve or deny lines, all of those named or none",
        parameters=[IF_MATCH, ETAG],
        request=DecisionSerializer,
        responses=RequestSerializer,
    )
    def post(self, request: Request, pk: int) -> Response:
        by = actor(request)
        found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
        asked = DecisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        decisions = self._decisions(found, values["lines"])
        over_promise = OverPromise(values["over_promise"], values["over_promise_reason"])
        with if_match(request, lambda: _locked_tag(found)):
            decided = actions.decide(pk, decisions, by=by, over_promise=over_promise)
        return _answer(decided, by)

    def _decisions(self, found: QuotaRequest, lines: list[dict[str, Any]]) -> list[Decision]:
        measured = self.measure(found.tenant, classes_of(found)).plain if self.measure else {}
        class_ids = dict(found.lines.values_list("pk", "gpu_class_id"))
        return [_decision(line, measured.get(class_ids.get(line["id"], 0), {})) for line in lines]


class RequestWithdraw(APIView):
    required_scope = Scope.REQUEST

    @extend_schema(
        operation_id="requests_withdraw",
        summary="Take back every line that is still pending",
        request=None,
        responses=RequestSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, pk: int) -> Response:
        by = actor(request)
        return Response(_shown(actions.withdraw(pk, by=by), by))


class Tenants(generics.GenericAPIView[Tenant]):
    required_scope = Scope.READ
    serializer_class = TenantSerializer
    query = (text("q", 80, "Words of the name or the slug."),)
    filter_backends = ()
    keyset = ("slug",)
    queryset = Tenant.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[Tenant]:
        seen = Tenant.objects.visible_to(actor(self.request))
        return queries.named(seen, self.request.query_params.get("q", ""))

    @extend_schema(
        operation_id="tenants_list", summary="My teams (staff: all), by slug", responses=TenantSerializer(many=True)
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(TenantSerializer(page, many=True).data)


class TenantDetail(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="tenants_get",
        summary="One team: members, what it holds, its objects in the cluster",
        responses=TenantDetailSerializer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        found = get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=tenant)
        members = Membership.objects.filter(tenant=found).select_related("user").order_by("since", "pk")
        body = {
            "slug": found.slug,
            "name": found.name,
            "purpose": found.purpose,
            "members": list(members),
            "holdings": queries.holdings(found),
            "namespace": _namespace(found),
        }
        return Response(TenantDetailSerializer(body).data)


def _shown(found: QuotaRequest, by: Actor) -> dict[str, Any]:
    shown_request: dict[str, Any] = RequestSerializer(requests.request_rows([found], by=by)[0]).data
    return shown_request


def _answer(found: QuotaRequest, by: Actor) -> Response:
    return Response(_shown(found, by), headers={"ETag": _tag(found)})


def _tag(found: QuotaRequest) -> str:
    """Of what deciding sets: a line that is decided stays as it is."""
    return tag(*found.lines.order_by("pk").values_list("pk", "state"))


def _locked_tag(found: QuotaRequest) -> str:
    actions.lock(found.tenant, found.lines.values("gpu_class"))
    return _tag(found)


def _asked(line: dict[str, Any]) -> Asked:
    return Asked(
        gpu_class=line["gpu_class"],
        units=line["units"],
        starts=line.get("starts_at") or timezone.now(),
        ends=line["ends_at"],
        kind=line["kind"],
    )


def _taken(line: dict[str, Any]) -> Taken:
    return Taken(line["gpu_class"], line["units"], line.get("starts_at") or timezone.now())


def _decision(line: dict[str, Any], measured: Mapping[str, Any]) -> Decision:
    return Decision(
        line_id=line["id"],
        approve=line["approve"],
        units=line.get("units"),
        starts=line.get("starts_at"),
        ends=line.get("ends_at"),
        reason=line["reason"],
        grace_hours=line.get("grace_hours"),
        measured=measured,
    )


def _namespace(tenant: Tenant) -> dict[str, Any] | None:
    row = tenant.namespaces.select_related("cluster").first()
    if row is None:
        return None
    objects = [
        {
            "kind": one.kind,
            "name": one.name,
            "result": shown.result_of(one),
            "code": one.code,
            "text": one.text,
            "sent_at": one.sent_at,
        }
        for one in queries.namespace_objects(row)
    ]
    return {
        "name": row.name,
        "wanted": row.wanted,
        "is_settled": row.observed_generation >= row.generation,
        "applied_as_of": row.applied_as_of,
        "error": row.error_text,
        "objects": objects,
    }
