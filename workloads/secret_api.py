"""/api/v1/secrets: names of a team's sealed secrets, and the ways to put and delete one. No answer has a value."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.bounds import up_to
from accounts.edge import actor
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.models import Scope
from workloads import queries, secrets
from workloads.api import TENANT, tenant_of
from workloads.models import TeamSecret
from workloads.queries import team_secrets
from workloads.secret_policy import VALUE_LIMIT


class SecretSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    by = serializers.CharField(help_text="Who put the value that is there.")
    updated_at = serializers.DateTimeField(help_text="When.")
    used_by = serializers.ListField(child=serializers.CharField(), help_text="Workloads that are declared with it.")


class ValueSerializer(KnownFields):
    value = serializers.CharField(
        trim_whitespace=False,
        write_only=True,
        validators=up_to(VALUE_LIMIT),
        help_text=f"Sealed at once; up to {VALUE_LIMIT} bytes.",
    )


class Secrets(generics.GenericAPIView[TeamSecret]):
    required_scope = Scope.READ
    query = (TENANT,)
    serializer_class = SecretSerializer
    filter_backends = ()
    keyset = ("name", "id")
    queryset = TeamSecret.objects.none()  # for the schema

    @extend_schema(
        operation_id="secrets_list",
        summary="Sealed secrets of a team, without their values",
        responses=SecretSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        namespace, _team = queries.team(by, tenant_of(request, by))
        page = self.paginate_queryset(team_secrets.of(namespace)) or []
        return self.get_paginated_response(SecretSerializer(team_secrets.rows(namespace, page), many=True).data)


class SecretDetail(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT,)

    @extend_schema(
        operation_id="secrets_put",
        summary="Put a secret, new or with another value",
        request=ValueSerializer,
        responses={200: SecretSerializer, 201: SecretSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        namespace, _team = queries.team(by, tenant)
        asked = ValueSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        _row, is_new = secrets.put(tenant, name, asked.validated_data["value"], by=by)
        [found] = [one for one in team_secrets.rows(namespace) if one.name == name]
        return Response(SecretSerializer(found).data, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @extend_schema(
        operation_id="secrets_delete",
        summary="Delete a secret that nothing runs with",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, name: str) -> Response:
        by = actor(request)
        secrets.delete(tenant_of(request, by), name, by=by)
        return Response(status=status.HTTP_204_NO_CONTENT)
