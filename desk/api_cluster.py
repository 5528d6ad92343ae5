"""/api/v1/cluster: capacity, queue and waits of every class, for every signed-in person."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.edge import actor
from accounts.models import Scope
from catalog import queries as catalog
from desk.queries.cluster import cluster_page


class ClassLineSerializer(serializers.Serializer[Any]):
    """null: not known, never 0."""

    slug = serializers.CharField()
    name = serializers.CharField()
    unit = serializers.CharField()
    allocatable = serializers.IntegerField(allow_null=True)
    free = serializers.IntegerField(allow_null=True)
    yours = serializers.IntegerField(allow_null=True, help_text="Runs of your teams that wait.")
    others = serializers.IntegerField(
        allow_null=True, help_text="Runs of other teams; null as well where they are few."
    )
    others_text = serializers.CharField(help_text="The number, “a few” or “unknown”.")
    median_s = serializers.FloatField(
        allow_null=True, help_text="Half of the runs of 30 days waited no longer; null where too few started to tell."
    )
    hold = serializers.CharField(allow_blank=True, help_text="What is said of its hold; empty while it is open.")


class BannerSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    until = serializers.DateTimeField(allow_null=True)


class ClusterSerializer(serializers.Serializer[Any]):
    banner = BannerSerializer(allow_null=True)
    lines = ClassLineSerializer(many=True)
    as_of = serializers.DateTimeField(allow_null=True)
    is_stale = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)


class ClusterView(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="cluster_get",
        summary="Capacity, queue length and median wait of every class, and what staff say to everybody",
        responses=ClusterSerializer,
    )
    def get(self, request: Request) -> Response:
        return Response(ClusterSerializer(cluster_page(actor(request), catalog.cluster())).data)
