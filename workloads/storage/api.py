"""/api/v1/volumes: a team's volumes; request the deletion of one, or withdraw that request."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters.filters import ChoiceFilter
from django_filters.rest_framework.filterset import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.core.actor import Actor
from accounts.models import Scope
from accounts.rest.strict.serializers import takes_no_fields
from workloads.core import queries
from workloads.core.parameters import TeamVerbView
from workloads.models import Volume
from workloads.storage import actions as storage_actions
from workloads.storage.queries import undeleted, volume_rows


class HolderSerializer(serializers.Serializer[Any]):
    workload = serializers.CharField()
    person = serializers.CharField()
    since = serializers.DateTimeField()


class TeamVolumeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    size_gib = serializers.IntegerField()
    storage_class = serializers.CharField(
        source="storage.name", allow_blank=True, help_text="Empty: the default class of the cluster."
    )
    access_mode = serializers.CharField(
        source="storage.access_mode", help_text="ReadWriteOnce: one run at a time. ReadWriteMany: several runs."
    )
    created_at = serializers.DateTimeField()
    state = serializers.CharField(help_text="bound, pending, lost, terminating, missing, refused, unmade or unknown.")
    message = serializers.CharField(source="said", allow_blank=True, help_text="What the state means.")
    used_by = HolderSerializer(
        source="holder", allow_null=True, help_text="The first run that uses it, queued or running."
    )
    deletes_at = serializers.DateTimeField(allow_null=True, help_text="null: not marked for deletion.")


class VolumeFilter(FilterSet):
    deleting = ChoiceFilter(
        choices=[("true", "true"), ("false", "false")], help_text="Whether it is marked for deletion."
    )

    class Meta:
        model = Volume
        fields: tuple[str, ...] = ()

    def filter_queryset(self, queryset: QuerySet[Volume]) -> QuerySet[Volume]:
        asked = self.form.cleaned_data["deleting"]
        return queryset.filter(delete_requested_at__isnull=asked == "false") if asked else queryset


class Volumes(TeamVerbView, generics.GenericAPIView[Volume]):
    required_scope = Scope.READ
    serializer_class = TeamVolumeSerializer
    filterset_class = VolumeFilter
    keyset = ("name", "id")
    queryset = Volume.objects.none()  # for the schema

    @extend_schema(
        operation_id="volumes_list",
        summary="Volumes of a team, by name",
        responses=TeamVolumeSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        namespace, team = queries.team(self.by, self.tenant)
        page = self.paginate_queryset(self.filter_queryset(undeleted(namespace))) or []
        named = undeleted(namespace).filter(pk__in=[one.pk for one in page])
        rows, _as_of = volume_rows(self.by, namespace, team, named)
        return self.get_paginated_response(TeamVolumeSerializer(rows, many=True).data)


class VolumeDelete(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="volumes_delete",
        summary="Delete a volume after a grace period of 24 hours",
        request=None,
        responses=TeamVolumeSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, name: str) -> Response:
        storage_actions.request_delete(self.tenant, name, by=self.by)
        return _answer(self.by, self.tenant, name)


class VolumeKeep(TeamVerbView):
    required_scope = Scope.LAUNCH

    @extend_schema(
        operation_id="volumes_keep",
        summary="Keep a volume that is marked for deletion",
        request=None,
        responses=TeamVolumeSerializer,
    )
    @takes_no_fields
    def post(self, request: Request, name: str) -> Response:
        storage_actions.cancel_delete(self.tenant, name, by=self.by)
        return _answer(self.by, self.tenant, name)


def _answer(by: Actor, tenant: str, name: str) -> Response:
    namespace, team = queries.team(by, tenant)
    [row], _as_of = volume_rows(by, namespace, team, undeleted(namespace).filter(name=name))
    return Response(TeamVolumeSerializer(row).data)
