"""/api/v1/cluster: capacity, queue and waits of every class, for all users; the banner of the operators."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.core.request_actor import actor, operator
from accounts.models import Scope
from accounts.rest.etag import ETAG, IF_MATCH, IF_NONE_MATCH, etag_of, if_match
from accounts.rest.strict.serializers import takes_no_fields
from catalog.banner import actions as banner_actions
from catalog.banner.queries import ActiveBanner, active_banner
from catalog.classes import queries as class_queries
from catalog.models import Banner, GpuClass
from cluster.reads import queries as read_queries
from desk.capacity.queries import cluster_page
from desk.capacity.serializers import (
    BannerSerializer,
    CapacityOverviewSerializer,
    ClusterSerializer,
    PutBannerSerializer,
)
from desk.capacity.totals import ClassFigures, WeightedTotal, WeightedTotals, class_figures, weighted_totals
from portal.core.errors import NOT_FOUND, Refused
from tenants.class_access.queries import visible_classes


class ClusterView(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="cluster_get",
        summary="Capacity, queue length and median wait of every class, and the banner",
        responses=ClusterSerializer,
    )
    def get(self, request: Request) -> Response:
        return Response(ClusterSerializer(cluster_page(actor(request), read_queries.current_cluster())).data)


class BannerView(APIView):
    """Changed by operators and administrators; 404 for other users."""

    required_scope = Scope.READ
    required_scopes = {"PUT": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(
        operation_id="banner_get",
        summary="The banner of the operators; 404 if there is none",
        parameters=[ETAG],
        responses={200: BannerSerializer, 404: None},
    )
    def get(self, request: Request) -> Response:
        actor(request)
        said = active_banner(read_queries.current_cluster().pk)
        if said is None:
            raise Refused(NOT_FOUND)
        return _said(said)

    @extend_schema(
        operation_id="banner_put",
        summary="Publish the banner, replacing any other (operators); idempotent",
        parameters=[IF_MATCH, IF_NONE_MATCH, ETAG],
        request=PutBannerSerializer,
        responses={200: BannerSerializer, 404: None},
    )
    def put(self, request: Request) -> Response:
        by = operator(request)
        asked = PutBannerSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with if_match(request, _locked_tag):
            put = banner_actions.put_banner(read_queries.current_cluster(), **asked.validated_data, by=by)
        return _said(put)

    @extend_schema(
        operation_id="banner_remove",
        summary="Remove the banner (operators)",
        parameters=[IF_MATCH],
        responses={204: None, 404: None},
    )
    @takes_no_fields
    def delete(self, request: Request) -> Response:
        by = operator(request)
        with if_match(request, _locked_tag):
            banner_actions.remove_banner(read_queries.current_cluster(), by=by)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _said(said: ActiveBanner | Banner) -> Response:
    return Response(BannerSerializer(said).data, headers={"ETag": etag_of(said.text, said.until)})


def _locked_tag() -> str | None:
    cluster = read_queries.current_cluster()
    Banner.objects.select_for_update().filter(cluster=cluster).first()
    said = active_banner(cluster.pk)
    return etag_of(said.text, said.until) if said else None


class CapacityView(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="capacity_get",
        summary="Units of every class: allocatable, allocated to teams, used, queued, borrowed and free",
        responses=CapacityOverviewSerializer,
    )
    def get(self, request: Request) -> Response:
        cluster = read_queries.current_cluster()
        visible = visible_classes(actor(request), cluster).exclude(interface=GpuClass.Interface.STORAGE)
        classes = list(visible.order_by("slug"))
        found = class_figures(cluster, classes)
        shown = {
            "items": [_item(one, found[one.pk]) for one in classes],
            "totals": _totals(weighted_totals(found[one.pk] for one in classes)),
        }
        return Response(CapacityOverviewSerializer(shown).data)


def _item(one: GpuClass, figures: ClassFigures) -> dict[str, Any]:
    names = ("allocatable", "used", "free", "most_on_one_node", "largest_node", "unhealthy", "cordoned")
    return {
        "slug": one.slug,
        "name": one.name,
        "unit": class_queries.unit_of(one),
        "is_shared": figures.is_shared,
        "weight": f"{one.weight:f}",
        **{name: getattr(figures.capacity, name) for name in names},
        "promised": figures.promised,
        "queued": figures.queued,
        "borrowed": figures.borrowed,
        "free_cards": _decimal(figures.cards),
        "as_of": figures.capacity.as_of,
        "is_current": figures.capacity.is_current,
        "problem": figures.capacity.problem,
    }


def _totals(found: WeightedTotals) -> dict[str, dict[str, str | None]]:
    return {"exclusive": _total(found.exclusive), "shared": _total(found.shared)}


def _total(found: WeightedTotal) -> dict[str, str | None]:
    return {name: _decimal(getattr(found, name)) for name in WeightedTotal.__dataclass_fields__}


def _decimal(number: Fraction | None) -> str | None:
    """Four digits are enough, also for values that are rounded in the catalog."""
    return None if number is None else f"{float(number):.4f}".rstrip("0").rstrip(".")
