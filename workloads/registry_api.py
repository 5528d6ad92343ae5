"""/api/v1/registries: for which registries a team keeps credentials, and the ways to put and delete them. No answer has
a user or a password.
"""

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
from tenants.queries.image_prefixes import prefixes
from workloads import queries
from workloads import registries as verbs
from workloads.api import TENANT, tenant_of
from workloads.models import RegistryCredential
from workloads.queries import registries
from workloads.registry_policy import PASSWORD_LIMIT, USERNAME_LIMIT


class RegistrySerializer(serializers.Serializer[Any]):
    registry = serializers.CharField(help_text="Its host, as references begin with it.")
    by = serializers.CharField(help_text="Who put what is there.")
    updated_at = serializers.DateTimeField(help_text="When.")
    used_by = serializers.ListField(child=serializers.CharField(), help_text="Workloads declared with an image of it.")
    is_allowed = serializers.BooleanField(help_text="A prefix of it is allowed to the team.")


class SignInSerializer(KnownFields):
    username = serializers.CharField(write_only=True, validators=up_to(USERNAME_LIMIT))
    password = serializers.CharField(
        trim_whitespace=False,
        write_only=True,
        validators=up_to(PASSWORD_LIMIT),
        help_text=f"Sealed at once; up to {PASSWORD_LIMIT} bytes.",
    )


class Registries(generics.GenericAPIView[RegistryCredential]):
    required_scope = Scope.READ
    query = (TENANT,)
    serializer_class = RegistrySerializer
    filter_backends = ()
    keyset = ("registry", "id")
    queryset = RegistryCredential.objects.none()  # for the schema

    @extend_schema(
        operation_id="registries_list",
        summary="Registries that a team keeps credentials for, without these",
        responses=RegistrySerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        by = actor(request)
        namespace, _team = queries.team(by, tenant_of(request, by))
        page = self.paginate_queryset(registries.of(namespace)) or []
        allowed, used = prefixes(namespace.tenant_id), registries.own_images(namespace)
        return self.get_paginated_response(RegistrySerializer(registries.rows(page, allowed, used), many=True).data)


class RegistryDetail(APIView):
    required_scope = Scope.ADMIN
    query = (TENANT,)

    @extend_schema(
        operation_id="registries_put",
        summary="Put credentials for a registry, new or instead of others (owners and managers)",
        request=SignInSerializer,
        responses={200: RegistrySerializer, 201: RegistrySerializer},
    )
    def put(self, request: Request, registry: str) -> Response:
        by = actor(request)
        tenant = tenant_of(request, by)
        namespace, _team = queries.team(by, tenant)
        asked = SignInSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        _row, is_new = verbs.put(tenant, registry, verbs.SignIn(**asked.validated_data), by=by)
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(RegistrySerializer(registries.row(namespace, registry)).data, code)

    @extend_schema(
        operation_id="registries_delete",
        summary="Delete credentials, also from what runs or waits (owners and managers)",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, registry: str) -> Response:
        by = actor(request)
        verbs.delete(tenant_of(request, by), registry, by=by)
        return Response(status=status.HTTP_204_NO_CONTENT)
