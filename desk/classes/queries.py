"""The page of one class: contract, capacity, price, life cycle, images, and manifests to copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Role
from catalog.classes import life_cycle
from catalog.classes import queries as catalog
from catalog.classes.capacity import weights
from catalog.classes.topology import topology_text
from catalog.classes.validation import run_limits
from catalog.contract.guarantees import contract_of
from catalog.contract.types import Contract
from catalog.guide.troubleshooting import KnownFailure, known_failures
from catalog.images import compatibility, image_references
from catalog.interconnect.queries import measured_sentences
from catalog.models import ClassPrice, GpuClass, Image
from catalog.trials.queries import trials_of
from catalog.trials.shown import counted_text, selector_text
from cluster.manifests.samples import DEPLOYMENT, JOB, POD, sample_yaml
from cluster.reads import queries as read_queries
from desk.capacity.totals import weight_of
from desk.classes.api_rows import image_rows
from desk.classes.live_status import ClassLive, class_live
from desk.classes.prices import latest_prices
from desk.classes.viewer import Viewer, never_starts, viewer_of
from portal.core.errors import Refusal, get_or_refuse
from portal.ui.text import plural
from tenants.class_access import queries as class_access_queries
from tenants.grants import queries as grant_queries
from usage.right_size.replicas.queries import replicas_advice
from usage.right_size.replicas.types import FewerReplicas
from workloads.forecast.queries import estimate_accuracy, unit_price
from workloads.launch import queries as launch_queries

PLACEHOLDER_IMAGE = "registry.example.org/your/image:1"


@dataclass(frozen=True)
class ImageLine:
    """`refusal`: why it does not run on this class; `note`: other remarks."""

    pk: int
    name: str
    version: str
    kind: str
    contents: str
    refusal: str
    note: str


@dataclass(frozen=True)
class ManifestSample:
    kind: str
    title: str
    text: str


@dataclass(frozen=True)
class LifeCycleNotes:
    """Sentences, "" if there is none. The successor is a link only for users who may see it."""

    held: str = ""
    retiring: str = ""
    advice: str = ""
    successor: str = ""
    successor_href: str = ""


@dataclass(frozen=True)
class AvailableActions:
    """What the user may do with the class in the user's own team. Nothing without a team."""

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
    live: ClassLive
    facts: tuple[dict[str, Any], ...]
    interconnect: str
    interconnect_note: str
    interconnect_on: date | None
    # Sentences about what was measured on its nodes; none: nothing was, None: the nodes are unknown.
    measured: list[str] | None
    eligibility: str
    terms_version: int
    terms: str
    notes: LifeCycleNotes
    images: tuple[ImageLine, ...]
    failures: tuple[KnownFailure, ...]
    samples: tuple[ManifestSample, ...]
    doors: AvailableActions
    prices: tuple[ClassPrice, ...]
    fewer_replicas: FewerReplicas | None


def visible_class(by: Actor, slug: str) -> GpuClass:
    """Raises Refused (404), both if `by` may not see the class and if it does not exist."""
    rows = class_access_queries.visible_classes(by, read_queries.current_cluster()).select_related(
        "cluster", "successor"
    )
    return get_or_refuse(rows, slug=slug)


def class_page(by: Actor, one: GpuClass) -> ClassPage:
    """About twenty queries, whatever the number of nodes, pods and images."""
    axes, live = catalog.axes_of(one), class_live(by, one)
    viewer = viewer_of(by)
    return ClassPage(
        slug=one.slug,
        name=one.name,
        summary=one.summary,
        contract=contract_of(axes),
        live=live,
        facts=(*_facts(one, live), *_for_operators(by, one)),
        interconnect=one.get_interconnect_display(),
        interconnect_note=one.interconnect_note,
        interconnect_on=one.interconnect_on,
        measured=measured_sentences(one.cluster, [one])[one.pk],
        eligibility=one.eligibility,
        terms_version=one.terms_version,
        terms=one.terms,
        notes=_notes(by, one),
        images=tuple(class_images(one)),
        failures=known_failures(axes, units_per_workload=one.units_per_workload),
        samples=tuple(_samples(one, namespace=viewer.namespace.name if viewer.namespace else "")),
        doors=_doors(viewer, one),
        prices=tuple(latest_prices(by, one)),
        fewer_replicas=_fewer_replicas(by, one, live),
    )


def _fewer_replicas(by: Actor, one: GpuClass, live: ClassLive) -> FewerReplicas | None:
    """For operators, administrators and auditors: it tells of the workloads of all teams."""
    if not by.oversees:
        return None
    units, promised = live.capacity.allocatable, live.figures.promised
    return replicas_advice(one, units=units, promised=promised, at=timezone.now())


def _doors(viewer: Viewer, one: GpuClass) -> AvailableActions:
    if viewer.tenant is None:
        return AvailableActions()
    held = grant_queries.units_in_force(viewer.tenant.pk, timezone.now()).get(one.pk, 0)
    promised = launch_queries.peak_grants(viewer.tenant.pk, [one.pk]).get(one.pk, 0)
    return AvailableActions(
        team=f"{viewer.tenant.name}: {f'quota of {plural(held, catalog.unit_of(one))}' if held else 'no quota'}.",
        launch_href=viewer.launch_href(one),
        launch_refusal=viewer.launch_refusal(never_starts(one, promised)),
        request_href=viewer.request_href(one),
        request_refusal=viewer.request_refusal(one),
    )


# ---- facts of the page -------------------------------------------------------------------------------------------


def _facts(one: GpuClass, live: ClassLive) -> Iterable[dict[str, Any]]:
    unit = catalog.unit_of(one)
    price = unit_price(one)
    yield {"term": "Price", "value": f"{price} per {unit}-hour" if price else "free of charge"}
    if one.interface != GpuClass.Interface.NONE:
        yield {"term": "Weight", "value": f"{weights.weight_text(weight_of(one))} GPU per unit in totals"}
    yield {
        "term": f"Per {unit}",
        "value": f"{plural(one.cpu_per_unit, 'CPU core')}, {one.memory_gib_per_unit} GiB of node memory",
    }
    yield {"term": "Per workload", "value": f"at most {plural(one.units_per_workload, unit)}"}
    yield {"term": "Workloads", "value": one.get_kinds_display()}
    if one.max_units is not None:
        added = f"nodes are added on demand, usually within {plural(one.node_minutes, 'minute')}"
        yield {"term": "Autoscaling", "value": f"up to {plural(one.max_units, unit)}; {added}"}
    for term, value in run_limits.run_limit_facts(one.run_hours_limit, one.idle_stop_minutes, one.production_limit):
        yield {"term": term, "value": value}
    if one.interface in (GpuClass.Interface.DEVICE_PLUGIN, GpuClass.Interface.DRA) and one.sharing == "none":
        term, value = run_limits.idle_fact(one.idle_action, one.idle_minutes)
        yield {"term": term, "value": value}
    if not one.is_storage:
        term, value = run_limits.log_retention_fact(one.log_retention_days)
        yield {"term": term, "value": value}
    if one.borrowing_limit:
        yield {"term": "Borrowing", "value": f"up to {plural(one.borrowing_limit, unit)} beyond the team's quota"}
    if live.topology is not None:
        yield {"term": "Topology", "value": topology_text(live.topology.topology)}
    if one.product:
        yield {"term": "Product", "value": one.product}
    if one.partition != "none":
        yield {"term": "Partition", "value": one.partition, "code": True}
    if one.resource:
        yield {"term": "Kubernetes resource", "value": one.resource, "code": True}
    if one.device_class:
        yield {"term": "Device class", "value": one.device_class, "code": True}


def _for_operators(by: Actor, one: GpuClass) -> Iterable[dict[str, Any]]:
    """One query for operators, two for a DRA class; none for others."""
    if not by.has_role(Role.OPERATOR):
        return
    if one.interface == GpuClass.Interface.DRA:
        counted, selected = trials_of(one)
        if one.cluster.has_kueue:
            yield {"term": "Device class on the cluster", "value": counted_text(counted, one.resource)}
        yield {"term": "CEL selector on the cluster", "value": selector_text(selected)}
    if said := estimate_accuracy(one).sentence:
        yield {"term": "Start estimates", "value": said}


def _notes(by: Actor, one: GpuClass) -> LifeCycleNotes:
    known = dict(class_access_queries.visible_classes(by, one.cluster).values_list("pk", "name"))
    successor = one.successor if one.successor_id in known else None
    return LifeCycleNotes(
        held=life_cycle.hold_sentence(one, now=timezone.now()),
        retiring=catalog.retirement_notice(one, known),
        advice=catalog.migration_advice(one, successor.name if successor else ""),
        successor=f"See {successor.name}" if successor else "",
        successor_href=reverse("class", args=[successor.slug]) if successor else "",
    )


def class_images(one: GpuClass) -> Iterable[ImageLine]:
    """Two queries. Images that fit come first."""
    rows = [
        image for image in Image.objects.select_related("successor") if one.kinds in (GpuClass.Kinds.ANY, image.kind)
    ]
    found = {entry.image.pk: entry for entry in image_rows(rows, gpu_class=one)}
    for image in compatibility.sort_images(rows, timezone.localdate(), lambda image: found[image.pk].reason):
        entry = found[image.pk]
        yield ImageLine(
            pk=image.pk,
            name=image.name,
            version=image.version,
            kind=image.kind,
            contents=image.contents,
            refusal=entry.reason,
            note=f"{entry.deprecation} {entry.caution}".strip(),
        )


def _samples(one: GpuClass, *, namespace: str) -> Iterable[ManifestSample]:
    image = Image.objects.filter(kind="job", deprecated_since=None).first()
    reference = image_references.pinned(image.reference, image.digest) if image is not None else PLACEHOLDER_IMAGE
    spec = catalog.pod_spec(one, units=1, image=reference, namespace=namespace)
    texts = sample_yaml(spec, one.cluster.site_profile)
    for kind, title in ((JOB, "Job"), (POD, "Pod"), (DEPLOYMENT, "Deployment")):
        yield ManifestSample(kind, title, texts[kind])
