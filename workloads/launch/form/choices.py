"""What the launch form offers: classes for a workload kind, images for a class, and the class's terms if not yet
accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes.capacity.device_memory import sizes_text
from catalog.classes.queries import unit_of
from catalog.classes.topology import levels_of
from catalog.images import compatibility
from catalog.images.queries import hardware_facts
from catalog.models import GpuClass, Image
from cluster.manifests.run_spec import JOB, NOTEBOOK
from cluster.manifests.site import OfferedStorage
from tenants.class_access.image_prefixes.queries import prefixes_of
from tenants.models import Namespace
from workloads.core import policy as core_policy
from workloads.forecast.availability import Outlook
from workloads.forecast.queries import LaunchSize, outlooks
from workloads.launch import policy
from workloads.launch.queries import accepted_terms, reachable_classes
from workloads.models import Run, Volume


@dataclass(frozen=True)
class ClassChoice:
    """What one unit includes, and the outlook for the selected number of units."""

    slug: str
    label: str
    unit: str
    cpu: int
    memory_gib: int
    most_units: int
    run_hours_limit: int | None
    outlook: Outlook
    is_interruptible: bool
    is_spot: bool
    # The memory of its devices, if it differs and can be requested; else "".
    gpu_memory: str = ""
    may_ask_memory: bool = False


@dataclass(frozen=True)
class ImageChoice:
    """`problem`: why the image does not run on the chosen class, "" if it does; `notes`: further warnings."""

    name: str
    kind: str
    title: str
    contents: str
    problem: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class VolumeChoice:
    """A volume of the team. `users`: names of the queued and running workloads that use it."""

    name: str
    size_gib: int
    users: tuple[str, ...]
    is_shared: bool = False

    @property
    def words(self) -> str:
        now = f"used by {', '.join(self.users)}" if self.users else "not in use"
        return f"{self.size_gib:,} GiB, {'shared, ' if self.is_shared else ''}{now}"


@dataclass(frozen=True)
class ClassTerms:
    """Terms of a class that this user has not accepted yet."""

    slug: str
    name: str
    version: int
    text: str

    @property
    def value(self) -> str:
        """The value that the checkbox sends. It is not valid for another class or another version."""
        return f"{self.slug}:{self.version}"


@dataclass(frozen=True)
class FormSelection:
    """Values as entered or from a link: each of them may be "" or unknown. `instead_of`: as in `LaunchSize`."""

    kind: str = ""
    gpu_class: str = ""
    image: str = ""
    units: int = 1
    hours: int | None = None
    instead_of: int | None = None
    workers: int = 1
    priority: str = ""
    gpu_memory_gib: int | None = None


@dataclass(frozen=True)
class LaunchChoices:
    """`chosen`: the slug of a class, "" if there is none. `levels`: of its topology, for a job; None if not known.
    `leaving`: outlooks of classes in retirement for which the team has quota. `has_class`: a class exists for some kind
    of workload. `prefixes`: the team may use any image under them.
    """

    kind: str
    chosen: str
    has_class: bool
    classes: tuple[ClassChoice, ...]
    leaving: tuple[Outlook, ...]
    images: tuple[ImageChoice, ...]
    terms: ClassTerms | None
    volumes: tuple[VolumeChoice, ...]
    storage_classes: tuple[OfferedStorage, ...] = ()
    prefixes: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = ()

    @property
    def gpu_class(self) -> ClassChoice | None:
        return next((one for one in self.classes if one.slug == self.chosen), None)


def launch_choices(by: Actor, namespace: Namespace, asked: FormSelection) -> LaunchChoices:
    """Missing choices are derived from the others: the kind from the class or the image, and the class is the first one
    for the kind.

    About twenty queries, whatever the number of classes, images and volumes.
    """
    found = reachable_classes(namespace)
    active = [one for one, _facts in found if one.life_cycle == GpuClass.LifeCycle.ACTIVE]
    rows = list(Image.objects.select_related("successor"))
    kind = asked.kind if asked.kind in (NOTEBOOK, JOB) else _kind(asked, active, rows)
    fitting = [(one, facts) for one, facts in found if one in active and policy.may_run_kind(facts, kind) is None]
    gpu_class = next((one for one, _ in fitting if one.slug == asked.gpu_class), fitting[0][0] if fitting else None)
    workers = asked.workers if kind == JOB else 1
    size = LaunchSize(asked.units, asked.hours, kind, asked.instead_of, workers, asked.priority, asked.gpu_memory_gib)
    shown = outlooks(namespace, found, size)
    return LaunchChoices(
        kind=kind,
        chosen=gpu_class.slug if gpu_class else "",
        has_class=bool(active),
        classes=tuple(_class(one, shown[one.slug], facts) for one, facts in fitting),
        leaving=tuple(shown[one.slug] for one, _ in found if one not in active),
        images=tuple(_images(namespace, gpu_class, kind, rows)),
        terms=terms_to_accept(by, gpu_class) if gpu_class else None,
        volumes=tuple(volume_choices(namespace)),
        storage_classes=namespace.cluster.site_profile.storage_classes,
        prefixes=tuple(prefixes_of(namespace.tenant_id)),
        levels=levels_of(gpu_class) if gpu_class and kind == JOB else (),
    )


def _kind(asked: FormSelection, active: list[GpuClass], rows: list[Image]) -> str:
    kinds = {one.kinds for one in active if one.slug == asked.gpu_class}
    of_image = {image.kind for image in rows if image.name == asked.image}
    return JOB if kinds == {GpuClass.Kinds.JOB} or of_image == {JOB} else NOTEBOOK


def _class(one: GpuClass, outlook: Outlook, facts: core_policy.ClassFacts) -> ClassChoice:
    sizes = outlook.memory_sizes
    return ClassChoice(
        slug=one.slug,
        label=_label(one),
        unit=unit_of(one),
        cpu=one.cpu_per_unit,
        memory_gib=one.memory_gib_per_unit,
        most_units=one.units_per_workload,
        run_hours_limit=one.run_hours_limit,
        outlook=outlook,
        is_interruptible=facts.is_interruptible,
        is_spot=facts.is_spot,
        gpu_memory=sizes_text(sizes) if sizes and len(sizes) > 1 else "",
        may_ask_memory=sizes != (),
    )


def volume_choices(namespace: Namespace) -> list[VolumeChoice]:
    """Returns the team's volumes by name. Two queries."""
    rows = list(Volume.objects.filter(namespace=namespace, delete_requested_at=None).order_by("name"))
    users: dict[str, list[str]] = {}
    alive = Run.objects.filter(workload__namespace=namespace, ended_at=None).exclude(spec__claim="")
    for run in alive.select_related("workload").order_by("workload__name") if rows else ():
        users.setdefault(run.spec["claim"], []).append(run.workload.name)
    return [VolumeChoice(one.name, one.size_gib, tuple(users.get(one.name, ())), one.storage.is_shared) for one in rows]


def terms_to_accept(by: Actor, gpu_class: GpuClass) -> ClassTerms | None:
    """Returns the terms that this user must accept. No query for a class without terms, otherwise one."""
    if not gpu_class.terms_version or gpu_class.pk in accepted_terms(by, [gpu_class]):
        return None
    return ClassTerms(gpu_class.slug, gpu_class.name, gpu_class.terms_version, gpu_class.terms)


def accepted_version(value: str, slug: str) -> int:
    """The version that the checkbox (`ClassTerms.value`) accepts for this class; 0 for none."""
    for_class, _, version = value.rpartition(":")
    is_number = version.isascii() and version.isdigit() and len(version) < 10
    return int(version) if is_number and for_class == slug else 0


def _label(one: GpuClass) -> str:
    return one.name if one.kinds == GpuClass.Kinds.ANY else f"{one.name} ({one.get_kinds_display()})"


def _images(namespace: Namespace, gpu_class: GpuClass | None, kind: str, rows: list[Image]) -> list[ImageChoice]:
    """Images of the chosen kind come first, and within a kind those that run on the class. One query."""
    facts = hardware_facts(namespace.cluster, [gpu_class])[gpu_class.pk] if gpu_class else None
    today = timezone.localdate()

    def problem(image: Image) -> str:
        return compatibility.compatibility(image, facts) if facts else ""

    ordered = compatibility.sort_images(rows, today, problem, has_gpu=facts is None or facts.has_gpu)
    ordered.sort(key=lambda image: image.kind != kind)
    return [
        _choice(image, problem(image), compatibility.caution(image, facts) if facts else "", today) for image in ordered
    ]


def _choice(image: Image, problem: str, caution: str, today: date) -> ImageChoice:
    old = compatibility.deprecation(image.deprecated_since, image.successor.name if image.successor else "", today)
    title = " ".join(filter(None, (image.name, image.version)))
    notes = tuple(filter(None, (old, "" if problem else caution)))
    return ImageChoice(image.name, image.kind, title, image.contents, problem, notes)
