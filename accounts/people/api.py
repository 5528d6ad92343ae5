"""/api/v1/me: who am I, and what may this token do."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor
from accounts.core.teams import TenantsOf, team_slugs
from accounts.models import ApiToken, Scope
from accounts.people.serializers import MeSerializer


class Me(APIView):
    required_scope = Scope.READ
    tenants_of: TenantsOf | None = None

    @extend_schema(operation_id="me", summary="Get my account and the token of this call", responses=MeSerializer)
    def get(self, request: Request) -> Response:
        by = actor(request)
        me = {
            "email": by.person.email,
            "name": by.person.name,
            "roles": by.roles,
            "scopes": sorted(by.scopes),
            "teams": sorted(team_slugs(self.tenants_of, by)),
            "via": by.via,
            "confined_to": by.confined_to,
            "token": request.auth if isinstance(request.auth, ApiToken) else None,
        }
        return Response(MeSerializer(me).data)
