"""/api/v1/classes: what can be asked for, with what is free this minute."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Scope
from catalog import queries
from catalog.models import GpuClass
from portal.errors import get_or_refuse


class CapacitySerializer(serializers.Serializer[Any]):
    allocatable = serializers.IntegerField(allow_null=True, help_text="Units on ready nodes. null: not known.")
    used = serializers.IntegerField(allow_null=True, help_text="Units of pods on nodes that are not finished.")
    free = serializers.IntegerField(allow_null=True, help_text="On ready nodes that take new pods.")
    most_on_one_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod could have now.")
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField(help_text="Whether `as_of` is as recent as it should be.")


class ClassSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    summary = serializers.CharField(allow_blank=True)
    unit = serializers.CharField(help_text="What one unit is: card, slice, share or core.")
    vendor = serializers.CharField(allow_blank=True)
    product = serializers.CharField(allow_blank=True)
    partition = serializers.CharField()
    sharing = serializers.CharField()
    replicas = serializers.IntegerField()
    interface = serializers.CharField()
    resource = serializers.CharField(allow_blank=True)
    interconnect = serializers.CharField()
    memory_mib = serializers.IntegerField(allow_null=True)
    units_per_workload = serializers.IntegerField()
    cpu_per_unit = serializers.IntegerField()
    memory_gib_per_unit = serializers.IntegerField()
    price_per_unit_hour = serializers.CharField(help_text="A decimal number.")
    weight = serializers.CharField(help_text="GPU equivalents per unit, a decimal number.")
    borrowing_limit = serializers.IntegerField(help_text="Units that one team may borrow.")
    life_cycle = serializers.ChoiceField(choices=[str(value) for value in queries.OPEN])
    capacity = CapacitySerializer()


class Classes(generics.GenericAPIView[GpuClass]):
    required_scope = Scope.READ
    serializer_class = ClassSerializer
    filter_backends = ()
    keyset = ("slug", "id")
    queryset = GpuClass.objects.none()  # for the schema

    def get_queryset(self) -> QuerySet[GpuClass]:
        return queries.open_classes(queries.cluster())

    @extend_schema(
        operation_id="classes_list",
        summary="The classes of the catalog, by slug",
        responses=ClassSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        views = queries.class_views(queries.cluster(), page)
        return self.get_paginated_response(ClassSerializer(views, many=True).data)


class ClassDetail(APIView):
    required_scope = Scope.READ

    @extend_schema(operation_id="classes_get", summary="One class", responses=ClassSerializer)
    def get(self, request: Request, slug: str) -> Response:
        cluster = queries.cluster()
        found = get_or_refuse(queries.open_classes(cluster), slug=slug)
        return Response(ClassSerializer(queries.class_views(cluster, [found])[0]).data)
