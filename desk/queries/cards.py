"""The catalog as a person meets it: every open class with what is free, and what their own team has of it."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils import timezone

from accounts.actor import Actor
from catalog import contract
from catalog import queries as catalog
from catalog.models import GpuClass
from catalog.queries import Capacity
from desk.queries import first_team
from portal.errors import Refusal
from portal.quota_bar import plural
from tenants import policy as tenants_policy
from tenants import queries as tenants
from tenants.models import Tenant
from workloads import policy
from workloads import queries as workloads
from workloads.queries.launching import price_of

EXCLUSIVE, SHARED = "exclusive", "shared"


@dataclass(frozen=True)
class Card:
    """One class. `free` None: nobody knows."""

    slug: str
    name: str
    summary: str
    tag: str
    unit: str
    state: str | None
    free: int | None
    allocatable: int | None
    one_node: int | None
    per_workload: int
    price: str
    promises: tuple[contract.Promise, ...]
    counted_as: str
    team: str
    launch_href: str
    launch_refusal: Refusal | None
    request_href: str
    request_refusal: Refusal | None


@dataclass(frozen=True)
class _Viewer:
    """The person's own team, and what they may do there."""

    tenant: Tenant | None
    launch: Refusal | None
    request: Refusal | None
    held: dict[int, int]


def cards(by: Actor, *, only: str = "") -> tuple[list[Card], Capacity]:
    """Open classes by slug; `only` "exclusive" or "shared". The capacity carries how old the figures are."""
    cluster = catalog.cluster()
    classes = [one for one in catalog.open_classes(cluster) if only in ("", _sharing(one))]
    capacities = catalog.capacities(cluster, classes)
    viewer = _viewer(by)
    promised = workloads.most_promised(viewer.tenant.pk, [one.pk for one in classes]) if viewer.tenant else {}
    found = [_card(one, capacities[one.pk], viewer, promised.get(one.pk, 0)) for one in classes]
    return found, next(iter(capacities.values()), Capacity())


def _viewer(by: Actor) -> _Viewer:
    tenant = first_team(by)
    if tenant is None:
        return _Viewer(None, None, None, {})
    _namespace, team = workloads.team(by, tenant.slug)
    return _Viewer(
        tenant,
        policy.may_launch_in(by, team) or policy.may_add(team),
        tenants_policy.may_file(by, tenants.standing(by, tenant)),
        tenants.units_in_force(tenant.pk, timezone.now()),
    )


def _card(one: GpuClass, capacity: Capacity, viewer: _Viewer, promised: int) -> Card:
    unit = catalog.unit_of(one)
    launch_href = request_href = team = ""
    launch_refusal = None
    if viewer.tenant is not None:
        launch_href = f"{reverse('launch', args=[viewer.tenant.slug])}?gpu_class={one.slug}"
        request_href = reverse("request-new", args=[viewer.tenant.slug])
        held = viewer.held.get(one.pk, 0)
        team = f"{viewer.tenant.name} holds {plural(held, unit)}." if held else f"{viewer.tenant.name} holds none."
        launch_refusal = viewer.launch or policy.may_ever_start(workloads.facts_of(one, promised, 1), 1)
    return Card(
        slug=one.slug,
        name=one.name,
        summary=one.summary,
        tag=_tag(one),
        unit=unit,
        state="Retiring" if one.life_cycle == GpuClass.LifeCycle.RETIRING else None,
        free=capacity.free,
        allocatable=capacity.allocatable,
        one_node=capacity.most_on_one_node,
        per_workload=one.units_per_workload,
        price=price_of(one),
        promises=contract.promises(catalog.axes_of(one)),
        counted_as=_counted_as(one, unit),
        team=team,
        launch_href=launch_href,
        launch_refusal=launch_refusal,
        request_href=request_href,
        request_refusal=viewer.request,
    )


def _counted_as(one: GpuClass, unit: str) -> str:
    """Who takes turns has no fraction of a card."""
    if one.sharing == GpuClass.Sharing.TIME_SLICING:
        whole = "slice" if one.partition != "none" else "card"
        return f"Up to {plural(one.replicas, unit)} take turns on one {whole}."
    return f"One {unit} counts as {one.weight.normalize():f} GPU."


def _sharing(one: GpuClass) -> str:
    return EXCLUSIVE if one.sharing == GpuClass.Sharing.NONE else SHARED


def _tag(one: GpuClass) -> str:
    if _sharing(one) == SHARED:
        return "shared"
    return "exclusive slice" if one.partition != "none" else "exclusive"
