"""/api/v1/capacity: how much there is of every class, for every signed-in person."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.edge import actor
from accounts.models import Scope
from catalog import queries as catalog
from catalog.models import GpuClass
from desk.queries.figures import Figures, Total, Totals, figures, totals
from tenants.queries import visible_classes


class FiguresSerializer(serializers.Serializer[Any]):
    """Whole units of the class. null: not known, never 0."""

    slug = serializers.CharField()
    name = serializers.CharField()
    unit = serializers.CharField(help_text="What one unit is: card, slice, share or core.")
    is_shared = serializers.BooleanField(help_text="Whether others are on the same card at the same time.")
    weight = serializers.CharField(help_text="GPU equivalents per unit, a decimal number.")
    allocatable = serializers.IntegerField(allow_null=True, help_text="Units on ready nodes, cordoned ones too.")
    promised = serializers.IntegerField(help_text="Units granted to teams and in force now.")
    used = serializers.IntegerField(allow_null=True, help_text="Units of pods on nodes that are not finished.")
    queued = serializers.IntegerField(allow_null=True, help_text="Units of work that waits in the queue.")
    borrowed = serializers.IntegerField(
        allow_null=True, help_text="Units that teams use beyond what they were granted."
    )
    free = serializers.IntegerField(allow_null=True, help_text="On ready nodes that take new pods.")
    most_on_one_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod could have now.")
    largest_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod can ever have.")
    unhealthy = serializers.IntegerField(allow_null=True, help_text="Units that ready nodes have and do not offer.")
    cordoned = serializers.IntegerField(allow_null=True, help_text="Units on nodes that take no new pods.")
    free_cards = serializers.CharField(
        allow_null=True, help_text="Free slices of a MIG class as physical cards, a decimal number; null otherwise."
    )
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField(help_text="Whether `as_of` is as recent as it should be.")
    problem = serializers.CharField(allow_blank=True, help_text="Why the figures are old or not known.")


class TotalSerializer(serializers.Serializer[Any]):
    """GPU equivalents as decimal numbers. null where a class is not known."""

    allocatable = serializers.CharField(allow_null=True)
    promised = serializers.CharField()
    used = serializers.CharField(allow_null=True)
    queued = serializers.CharField(allow_null=True)
    borrowed = serializers.CharField(allow_null=True)
    free = serializers.CharField(allow_null=True)


class TotalsSerializer(serializers.Serializer[Any]):
    exclusive = TotalSerializer()
    shared = TotalSerializer()


class CapacityOverviewSerializer(serializers.Serializer[Any]):
    items = FiguresSerializer(many=True)
    totals = TotalsSerializer(
        help_text="Weighed sums over the items. A share of a card is no card: the two are never added up. What two "
        "classes select together is counted once."
    )


class CapacityView(APIView):
    required_scope = Scope.READ

    @extend_schema(
        operation_id="capacity_get",
        summary="Units of every class: there, promised, used, queued, borrowed and free",
        responses=CapacityOverviewSerializer,
    )
    def get(self, request: Request) -> Response:
        cluster = catalog.cluster()
        visible = visible_classes(actor(request), cluster).exclude(interface=GpuClass.Interface.STORAGE)
        classes = list(visible.order_by("slug"))
        found = figures(cluster, classes)
        shown = {
            "items": [_item(one, found[one.pk]) for one in classes],
            "totals": _totals(totals(found[one.pk] for one in classes)),
        }
        return Response(CapacityOverviewSerializer(shown).data)


def _item(one: GpuClass, figures: Figures) -> dict[str, Any]:
    names = ("allocatable", "used", "free", "most_on_one_node", "largest_node", "unhealthy", "cordoned")
    return {
        "slug": one.slug,
        "name": one.name,
        "unit": catalog.unit_of(one),
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


def _totals(found: Totals) -> dict[str, dict[str, str | None]]:
    return {"exclusive": _total(found.exclusive), "shared": _total(found.shared)}


def _total(found: Total) -> dict[str, str | None]:
    return {name: _decimal(getattr(found, name)) for name in Total.__dataclass_fields__}


def _decimal(number: Fraction | None) -> str | None:
    """Four digits are enough for what is rounded in the catalog too."""
    return None if number is None else f"{float(number):.4f}".rstrip("0").rstrip(".")
