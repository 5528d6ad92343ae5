"""What the launch page offers: classes for a kind of work, images for a class, and its terms if not accepted yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.utils import timezone

from accounts.actor import Actor
from catalog import images
from catalog.models import GpuClass, Image
from catalog.queries.hardware import class_facts
from cluster.run_spec import JOB, NOTEBOOK
from tenants.models import Namespace
from workloads import policy
from workloads.outlook import Outlook
from workloads.queries import accepted
from workloads.queries.launching import outlooks, reachable


@dataclass(frozen=True)
class ClassChoice:
    slug: str
    label: str


@dataclass(frozen=True)
class ImageChoice:
    """`problem`: why it does not run on the chosen class, "" when it does; `notes`: what else has to be said of it."""

    name: str
    kind: str
    title: str
    contents: str
    problem: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Terms:
    """Of a class, not accepted yet by the person who looks."""

    slug: str
    name: str
    version: int
    text: str

    @property
    def value(self) -> str:
        """What a tick sends: for another class, or a version that is not in force any more, it says nothing."""
        return f"{self.slug}:{self.version}"


@dataclass(frozen=True)
class Offer:
    """`chosen`: a class's slug, "" when there is none."""

    kind: str
    chosen: str
    has_class: bool
    classes: tuple[ClassChoice, ...]
    images: tuple[ImageChoice, ...]
    terms: Terms | None
    outlooks: tuple[Outlook, ...]


def offer(by: Actor, namespace: Namespace, *, kind: str, chosen: str) -> Offer:
    """`kind` and `chosen` are as typed, "" when nobody chose yet: then the class decides, or the first one is taken.

    About fifteen queries, whatever the number of classes and images.
    """
    found = reachable(namespace)
    active = [one for one, _facts in found if one.life_cycle == GpuClass.LifeCycle.ACTIVE]
    if kind not in (NOTEBOOK, JOB):
        kinds = next((one.kinds for one in active if one.slug == chosen), "")
        kind = JOB if kinds == GpuClass.Kinds.JOB else NOTEBOOK
    fitting = [(one, facts) for one, facts in found if one in active and policy.may_run(facts, kind) is None]
    gpu_class = next((one for one, _ in fitting if one.slug == chosen), fitting[0][0] if fitting else None)
    return Offer(
        kind=kind,
        chosen=gpu_class.slug if gpu_class else "",
        has_class=bool(active),
        classes=tuple(ClassChoice(one.slug, _label(one)) for one, _ in fitting),
        images=tuple(_images(namespace, gpu_class, kind)),
        terms=terms_to_accept(by, gpu_class) if gpu_class else None,
        outlooks=tuple(outlooks(namespace, found)),
    )


def terms_to_accept(by: Actor, gpu_class: GpuClass) -> Terms | None:
    """No query for a class without terms, else one."""
    if not gpu_class.terms_version or gpu_class.pk in accepted(by, [gpu_class]):
        return None
    return Terms(gpu_class.slug, gpu_class.name, gpu_class.terms_version, gpu_class.terms)


def ticked(value: str, slug: str) -> int:
    """The version that a tick (`Terms.value`) accepts for this class; 0 for none."""
    for_class, _, version = value.rpartition(":")
    is_number = version.isascii() and version.isdigit() and len(version) < 10
    return int(version) if is_number and for_class == slug else 0


def _label(one: GpuClass) -> str:
    return one.name if one.kinds == GpuClass.Kinds.ANY else f"{one.name} ({one.get_kinds_display()})"


def _images(namespace: Namespace, gpu_class: GpuClass | None, kind: str) -> list[ImageChoice]:
    """Of the chosen kind first, and in each kind what runs on the class first. Two queries."""
    rows = list(Image.objects.select_related("successor"))
    facts = class_facts(namespace.cluster, [gpu_class])[gpu_class.pk] if gpu_class else None
    today = timezone.localdate()

    def problem(image: Image) -> str:
        return images.compatibility(image, facts) if facts else ""

    ordered = images.in_order(rows, today, problem)
    ordered.sort(key=lambda image: image.kind != kind)
    return [_choice(image, problem(image), images.caution(image, facts) if facts else "", today) for image in ordered]


def _choice(image: Image, problem: str, caution: str, today: date) -> ImageChoice:
    old = images.deprecation(image.deprecated_since, image.successor.name if image.successor else "", today)
    title = " ".join(filter(None, (image.name, image.version)))
    notes = tuple(filter(None, (old, "" if problem else caution)))
    return ImageChoice(image.name, image.kind, title, image.contents, problem, notes)
