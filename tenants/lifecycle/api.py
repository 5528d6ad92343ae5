"""A team's lifecycle by REST: suspend, resume, close. The same actions as on the pages."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.etag import ETAG, IF_MATCH, etag_of, if_match
from accounts.rest.verb_view import VerbView
from portal.core.errors import NOT_FOUND, Refused
from tenants.core import queries
from tenants.lifecycle import actions as lifecycle_actions
from tenants.lifecycle import policy as lifecycle_policy
from tenants.lifecycle import queries as lifecycle_queries
from tenants.lifecycle.closing import queries as closing_queries
from tenants.lifecycle.contents import ReadContents
from tenants.lifecycle.serializers import LifeSerializer, WantedLifeSerializer
from tenants.lifecycle.terminating import queries as terminating_queries
from tenants.models import Namespace


class TeamNamespace(VerbView):
    required_scope = Scope.READ
    required_scopes = {"PATCH": Scope.ADMIN}
    look_inside: ReadContents | None = None

    @extend_schema(
        operation_id="namespace_get",
        summary="Get the state of a team (active, suspended, closing or closed) and what closing it deletes",
        parameters=[ETAG],
        responses=LifeSerializer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        row = _row(request, tenant)
        return Response(self._shown(request, row), headers={"ETag": _tag(row)})

    @extend_schema(
        operation_id="namespace_set",
        summary="Suspend, resume or close a team (202); 200 if the team is already in that state",
        parameters=[IF_MATCH, ETAG],
        request=WantedLifeSerializer,
        responses={200: LifeSerializer, 202: LifeSerializer},
    )
    def patch(self, request: Request, tenant: str) -> Response:
        before = _row(request, tenant)
        typed = self.body(WantedLifeSerializer)
        with if_match(request, lambda: _locked_tag(before.pk)):
            row = lifecycle_actions.set_namespace_state(before.pk, to=typed.pop("wanted"), by=self.by, **typed)
        done = status.HTTP_200_OK if row.generation == before.generation else status.HTTP_202_ACCEPTED
        return Response(self._shown(request, row), status=done, headers={"ETag": _tag(row)})

    def _shown(self, request: Request, row: Namespace) -> dict[str, Any]:
        by, now, own = actor(request), queries.database_now(), lifecycle_queries.lifecycle_of(row)
        may_close = lifecycle_policy.may_close_namespace(by, own, at=now) is None
        body = {
            "name": row.name,
            "state": lifecycle_policy.lifecycle_state(own, at=now),
            "because": lifecycle_queries.state_reason(row),
            "closes_at": row.closes_at,
            "volumes_until": row.volumes_until,
            "gone_at": row.gone_at,
            "stuck": terminating_queries.terminating_of(row),
            "goes": closing_queries.closing_preview(row, self.look_inside(row.pk), at=now)
            if self.look_inside and may_close
            else None,
        }
        shown: dict[str, Any] = LifeSerializer(body).data
        return shown


def _row(request: Request, tenant: str) -> Namespace:
    """Looked up before the body is checked: a user outside the team gets not_found, whatever the body is."""
    rows = Namespace.objects.visible_to(actor(request)).select_related("tenant", "cluster")
    row = rows.filter(tenant__slug=tenant).first()
    if row is None:
        raise Refused(NOT_FOUND)
    return row


def _tag(row: Namespace) -> str:
    return etag_of(row.wanted, row.closes_at, row.volumes_until)


def _locked_tag(pk: int) -> str:
    return _tag(queries.lock_namespace(pk))
