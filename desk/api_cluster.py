"""/api/v1/cluster: capacity, queue and waits of every class, for every signed-in person; the banner of the staff."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.bounds import up_to
from accounts.edge import actor, operator
from accounts.etag import ETAG, IF_MATCH, if_match, tag
from accounts.known_fields import KnownFields, takes_no_fields
from accounts.models import Scope
from catalog import banners
from catalog import queries as catalog
from catalog.banner_policy import TEXT_MAX
from catalog.models import Banner
from catalog.queries.banner import Said, banner
from desk.queries.cluster import cluster_page
from portal.errors import NOT_FOUND, Refused


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


class PutBannerSerializer(KnownFields):
    text = serializers.CharField(validators=up_to(TEXT_MAX), help_text="In place of what stands there.")
    until = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Shown until then; without it, until it is taken down."
    )


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


class BannerView(APIView):
    """Changed by operators and administrators; for everybody else that is not there."""

    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(
        operation_id="banner_get",
        summary="What staff say to everybody; 404 while they say nothing",
        parameters=[ETAG],
        responses={200: BannerSerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        actor(request)
        said = banner(catalog.cluster().pk)
        if said is None:
            raise Refused(NOT_FOUND)
        return _said(said)

    @extend_schema(
        operation_id="banner_put",
        summary="Say something to everybody, in place of what was said (operators); the same again changes nothing",
        parameters=[IF_MATCH, ETAG],
        request=PutBannerSerializer,
        responses={200: BannerSerializer, 404: None},
    )
    def put(self, request: Request) -> Response:
        by = operator(request)
        asked = PutBannerSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with if_match(request, _locked_tag):
            put = banners.put_banner(catalog.cluster(), **asked.validated_data, by=by)
        return _said(put)

    @extend_schema(
        operation_id="banner_remove",
        summary="Take the banner down (operators)",
        parameters=[IF_MATCH],
        responses={204: None, 404: None},
    )
    @takes_no_fields
    def delete(self, request: Request) -> Response:
        by = operator(request)
        with if_match(request, _locked_tag):
            banners.remove_banner(catalog.cluster(), by=by)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _said(said: Said | Banner) -> Response:
    return Response(BannerSerializer(said).data, headers={"ETag": tag(said.text, said.until)})


def _locked_tag() -> str | None:
    cluster = catalog.cluster()
    Banner.objects.select_for_update().filter(cluster=cluster).first()
    said = banner(cluster.pk)
    return tag(said.text, said.until) if said else None
