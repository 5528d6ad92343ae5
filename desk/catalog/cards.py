"""The catalog as cards: every class that a user may see, with its free units and their team's quota."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.urls import reverse

from catalog.classes import queries as catalog
from catalog.classes.capacity import weights
from catalog.classes.policy import is_held
from catalog.contract import guarantees
from catalog.contract import types as contract_types
from catalog.guide.reasons import start_estimate
from catalog.models import GpuClass
from desk.capacity.totals import gpus_per_unit
from desk.catalog.queries import CatalogData, CatalogItem
from desk.catalog.unit_grid import UnitGrid, unit_grid
from desk.classes import storage
from desk.classes.viewer import Viewer
from portal.core.errors import Refusal
from portal.ui.text import plural, price_text

ALL, EXCLUSIVE, SHARED, TEAM = "", "exclusive", "shared", "team"


@dataclass(frozen=True)
class ClassCard:
    """One class. Numbers None: unknown. `notes`: sentences about its pause and its retirement."""

    slug: str
    name: str
    href: str
    summary: str
    tags: tuple[str, ...]
    is_shared: bool
    is_held: bool
    unit: str
    notes: tuple[str, ...]
    state: str
    free: int | None
    allocatable: int | None
    one_node: int | None
    per_workload: int
    price: str
    contract: contract_types.Contract
    counted_as: str
    promised: str
    team: str
    nodes: UnitGrid | None
    launch_label: str
    launch_href: str
    launch_refusal: Refusal | None
    at_once: bool
    request_label: str
    request_href: str
    request_refusal: Refusal | None
    team_may_use: bool


@dataclass(frozen=True)
class FilterTab:
    """`count` None if the tab has no number (All)."""

    key: str
    label: str
    count: int | None
    is_current: bool


@dataclass(frozen=True)
class CatalogOverview:
    """`every`: all classes that the user may see; `cards`: those that match the filter. `start_href`: for users without
    a team who are not staff.
    """

    cards: list[ClassCard]
    every: list[ClassCard]
    filters: list[FilterTab]
    as_of: datetime | None
    is_stale: bool
    team: str
    start_href: str
    storage: list[storage.StorageCard]


def catalog_overview(shelf: CatalogData, *, only: str = ALL) -> CatalogOverview:
    every = class_cards(shelf)
    keeps = {
        ALL: ("All", every),
        EXCLUSIVE: ("Exclusive", [card for card in every if not card.is_shared]),
        SHARED: ("Shared", [card for card in every if card.is_shared]),
    }
    if shelf.viewer.tenant is not None:
        keeps[TEAM] = ("Available to my team", [card for card in every if card.team_may_use])
    only = only if only in keeps else ALL
    return CatalogOverview(
        cards=keeps[only][1],
        every=every,
        filters=[
            FilterTab(key, label, None if key == ALL else len(found), key == only)
            for key, (label, found) in keeps.items()
        ],
        as_of=shelf.capacity.as_of,
        is_stale=not shelf.capacity.is_current,
        team=shelf.viewer.tenant.name if shelf.viewer.tenant else "",
        start_href="" if shelf.viewer.tenant or shelf.viewer.is_staff else reverse("start"),
        storage=storage.storage_cards(shelf.viewer, list(shelf.storage)),
    )


def class_cards(shelf: CatalogData) -> list[ClassCard]:
    at_once = {option.slug: start_estimate(option, 1)[0] for option in shelf.options()}
    return [_card(item, shelf.viewer, at_once[item.gpu_class.slug]) for item in shelf.items]


def _card(item: CatalogItem, viewer: Viewer, at_once: bool) -> ClassCard:
    one, capacity = item.gpu_class, item.capacity
    found = guarantees.contract_of(catalog.axes_of(one))
    launch_refusal = viewer.launch_refusal(item.never)
    return ClassCard(
        slug=one.slug,
        name=one.name,
        href=reverse("class", args=[one.slug]),
        summary=one.summary,
        tags=tags(item, found.tier),
        is_shared=item.is_shared,
        is_held=is_held(one),
        unit=item.unit,
        notes=tuple(note for note in (item.held, item.retiring) if note),
        state="Scheduling paused" if is_held(one) else "Retiring" if item.retiring else "",
        free=capacity.free,
        allocatable=capacity.allocatable,
        one_node=capacity.most_on_one_node,
        per_workload=one.units_per_workload,
        price=money(one.price_per_unit_hour),
        contract=found,
        counted_as=counted_as(one, item),
        promised=_promised(item),
        team=_team(item, viewer),
        nodes=unit_grid(item.nodes, unit=item.unit),
        launch_label=_launch_label(item, at_once, launch_refusal),
        launch_href=viewer.launch_href(one),
        launch_refusal=launch_refusal,
        at_once=at_once and launch_refusal is None,
        request_label="Request more" if item.granted else "Request",
        request_href=viewer.request_href(one),
        request_refusal=viewer.request_refusal(one),
        team_may_use=item.never is None,
    )


def money(price: Decimal) -> str:
    """Returns "" if free of charge; else all decimals of the price, at least two."""
    return price_text(price) if price else ""


def tags(item: CatalogItem, tier: str) -> tuple[str, ...]:
    if item.is_shared:
        first = "shared"
    else:
        first = "exclusive slice" if item.gpu_class.partition != "none" else "exclusive"
    return (first, tier) if tier else (first,)


def counted_as(one: GpuClass, item: CatalogItem) -> str:
    """A time-sliced share is not a fraction of a GPU."""
    unit = item.unit
    if one.sharing == GpuClass.Sharing.TIME_SLICING:
        whole = "slice" if one.partition != "none" else "GPU"
        return f"Up to {plural(one.replicas, unit)} on one {whole}, time-sliced; not added to GPU totals."
    if one.interface == GpuClass.Interface.NONE:
        return "Counted in CPU cores, not in GPUs."
    if unit == "GPU" and item.figures.weight == 1:
        return "Counted in GPUs."
    weight, takes = item.figures.weight, gpus_per_unit(one)
    text = f"1 {unit} = {weights.weight_text(weight)} GPU"
    if one.partition != "none" and takes != weight:
        counts, most = weights.weight_text(weight), weights.weight_text(takes)
        text = f"1 {unit} counts as {counts} GPU and takes at most {most} of one"
    cards, free = item.figures.cards, item.capacity.free
    if cards is None or not free:
        return f"{text}."
    return f"{text}; {free} free (= {float(cards):.1f} GPU)."


def _promised(item: CatalogItem) -> str:
    if item.capacity.allocatable is None:
        return ""
    queued = item.figures.queued
    waits = f"; {queued} more queued" if queued else ""
    return f"Allocated to teams: {item.figures.promised} of {item.capacity.allocatable}{waits}."


def _team(item: CatalogItem, viewer: Viewer) -> str:
    if viewer.tenant is None:
        return ""
    name = viewer.tenant.name
    waits = f", {item.queued} queued" if item.queued else ""
    if item.granted or item.used:
        borrowed = item.borrowed
        more = f", {borrowed} of them borrowed" if borrowed else ""
        used = (
            f"{item.used} of {item.granted} used"
            if item.used is not None
            else f"quota of {item.granted}, usage unknown"
        )
        return f"{name}: {used}{more}{waits}."
    may = item.gpu_class.borrowing_limit
    return f"{name}: no quota; {f'may borrow up to {may}' if may else 'borrowing is off'}{waits}."


def _launch_label(item: CatalogItem, at_once: bool, refusal: Refusal | None) -> str:
    if refusal is not None or item.capacity.free is None:
        return "Launch"
    if is_held(item.gpu_class):
        return "Launch (scheduling paused)"
    if at_once:
        return "Launch (starts now)"
    borrows = not item.left and item.gpu_class.borrowing_limit
    return f"Launch (borrowed {item.unit})" if borrows else "Launch (will be queued)"
