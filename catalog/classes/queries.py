"""Reads of the catalog: classes as pages and the API show them, with capacity from the mirror."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from catalog.classes import life_cycle
from catalog.classes.capacity.autoscaling import coming_sentence
from catalog.classes.capacity.queries import capacities
from catalog.contract.types import Axes
from catalog.discovery import mig_profiles
from catalog.models import GpuClass
from cluster.manifests import names
from cluster.manifests.node_removal.spot import spot_label
from cluster.manifests.run_spec import PodSpec
from cluster.models import Cluster
from portal.core.sql import select

LifeCycle = GpuClass.LifeCycle
# States that users see: a draft is for operators only, a retired class has no quota and no runs.
OPEN_STATES = (LifeCycle.ACTIVE, LifeCycle.RETIRING)


def sharing_of(one: GpuClass) -> str:
    """Returns `exclusive`, or the kind of sharing and its number: `time-sliced ×4`."""
    return f"{one.get_sharing_display()} ×{one.replicas}" if one.sharing != GpuClass.Sharing.NONE else "exclusive"


def unit_of(one: GpuClass) -> str:
    """Returns the name of one unit: GPU, slice, share, core or GiB."""
    if one.is_storage:
        return "GiB"
    if one.interface == GpuClass.Interface.NONE:
        return "core"
    if one.sharing != GpuClass.Sharing.NONE:
        return "share"
    return "slice" if one.partition != "none" else "GPU"


def counted_in(one: GpuClass) -> str:
    """Returns `unit` for sentences that do not distinguish a GPU from a slice, or GiB."""
    return "GiB" if one.is_storage else "unit"


def axes_of(gpu_class: GpuClass) -> Axes:
    """Returns the axes from which the class's contract is computed."""
    return Axes(
        vendor=gpu_class.vendor,
        partition=gpu_class.partition,
        sharing=gpu_class.sharing,
        replicas=gpu_class.replicas,
        memory_mib=gpu_class.memory_mib,
        interface=gpu_class.interface,
        resource=gpu_class.resource,
        slices_on_gpu=_slices_on_gpu(gpu_class),
        is_spot=spot_label(gpu_class.node_labels) is not None,
    )


def _slices_on_gpu(gpu_class: GpuClass) -> int | None:
    card = mig_profiles.card_of(gpu_class.product) if gpu_class.partition != "none" else None
    profile = mig_profiles.profile_of(gpu_class.partition, card) if card is not None else None
    return profile.most if profile is not None else None


def pod_spec(gpu_class: GpuClass, *, units: int, image: str, namespace: str) -> PodSpec:
    """Returns a pod with this many units, and the cpu and memory that the class guarantees for each."""
    return PodSpec(
        namespace=namespace,
        gpu_class=gpu_class.slug,
        units=units,
        interface=gpu_class.interface,
        resource=gpu_class.resource,
        device_class=gpu_class.device_class,
        device_selector=gpu_class.device_selector,
        node_labels=gpu_class.node_labels,
        tolerations=tuple(gpu_class.tolerations),
        image=image,
        cpu=units * gpu_class.cpu_per_unit,
        memory_gib=units * gpu_class.memory_gib_per_unit,
        is_autoscaled=gpu_class.is_autoscaled,
    )


def flavor_name(gpu_class: GpuClass) -> str:
    """Returns "" for a class without GPUs. Includes tolerations: in a flavor with a topology they are immutable, and so
    is the topology itself.
    """
    if not gpu_class.resource:
        return ""
    tolerations = {
        f"toleration {index}": json.dumps(one, sort_keys=True) for index, one in enumerate(gpu_class.tolerations)
    }
    topology = "none" if gpu_class.is_autoscaled else gpu_class.topology
    named = {"topology": topology} if topology else {}
    return names.flavor_name(gpu_class.slug, {**gpu_class.node_labels, **tolerations, **named})


def has_topology(gpu_class: GpuClass) -> bool:
    """Kueue admits to a flavor with a topology only what fits on nodes that are there: an autoscaler would never see a
    pod.
    """
    return gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN and not gpu_class.is_autoscaled


def topology_name(gpu_class: GpuClass) -> str:
    """The Topology of its flavor; "": none."""
    return (gpu_class.topology or names.TOPOLOGY) if has_topology(gpu_class) else ""


def node_coming_sentence(gpu_class: GpuClass) -> str:
    """For a class without enough nodes; "" if no nodes are added."""
    return coming_sentence(gpu_class.node_minutes) if gpu_class.is_autoscaled else ""


def open_classes(cluster: Cluster) -> QuerySet[GpuClass]:
    return GpuClass.objects.filter(cluster=cluster, life_cycle__in=OPEN_STATES).order_by("slug")


def promise_limits(classes: Collection[GpuClass]) -> dict[int, int | None]:
    """Allocation limit of each class in units: staff's limit, else allocatable; None: unknown."""
    typed = {gpu_class.pk: gpu_class.promise_limit for gpu_class in classes}
    open_ended = [gpu_class for gpu_class in classes if gpu_class.promise_limit is None]
    if open_ended:
        found = capacities(open_ended[0].cluster, open_ended)
        typed |= {one.pk: found[one.pk].limit(one) for one in open_ended}
    return typed


def status_notice(gpu_class: GpuClass, known: Mapping[int, str]) -> str:
    """Returns sentences about its hold and its end (see `retirement_notice`); "" if there is neither."""
    return f"{life_cycle.hold_sentence(gpu_class, now=timezone.now())} {retirement_notice(gpu_class, known)}".strip()


def fetch_successors(classes: Collection[GpuClass]) -> None:
    """For classes that were read without them. One query if any has one."""
    ids = {one.successor_id for one in classes} - {None}
    found = {one.pk: one for one in select(GpuClass, "id = ANY(%s)", [list(ids)])} if ids else {}
    for one in classes:
        one.successor = found.get(one.successor_id or 0)


def open_successor(gpu_class: GpuClass) -> GpuClass | None:
    """Returns the successor, unless it is not open (any more) or not visible to all users."""
    found = gpu_class.successor
    if found is None or found.visibility != GpuClass.Visibility.EVERYONE or found.life_cycle not in OPEN_STATES:
        return None
    return found


def successor_name(gpu_class: GpuClass) -> str:
    """Returns the name of `open_successor`, "" without one."""
    found = open_successor(gpu_class)
    return found.name if found is not None else ""


@dataclass(frozen=True)
class Migration:
    """What the users of a class that is being retired read: that it ends, what to do, and where to go. `successor`: its
    slug, "" if there is none that the reader may see.
    """

    gpu_class: str
    name: str
    notice: str
    advice: str
    successor: str = ""
    successor_name: str = ""


def migration_of(gpu_class: GpuClass) -> Migration | None:
    """For many readers: only a successor that all may see is named, at the cost of a query. None for a class that is
    not being retired.
    """
    if gpu_class.life_cycle != LifeCycle.RETIRING:
        return None
    found = open_successor(gpu_class)
    return Migration(
        gpu_class=gpu_class.slug,
        name=gpu_class.name,
        notice=retirement_notice(gpu_class),
        advice=migration_advice(gpu_class, found.name if found else ""),
        successor=found.slug if found else "",
        successor_name=found.name if found else "",
    )


def migrations_of(slugs: Collection[str]) -> list[Migration]:
    """Of those of these classes that are being retired, by slug. One query; a second one if any has a successor."""
    rows = select(GpuClass, "slug = ANY(%s) AND life_cycle = %s ORDER BY slug", [list(slugs), LifeCycle.RETIRING])
    fetch_successors(rows)
    return [found for one in rows if (found := migration_of(one))]


def migration_advice(gpu_class: GpuClass, successor: str) -> str:
    """`successor`: its name, as the reader may see it."""
    return life_cycle.migration_advice(
        name=gpu_class.name,
        life_cycle=gpu_class.life_cycle,
        successor=successor,
        runs_until=gpu_class.runs_until,
        is_storage=gpu_class.is_storage,
    )


def retirement_notice(gpu_class: GpuClass, known: Mapping[int, str] | None = None) -> str:
    """Returns the notice to teams with quota; "" for a class that is not retiring or retired. `known`: names of the
    classes that the reader may see, by id. None: for many readers, so only a successor that all may see is named, at
    the cost of a query.
    """
    return life_cycle.retirement_sentence(
        name=gpu_class.name,
        life_cycle=gpu_class.life_cycle,
        successor=successor_name(gpu_class) if known is None else known.get(gpu_class.successor_id or 0, ""),
        message=gpu_class.retiring_message,
        runs_until=gpu_class.runs_until,
        is_storage=gpu_class.is_storage,
    )
