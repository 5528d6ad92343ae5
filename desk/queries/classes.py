"""One class in full: its contract, what is there now, what it costs, its life, its images, what to copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.urls import reverse
from django.utils import timezone

from accounts.actor import Actor
from accounts.models import Role
from catalog import images, life_cycle, run_limits
from catalog import queries as catalog
from catalog.contract import Contract, contract
from catalog.failures import Failure, failures
from catalog.models import GpuClass, Image
from cluster.manifests.samples import DEPLOYMENT, JOB, POD, samples
from desk.queries.class_live import Live, live
from desk.queries.entries import image_entries
from desk.queries.viewer import Viewer, never_starts, viewer_of
from portal.errors import Refusal, get_or_refuse
from portal.quota_bar import plural
from tenants import queries as tenants
from workloads import queries as workloads
from workloads.queries.estimates import accuracy
from workloads.queries.launching import price_of

PLACEHOLDER_IMAGE = "registry.example.org/your/image:1"


@dataclass(frozen=True)
class ImageLine:
    """`refusal`: why it does not run on this class; `note`: what else has to be said of it."""

    name: str
    version: str
    kind: str
    contents: str
    refusal: str
    note: str


@dataclass(frozen=True)
class Sample:
    kind: str
    title: str
    text: str


@dataclass(frozen=True)
class Notes:
    """Sentences, "" where there is nothing to say. The successor is a link only for those who may know of it."""

    held: str = ""
    retiring: str = ""
    successor: str = ""
    successor_href: str = ""


@dataclass(frozen=True)
class Doors:
    """What the person may do with it, in their own team. Without a team there is no door."""

    team: str = ""
    launch_href: str = ""
    launch_refusal: Refusal | None = None
    request_href: str = ""
    request_refusal: Refusal | None = None


@dataclass(frozen=True)
class ClassPage:
    slug: str
    name: str
    summary: str
    contract: Contract
    live: Live
    facts: tuple[dict[str, Any], ...]
    interconnect: str
    interconnect_note: str
    interconnect_on: date | None
    eligibility: str
    terms_version: int
    terms: str
    notes: Notes
    images: tuple[ImageLine, ...]
    failures: tuple[Failure, ...]
    samples: tuple[Sample, ...]
    doors: Doors


def find(by: Actor, slug: str) -> GpuClass:
    """Raises Refused (404), for a class that `by` may not know of as for one that does not exist."""
    rows = tenants.visible_classes(by, catalog.cluster()).select_related("cluster", "successor")
    return get_or_refuse(rows, slug=slug)


def class_page(by: Actor, one: GpuClass) -> ClassPage:
    """About twenty queries, whatever the number of nodes, pods and images."""
    axes = catalog.axes_of(one)
    viewer = viewer_of(by)
    return ClassPage(
        slug=one.slug,
        name=one.name,
        summary=one.summary,
        contract=contract(axes),
        live=live(by, one),
        facts=(*_facts(one), *_for_operators(by, one)),
        interconnect=one.get_interconnect_display(),
        interconnect_note=one.interconnect_note,
        interconnect_on=one.interconnect_on,
        eligibility=one.eligibility,
        terms_version=one.terms_version,
        terms=one.terms,
        notes=_notes(by, one),
        images=tuple(_images(one)),
        failures=failures(axes, units_per_workload=one.units_per_workload),
        samples=tuple(_samples(one, namespace=viewer.namespace.name if viewer.namespace else "")),
        doors=_doors(viewer, one),
    )


def _doors(viewer: Viewer, one: GpuClass) -> Doors:
    if viewer.tenant is None:
        return Doors()
    held = tenants.units_in_force(viewer.tenant.pk, timezone.now()).get(one.pk, 0)
    promised = workloads.most_promised(viewer.tenant.pk, [one.pk]).get(one.pk, 0)
    return Doors(
        team=f"{viewer.tenant.name} holds {plural(held, catalog.unit_of(one)) if held else 'none'}.",
        launch_href=viewer.launch_href(one),
        launch_refusal=viewer.launch_refusal(never_starts(one, promised)),
        request_href=viewer.request_href,
        request_refusal=viewer.request_refusal(one),
    )


# ---- parts -------------------------------------------------------------------------------------------------------


def _facts(one: GpuClass) -> Iterable[dict[str, Any]]:
    unit = catalog.unit_of(one)
    price = price_of(one)
    yield {"term": "Price", "value": f"{price} for each {unit} and hour" if price else "free of charge"}
    if one.interface != GpuClass.Interface.NONE:
        yield {"term": "Weight", "value": f"{one.weight.normalize():f} in sums over classes"}
    yield {
        "term": f"With each {unit}",
        "value": f"{plural(one.cpu_per_unit, 'cpu core')}, {one.memory_gib_per_unit} GiB of the node's memory",
    }
    yield {"term": "In one workload", "value": f"at most {plural(one.units_per_workload, unit)}"}
    yield {"term": "Runs", "value": one.get_kinds_display()}
    for term, value in run_limits.facts(one.run_hours_limit, one.idle_stop_minutes, one.production_limit):
        yield {"term": term, "value": value}
    if one.borrowing_limit:
        yield {"term": "Borrowing", "value": f"up to {plural(one.borrowing_limit, unit)} beyond a team's own"}
    if one.product:
        yield {"term": "Product", "value": one.product}
    if one.partition != "none":
        yield {"term": "Partition", "value": one.partition, "code": True}
    if one.resource:
        yield {"term": "Counted by", "value": one.resource, "code": True}
    if one.device_class:
        yield {"term": "Device class", "value": one.device_class, "code": True}


def _for_operators(by: Actor, one: GpuClass) -> Iterable[dict[str, Any]]:
    """One query for operators, none for others."""
    if by.has_role(Role.OPERATOR) and (said := accuracy(one).sentence):
        yield {"term": "Start estimates", "value": said}


def _notes(by: Actor, one: GpuClass) -> Notes:
    known = dict(tenants.visible_classes(by, one.cluster).values_list("pk", "name"))
    successor = one.successor if one.successor_id in known else None
    return Notes(
        held=life_cycle.hold(one, now=timezone.now()),
        retiring=catalog.retirement(one, known),
        successor=f"See {successor.name}" if successor else "",
        successor_href=reverse("class", args=[successor.slug]) if successor else "",
    )


def _images(one: GpuClass) -> Iterable[ImageLine]:
    """Two queries. Those that fit first."""
    rows = [
        image for image in Image.objects.select_related("successor") if one.kinds in (GpuClass.Kinds.ANY, image.kind)
    ]
    found = {entry.image.pk: entry for entry in image_entries(rows, gpu_class=one)}
    for image in images.in_order(rows, timezone.localdate(), lambda image: found[image.pk].reason):
        entry = found[image.pk]
        yield ImageLine(
            name=image.name,
            version=image.version,
            kind=image.kind,
            contents=image.contents,
            refusal=entry.reason,
            note=f"{entry.deprecation} {entry.caution}".strip(),
        )


def _samples(one: GpuClass, *, namespace: str) -> Iterable[Sample]:
    image = Image.objects.filter(kind="job", deprecated_since=None).first()
    reference = images.pinned(image.reference, image.digest) if image is not None else PLACEHOLDER_IMAGE
    texts = samples(catalog.pod_spec(one, units=1, image=reference, namespace=namespace))
    for kind, title in ((JOB, "Job"), (POD, "Pod"), (DEPLOYMENT, "Deployment")):
        yield Sample(kind, title, texts[kind])
