"""/api/v1/registries: for which registries a team has credentials, and how to put and delete them. No response has a
user name or a password.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from accounts.rest.etag import IF_MATCH, IF_NONE_MATCH, etag_of, if_match
from accounts.rest.strict.serializers import StrictSerializer, takes_no_fields
from accounts.rest.validators import documented_length
from tenants.class_access.image_prefixes.queries import prefixes_of
from tenants.models import Namespace
from workloads.core import queries
from workloads.core.parameters import TeamVerbView
from workloads.credentials.registries import actions as verbs
from workloads.credentials.registries import queries as registry_queries
from workloads.credentials.registries.policy import PASSWORD_LIMIT, USERNAME_LIMIT
from workloads.models import RegistryCredential


class RegistrySerializer(serializers.Serializer[Any]):
    registry = serializers.CharField(help_text="Host of the registry.")
    by = serializers.CharField(help_text="User who set the credentials.")
    updated_at = serializers.DateTimeField(help_text="When they were set.")
    used_by = serializers.ListField(child=serializers.CharField(), help_text="Workloads with an image of it.")
    is_allowed = serializers.BooleanField(help_text="Whether a prefix of it is allowed for the team.")


class SignInSerializer(StrictSerializer):
    username = serializers.CharField(write_only=True, validators=documented_length(USERNAME_LIMIT))
    password = serializers.CharField(
        trim_whitespace=False,
        write_only=True,
        validators=documented_length(PASSWORD_LIMIT),
        help_text=f"Encrypted immediately; up to {PASSWORD_LIMIT} bytes.",
    )


class Registries(TeamVerbView, generics.GenericAPIView[RegistryCredential]):
    required_scope = Scope.READ
    serializer_class = RegistrySerializer
    filter_backends = ()
    keyset = ("registry", "id")
    queryset = RegistryCredential.objects.none()  # for the schema

    @extend_schema(
        operation_id="registries_list",
        summary="Registries for which a team has credentials, without the credentials",
        responses=RegistrySerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        namespace, _team = queries.team(self.by, self.tenant)
        page = self.paginate_queryset(registry_queries.stored_logins(namespace)) or []
        allowed, used = prefixes_of(namespace.tenant_id), registry_queries.custom_image_workloads(namespace)
        return self.get_paginated_response(
            RegistrySerializer(registry_queries.registry_rows(page, allowed, used), many=True).data
        )


class RegistryDetail(TeamVerbView):
    required_scope = Scope.ADMIN

    @extend_schema(
        operation_id="registries_put",
        summary="Create or replace credentials for a registry (owners and managers)",
        parameters=[IF_MATCH, IF_NONE_MATCH],
        request=SignInSerializer,
        responses={200: RegistrySerializer, 201: RegistrySerializer},
    )
    def put(self, request: Request, registry: str) -> Response:
        namespace, _team = queries.team(self.by, self.tenant)
        login = verbs.RegistryLogin(**self.body(SignInSerializer))
        with if_match(request, lambda: _locked_tag(namespace, registry)) as created:
            _row, is_new = verbs.put_login(self.tenant, registry, login, by=self.by)
            created(is_new)
        stored = RegistrySerializer(registry_queries.registry_row(namespace, registry))
        return self.created(stored) if is_new else self.answer(stored)

    @extend_schema(
        operation_id="registries_delete",
        summary="Delete credentials, also for queued and running runs (owners and managers)",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, registry: str) -> Response:
        verbs.delete_login(self.tenant, registry, by=self.by)
        return self.no_content()


def _locked_tag(namespace: Namespace, registry: str) -> str | None:
    """No response has it: the headers can only ask whether there are credentials."""
    found = registry_queries.unread_logins(namespace).select_for_update().filter(registry=registry).first()
    return etag_of(found.pk, found.updated_at) if found else None
