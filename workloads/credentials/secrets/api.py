"""/api/v1/secrets: names of a team's secrets, and how to put and delete one. No response has a value."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor
from accounts.models import Scope
from accounts.rest.strict.serializers import StrictSerializer, takes_no_fields
from accounts.rest.validators import documented_length
from workloads.core import queries
from workloads.core.parameters import TENANT_PARAMETER, requested_tenant
from workloads.credentials.secrets import actions as secret_actions
from workloads.credentials.secrets import queries as secret_queries
from workloads.credentials.secrets.models import TeamSecret
from workloads.credentials.secrets.policy import VALUE_LIMIT


class SecretSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    by = serializers.CharField(help_text="User who set the value.")
    updated_at = serializers.DateTimeField(help_text="When it was set.")
    used_by = serializers.ListField(child=serializers.CharField(), help_text="Workloads declared with it.")


class ValueSerializer(StrictSerializer):
    value = serializers.CharField(
        trim_whitespace=False,
        write_only=True,
        validators=documented_length(VALUE_LIMIT),
        help_text=f"Encrypted immediately; up to {VALUE_LIMIT} bytes.",
    )


class Secrets(generics.GenericAPIView[TeamSecret]):
    required_scope = Scope.READ
    query = (TENANT_PARAMETER,)
    serializer_class = SecretSerializer
    filter_backends = ()
    keyset = ("name", "id")
    queryset = TeamSecret.objects.none()  # for the schema

    @extend_schema(
        operation_id="secrets_list",
        summary="Secrets of a team, without their values",
        responses=SecretSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        namespace, _team = queries.team(by, requested_tenant(request, by))
        page = self.paginate_queryset(secret_queries.stored_secrets(namespace)) or []
        return self.get_paginated_response(
            SecretSerializer(secret_queries.secret_rows(namespace, page), many=True).data
        )


class SecretDetail(APIView):
    required_scope = Scope.LAUNCH
    query = (TENANT_PARAMETER,)

    @extend_schema(
        operation_id="secrets_put",
        summary="Create or replace a secret",
        request=ValueSerializer,
        responses={200: SecretSerializer, 201: SecretSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        by = actor(request)
        tenant = requested_tenant(request, by)
        namespace, _team = queries.team(by, tenant)
        asked = ValueSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        _row, is_new = secret_actions.put_secret(tenant, name, asked.validated_data["value"], by=by)
        [found] = [one for one in secret_queries.secret_rows(namespace) if one.name == name]
        return Response(SecretSerializer(found).data, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @extend_schema(
        operation_id="secrets_delete",
        summary="Delete a secret that no queued or running run uses",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, name: str) -> Response:
        by = actor(request)
        secret_actions.delete_secret(requested_tenant(request, by), name, by=by)
        return Response(status=status.HTTP_204_NO_CONTENT)
