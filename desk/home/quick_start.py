"""Quick start: repeats a user's last launches that would start now on free units."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from catalog.models import GpuClass, Image
from portal.ui.text import plural
from tenants.class_access.queries import usable_by
from tenants.models import Namespace
from workloads.forecast.queries import LaunchSize, class_figures
from workloads.launch.form import links
from workloads.models import Workload

SHOWN = 3
LAST_LOOKED_AT = 20


@dataclass(frozen=True)
class QuickStart:
    """`href`: the launch form with these values."""

    label: str
    note: str
    href: str


def quick_starts(by: Actor, namespace: Namespace) -> list[QuickStart]:
    """For a user who may launch here. At most twelve queries. Not a fragment of the stream: it is specific to the
    user, and the page fetches it again when the stream says that something changed.
    """
    free = _free(namespace)
    if not free:
        return []
    last = Workload.objects.filter(namespace=namespace, created_by_id=by.user_id or 0).select_related("gpu_class")
    images = {(image.kind, image.reference): image.name for image in Image.objects.all()}
    found: dict[tuple[str, int, str], QuickStart] = {}
    for workload in last.order_by("-id")[:LAST_LOOKED_AT]:
        image = images.get((workload.kind, workload.image.partition("@")[0]))
        # All workers on one node: whether several nodes together have room is not known.
        units = workload.total_units
        key = (workload.gpu_class.slug, units, workload.image)
        if image and key not in found and units <= free.get(workload.gpu_class, 0) and _takes(workload):
            found[key] = _again(namespace, workload, image)
    named = {slug for slug, _units, _image in found}
    found |= {(one.slug, 0, ""): _any(namespace, one, units) for one, units in free.items() if one.slug not in named}
    return list(found.values())[:SHOWN]


def _free(namespace: Namespace) -> dict[GpuClass, int]:
    """Returns the most units that one launch could have now, by class, without classes at 0."""
    usable = GpuClass.objects.filter(usable_by(namespace.tenant_id), cluster_id=namespace.cluster_id)
    active = usable.filter(life_cycle=GpuClass.LifeCycle.ACTIVE).exclude(interface=GpuClass.Interface.STORAGE)
    classes = list(active.order_by("slug"))
    figures = class_figures(namespace, classes, LaunchSize())
    units = {one: min(figures[one.slug].units_now, one.units_per_workload) for one in classes}
    return {one: count for one, count in units.items() if count}


def _takes(workload: Workload) -> bool:
    return workload.gpu_class.kinds in (GpuClass.Kinds.ANY, workload.kind)


def _again(namespace: Namespace, workload: Workload, image: str) -> QuickStart:
    """Repeats a launch: with all of its values while the workload exists, else with those that a link can carry."""
    gpu_class = workload.gpu_class
    size = plural(workload.total_units, catalog.unit_of(gpu_class))
    if workload.delete_requested_at is None and workload.deleted_at is None:
        return QuickStart(
            gpu_class.name, f"{size}, {image}, same as {workload.name}", _form(namespace, f"like={workload.name}")
        )
    values = {"gpu_class": gpu_class.slug, "image": image, "units": workload.units, "workers": workload.workers}
    values["kind"] = workload.kind
    return QuickStart(gpu_class.name, f"{size}, {image}, same as last time", _form(namespace, links.write_link(values)))


def _any(namespace: Namespace, gpu_class: GpuClass, units: int) -> QuickStart:
    note = f"up to {plural(units, catalog.unit_of(gpu_class))} on one node"
    return QuickStart(gpu_class.name, note, _form(namespace, links.write_link({"gpu_class": gpu_class.slug})))


def _form(namespace: Namespace, query: str) -> str:
    return f"{reverse('launch', args=[namespace.tenant.slug])}?{query}"
