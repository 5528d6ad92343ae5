"""Totals of a class for every signed-in user: capacity, allocated, queued, borrowed. No other team is named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from django.utils import timezone

from catalog.classes.capacity import weights
from catalog.classes.capacity.queries import capacities, used_by_namespace
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.nodes.faulty_units import added_by_faults
from tenants.grants.queries import TeamUnits, units_by_team
from tenants.models import Namespace
from workloads.forecast.queries import waiting_units


@dataclass(frozen=True)
class ClassFigures:
    """Figures of one class in its own units. `promised`: by grants in force now, all teams. `queued`: of queued
    workloads.

    `borrowed`: what teams use beyond their quota and beyond units in a grace period. `cards`: free units of a MIG class
    as physical GPUs, None for every other class. `weight`: GPU equivalents per unit, exact. `used_by` and
    `borrowed_by`: by namespace; a user sees only those of the user's own teams.
    """

    capacity: Capacity
    promised: int
    queued: int | None
    borrowed: int | None
    cards: Fraction | None
    weight: Fraction
    is_shared: bool
    used_by: Mapping[str, int] | None
    borrowed_by: Mapping[str, int]


@dataclass(frozen=True)
class WeightedTotal:
    """GPU equivalents over classes. None if a class is unknown: the sum of the known ones would be too small."""

    allocatable: Fraction | None
    free: Fraction | None
    used: Fraction | None
    promised: Fraction
    queued: Fraction | None
    borrowed: Fraction | None


@dataclass(frozen=True)
class WeightedTotals:
    """Exclusive and shared classes are not added up together."""

    exclusive: WeightedTotal
    shared: WeightedTotal


def class_figures(cluster: Cluster, classes: Collection[GpuClass]) -> dict[int, ClassFigures]:
    """By class id. Eight queries, whatever the number of classes, teams and nodes; nine if GPUs have faults."""
    capacity = with_faults(cluster, classes, capacities(cluster, classes))
    own = units_by_team([one.pk for one in classes], timezone.now())
    # If the capacity is known, so are all of its parts.
    used = used_by_namespace(cluster, classes) if any(one.is_known for one in capacity.values()) else None
    teams = dict(Namespace.objects.filter(cluster=cluster).values_list("name", "tenant_id"))
    queued = waiting_units(cluster)
    borrowed = {one.pk: _borrowed(used[one.pk] if used else {}, own.get(one.pk, {}), teams) for one in classes}
    return {
        one.pk: ClassFigures(
            capacity=capacity[one.pk],
            promised=sum(team.in_force for team in own.get(one.pk, {}).values()),
            queued=None if queued is None else queued.get(one.slug, 0),
            borrowed=None if used is None else sum(borrowed[one.pk].values()),
            cards=_cards(one, capacity[one.pk]),
            weight=weight_of(one),
            is_shared=one.sharing != GpuClass.Sharing.NONE,
            used_by=None if used is None else used[one.pk],
            borrowed_by=borrowed[one.pk],
        )
        for one in classes
    }


def with_faults(
    cluster: Cluster, classes: Collection[GpuClass], capacity: Mapping[int, Capacity]
) -> Mapping[int, Capacity]:
    """GPUs with open faults count as unhealthy, also if Kubernetes still offers them; no other figure changes."""
    added = added_by_faults(cluster, classes)
    return {
        pk: one if one.unhealthy is None else replace(one, unhealthy=one.unhealthy + added.get(pk, 0))
        for pk, one in capacity.items()
    }


def weighted_totals(figures: Iterable[ClassFigures]) -> WeightedTotals:
    """If several classes select the same units, only the first counts them."""
    found = list(figures)
    counted: set[tuple[object, ...]] = set()
    own = []
    for one in found:
        own.append(_own(one, counted))
        counted |= {part.key for part in one.capacity.parts}
    pairs = list(zip(found, own, strict=True))
    return WeightedTotals(
        exclusive=_total([pair for pair in pairs if not pair[0].is_shared]),
        shared=_total([pair for pair in pairs if pair[0].is_shared]),
    )


def weight_of(one: GpuClass) -> Fraction:
    """Returns the exact weight of one unit of the class."""
    return weights.exact_weight(one.weight, one.replicas)


def gpus_per_unit(one: GpuClass) -> Fraction:
    """Returns the part of a physical GPU that a unit takes, whatever else staff lets it count."""
    return weights.physical_share(
        product=one.product, partition=one.partition, replicas=one.replicas, weight=one.weight
    )


def units_per_gpu(one: GpuClass) -> int | None:
    """Returns the most units that a physical GPU holds; None if it is not known."""
    return weights.most_on_a_gpu(product=one.product, partition=one.partition, replicas=one.replicas)


@dataclass(frozen=True)
class _TeamTotals:
    """Units of a class that no earlier class has counted."""

    allocatable: int
    free: int
    used: int


def _own(one: ClassFigures, counted: Collection[tuple[object, ...]]) -> _TeamTotals | None:
    if not one.capacity.is_known:
        return None
    parts = [part for part in one.capacity.parts if part.key not in counted]
    ready = [part for part in parts if part.ready]
    return _TeamTotals(
        allocatable=sum(part.allocatable for part in ready),
        free=sum(part.free for part in ready if part.schedulable),
        used=sum(part.used for part in parts),
    )


def _total(pairs: Collection[tuple[ClassFigures, _TeamTotals | None]]) -> WeightedTotal:
    def weighed(units: Iterable[tuple[ClassFigures, int | None]]) -> Fraction | None:
        total = Fraction(0)
        for one, number in units:
            if number is None:
                return None
            total += one.weight * number
        return total

    return WeightedTotal(
        allocatable=weighed((one, own.allocatable if own else None) for one, own in pairs),
        free=weighed((one, own.free if own else None) for one, own in pairs),
        used=weighed((one, own.used if own else None) for one, own in pairs),
        promised=sum((one.weight * one.promised for one, _ in pairs), Fraction(0)),
        queued=weighed((one, one.queued) for one, _ in pairs),
        borrowed=weighed((one, one.borrowed) for one, _ in pairs),
    )


def _borrowed(used: Mapping[str, int], own: Mapping[int, TeamUnits], teams: Mapping[str, int]) -> dict[str, int]:
    """By namespace, for teams that borrow; a team has one namespace in a cluster."""
    found = {}
    for namespace, units in used.items():
        if namespace in teams:
            team = own.get(teams[namespace])
            found[namespace] = units - (team.keepable if team else 0)
    return {namespace: units for namespace, units in found.items() if units > 0}


def _cards(one: GpuClass, capacity: Capacity) -> Fraction | None:
    is_mig = one.vendor == "nvidia" and one.partition != "none" and one.sharing == GpuClass.Sharing.NONE
    return gpus_per_unit(one) * capacity.free if is_mig and capacity.free is not None else None
