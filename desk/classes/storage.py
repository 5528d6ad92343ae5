"""The storage class for users: GiB of quota and of use; it has no GPU, no node and no queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import ClassPrice, GpuClass
from desk.classes.prices import latest_prices
from desk.classes.viewer import Viewer, viewer_of
from portal.core.errors import Refusal
from tenants.grants import queries as grant_queries
from workloads.forecast.queries import unit_price


@dataclass(frozen=True)
class StorageCard:
    """`promised`: a sentence about units allocated to teams; `team`: the team's quota and use, "" without a team."""

    slug: str
    name: str
    href: str
    summary: str
    note: str
    price: str
    promised: str
    team: str
    request_href: str
    request_refusal: Refusal | None


@dataclass(frozen=True)
class StoragePage:
    card: StorageCard
    facts: tuple[dict[str, Any], ...]
    eligibility: str
    prices: tuple[ClassPrice, ...]


def storage_cards(viewer: Viewer, classes: list[GpuClass]) -> list[StorageCard]:
    """No query if there is no storage class, else five."""
    if not classes:
        return []
    at = timezone.now()
    promised = grant_queries.promised_units(classes[0].cluster, at)
    return [_card(viewer, one, promised.get(one.pk, 0)) for one in classes]


def storage_page(by: Actor, one: GpuClass) -> StoragePage:
    card = storage_cards(viewer_of(by), [one])[0]
    limit = "not set" if one.promise_limit is None else f"{one.promise_limit} GiB"
    facts = (
        {"term": "Counted as", "value": "GiB requested by all volumes of a team"},
        {"term": "Price", "value": f"{card.price} per GiB-hour" if card.price else "free of charge"},
        {"term": "Allocation limit", "value": limit},
        {"term": "Limited by", "value": "requests.storage of the namespace's ResourceQuota", "code": True},
    )
    return StoragePage(card, facts, one.eligibility, tuple(latest_prices(by, one)))


def _card(viewer: Viewer, one: GpuClass, promised: int) -> StorageCard:
    limit = "" if one.promise_limit is None else f" of {one.promise_limit}"
    return StorageCard(
        slug=one.slug,
        name=one.name,
        href=reverse("class", args=[one.slug]),
        summary=one.summary,
        note=catalog.retirement_notice(one),
        price=unit_price(one),
        promised=f"Allocated to teams: {promised}{limit} GiB.",
        team=_team(viewer, one),
        request_href=viewer.request_href(one),
        request_refusal=viewer.request_refusal(one),
    )


def _team(viewer: Viewer, one: GpuClass) -> str:
    if viewer.tenant is None or viewer.namespace is None:
        return ""
    held = grant_queries.units_in_force(viewer.tenant.pk, timezone.now()).get(one.pk, 0)
    used = capacity_queries.units_used(one.cluster, [one], namespace=viewer.namespace.name).get(one.pk)
    told = "usage unknown" if used is None else f"{used} GiB used"
    return f"{viewer.tenant.name}: quota of {held} GiB, {told}."
