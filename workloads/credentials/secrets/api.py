"""/api/v1/secrets: names of a team's secrets, and how to put and delete one. No response has a value."""

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
from tenants.models import Namespace
from workloads.core import queries
from workloads.core.parameters import TeamVerbView
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


class Secrets(TeamVerbView, generics.GenericAPIView[TeamSecret]):
    required_scope = Scope.READ
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
        namespace, _team = queries.team(self.by, self.tenant)
        page = self.paginate_queryset(secret_queries.stored_secrets(namespace)) or []
        return self.get_paginated_response(
            SecretSerializer(secret_queries.secret_rows(namespace, page), many=True).data
        )


class SecretDetail(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="secrets_put",
        summary="Create or replace a secret",
        parameters=[IF_MATCH, IF_NONE_MATCH],
        request=ValueSerializer,
        responses={200: SecretSerializer, 201: SecretSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        namespace, _team = queries.team(self.by, self.tenant)
        value = self.body(ValueSerializer)["value"]
        with if_match(request, lambda: _locked_tag(namespace, name)) as created:
            _row, is_new = secret_actions.put_secret(self.tenant, name, value, by=self.by)
            created(is_new)
        [found] = [one for one in secret_queries.secret_rows(namespace) if one.name == name]
        return self.created(SecretSerializer(found)) if is_new else self.answer(SecretSerializer(found))

    @extend_schema(
        operation_id="secrets_delete",
        summary="Delete a secret that no queued or running run uses",
        responses={204: None},
    )
    @takes_no_fields
    def delete(self, request: Request, name: str) -> Response:
        secret_actions.delete_secret(self.tenant, name, by=self.by)
        return self.no_content()


def _locked_tag(namespace: Namespace, name: str) -> str | None:
    """No response has it: the headers can only ask whether there is a secret."""
    found = secret_queries.unread_secrets(namespace).select_for_update().filter(name=name).first()
    return etag_of(found.pk, found.updated_at) if found else None
