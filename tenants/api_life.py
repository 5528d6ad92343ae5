"""A team's life by REST: suspend, resume, close; and renewing a grant. The same verbs as the pages."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.bounds import SaidChoiceField, within
from accounts.edge import actor
from accounts.etag import ETAG, IF_MATCH, if_match, tag
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.models import Scope
from portal.errors import NOT_FOUND, Refused, get_or_refuse
from tenants import grants, life, life_policy, policy, queries
from tenants.api import RequestSerializer
from tenants.goes import LookInside
from tenants.life_policy import GRACE_HOURS, GRACE_HOURS_MAX, KEEP_DAYS, KEEP_DAYS_MAX
from tenants.measured import Measure
from tenants.models import Namespace, Tenant
from tenants.queries import going, requests, stuck


class WorkSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField()
    gpu_class = serializers.CharField()
    units = serializers.IntegerField()
    who = serializers.CharField()
    since = serializers.DateTimeField(help_text="When it was asked for.")


class VolumeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    size_gib = serializers.IntegerField()


class EndingGrantSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    gpu_class = serializers.CharField(source="slug")
    units = serializers.IntegerField()
    starts_at = serializers.DateTimeField(source="starts")
    ends_at = serializers.DateTimeField(source="ends")


class WaitingLineSerializer(serializers.Serializer[Any]):
    request = serializers.IntegerField()
    gpu_class = serializers.CharField(source="name")
    kind = serializers.CharField()
    units = serializers.IntegerField()


class GoesSerializer(serializers.Serializer[Any]):
    """What closing takes."""

    running = WorkSerializer(many=True, source="inside.running")
    waiting = WorkSerializer(many=True, source="inside.waiting")
    volumes = VolumeSerializer(many=True, source="inside.volumes")
    queue = serializers.CharField(allow_blank=True)
    grants = EndingGrantSerializer(many=True)
    pending = WaitingLineSerializer(many=True, help_text="Can only be denied or withdrawn then.")


class BlockerSerializer(serializers.Serializer[Any]):
    said = serializers.CharField(help_text="What blocks it.")
    do = serializers.CharField(help_text="What to do.")
    raw = serializers.CharField(help_text="The API server's own words.")


class StuckSerializer(serializers.Serializer[Any]):
    """It was deleted in the cluster and is still there."""

    since = serializers.DateTimeField()
    blockers = BlockerSerializer(many=True)
    objects = serializers.ListField(child=serializers.CharField())


class LifeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.CharField(help_text="active, suspended, closing (may be resumed) or closed")
    because = serializers.CharField(allow_blank=True)
    closes_at = serializers.DateTimeField(allow_null=True, help_text="What runs goes on until then.")
    volumes_until = serializers.DateTimeField(allow_null=True, help_text="Volumes are kept until then.")
    gone_at = serializers.DateTimeField(allow_null=True, help_text="Nothing of it is in the cluster since then.")
    stuck = StuckSerializer(allow_null=True)
    goes = GoesSerializer(allow_null=True, help_text="For those who may close it; null for everybody else.")


class WantedLifeSerializer(KnownFields):
    wanted = SaidChoiceField(choices=life_policy.WANTED)
    because = serializers.CharField(
        default="", allow_blank=True, max_length=policy.REASON_MAX, help_text="Its owners and managers read it."
    )
    grace_hours = serializers.IntegerField(
        default=GRACE_HOURS,
        validators=within(0, GRACE_HOURS_MAX),
        help_text="Of closing: so long what runs goes on.",
    )
    keep_days = serializers.IntegerField(
        default=KEEP_DAYS,
        validators=within(0, KEEP_DAYS_MAX),
        help_text="Of closing: so long volumes are kept after that.",
    )


class TeamNamespace(APIView):
    required_scope = Scope.READ
    required_scopes = {"PATCH": Scope.ADMIN}
    look_inside: LookInside | None = None

    @extend_schema(
        operation_id="namespace_get",
        summary="Whether a team is active, suspended, closing or closed, and what closing it takes",
        parameters=[ETAG],
        responses=LifeSerializer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        row = _row(request, tenant)
        return Response(self._shown(request, row), headers={"ETag": _tag(row)})

    @extend_schema(
        operation_id="namespace_set",
        summary="Suspend, resume or close a team (202); what it is already changes nothing (200)",
        parameters=[IF_MATCH, ETAG],
        request=WantedLifeSerializer,
        responses={200: LifeSerializer, 202: LifeSerializer},
    )
    def patch(self, request: Request, tenant: str) -> Response:
        before = _row(request, tenant)
        asked = WantedLifeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        typed = asked.validated_data
        with if_match(request, lambda: _locked_tag(before.pk)):
            row = life.set_wanted(before.pk, to=typed.pop("wanted"), by=actor(request), **typed)
        done = status.HTTP_200_OK if row.generation == before.generation else status.HTTP_202_ACCEPTED
        return Response(self._shown(request, row), status=done, headers={"ETag": _tag(row)})

    def _shown(self, request: Request, row: Namespace) -> dict[str, Any]:
        by, now, own = actor(request), queries.now(), life.life_of(row)
        may_close = life_policy.may_close(by, own, at=now) is None
        body = {
            "name": row.name,
            "state": life_policy.state(own, at=now),
            "because": queries.last_told(row),
            "closes_at": row.closes_at,
            "volumes_until": row.volumes_until,
            "gone_at": row.gone_at,
            "stuck": stuck.of(row),
            "goes": going.goes(row, self.look_inside(row.pk), at=now) if self.look_inside and may_close else None,
        }
        shown: dict[str, Any] = LifeSerializer(body).data
        return shown


class GrantRenew(APIView):
    required_scope = Scope.REQUEST
    measure: Measure | None = None

    @extend_schema(
        operation_id="tenants_grant_renew",
        summary="Ask for a base grant again, from its end on, for as long",
        request=None,
        responses={201: RequestSerializer},
    )
    @takes_no_fields
    def post(self, request: Request, tenant: str, pk: int) -> Response:
        by = actor(request)
        get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
        filed = grants.renew(tenant, pk, by=by, measure=self.measure)
        body = RequestSerializer(requests.request_rows([filed], by=by)[0]).data
        return Response(body, status=status.HTTP_201_CREATED)


def _row(request: Request, tenant: str) -> Namespace:
    """Looked up before the body is: for a stranger there is no team, whatever was sent."""
    rows = Namespace.objects.visible_to(actor(request)).select_related("tenant", "cluster")
    row = rows.filter(tenant__slug=tenant).first()
    if row is None:
        raise Refused(NOT_FOUND)
    return row


def _tag(row: Namespace) -> str:
    return tag(row.wanted, row.closes_at, row.volumes_until)


def _locked_tag(pk: int) -> str:
    return _tag(Namespace.objects.select_for_update(no_key=True).get(pk=pk))
