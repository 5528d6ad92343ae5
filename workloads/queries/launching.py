"""What a team could launch on, with what it would meet there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import IntegerField, Q, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.utils import timezone

from accounts.actor import Actor
from catalog import queries as catalog
from catalog.models import GpuClass, Image
from portal.errors import Refusal
from portal.sql import columns
from tenants.models import Grant, Namespace
from tenants.promises import Promise
from tenants.queries import units_in_force
from workloads import policy
from workloads.models import Run
from workloads.outlook import Figures, Outlook, sentence
from workloads.queries import facts_of, most_promised, peak


@dataclass(frozen=True)
class Target:
    """What a launch names: the class with its facts, and the image's reference, "" for one that nobody knows."""

    gpu_class: GpuClass
    facts: policy.ClassFacts
    image: str


def target(namespace: Namespace, wanted: policy.Wanted) -> Target | None:
    """None: no such class. One query, since somebody waits; two more when the units might not fit on one node."""
    named = [namespace.tenant_id, wanted.kind, wanted.image, namespace.cluster_id, wanted.gpu_class]
    found: Any = next(iter(GpuClass.objects.raw(_TARGET, named)), None)
    if found is None:
        return None
    theirs = [
        Promise(units, datetime.fromisoformat(start), datetime.fromisoformat(end))
        for units, start, end in found.promised
    ]
    granted = peak(theirs, timezone.now())
    return Target(found, facts_of(found, granted, wanted.units), found.image or "")


_TARGET = f"""
SELECT {columns(GpuClass, "class")},
       (SELECT coalesce(json_agg(json_build_array(own.units, lower(own.period), upper(own.period))), '[]')
          FROM {Grant._meta.db_table} own
         WHERE own.tenant_id = %s AND own.gpu_class_id = class.id AND upper(own.period) > now()) AS promised,
       (SELECT image.reference FROM {Image._meta.db_table} image
         WHERE image.kind = %s AND %s IN (image.name, image.reference)
         ORDER BY image.position, image.name LIMIT 1) AS image
  FROM {GpuClass._meta.db_table} class
 WHERE class.cluster_id = %s AND class.slug = %s AND class.life_cycle <> '{GpuClass.LifeCycle.DRAFT}'"""


def images() -> list[Image]:
    return list(Image.objects.all())


def classes_for(namespace: Namespace) -> list[tuple[GpuClass, policy.ClassFacts]]:
    """Active classes that the team holds, will hold or may borrow, by slug. Two queries."""
    active = list(
        GpuClass.objects.filter(cluster_id=namespace.cluster_id, life_cycle=GpuClass.LifeCycle.ACTIVE).order_by("slug")
    )
    promised = most_promised(namespace.tenant_id, [one.pk for one in active])
    found = [(one, facts_of(one, promised.get(one.pk, 0), 1)) for one in active]
    return [(one, facts) for one, facts in found if facts.granted or facts.borrowing_limit]


def may_launch_any(by: Actor, namespace: Namespace, team: policy.TeamFacts) -> Refusal | None:
    """For the launch buttons: may this person launch anything at all in this team? Two queries."""
    return policy.may_launch_any(by, team, has_class=bool(classes_for(namespace)))


def outlooks(namespace: Namespace) -> list[Outlook]:
    """One unit more of each class, now. About a dozen queries, whatever the number of classes."""
    found = classes_for(namespace)
    capacities = catalog.capacities(namespace.cluster, [one for one, _ in found])
    granted = units_in_force(namespace.tenant_id, timezone.now())
    used, queued = units_of_runs(namespace)
    shown = []
    for one, facts in found:
        figures = Figures(
            unit=catalog.unit_of(one),
            granted=granted.get(one.pk, 0),
            used=used.get(one.slug, 0),
            queued=queued.get(one.slug, 0),
            borrowing_limit=one.borrowing_limit,
            on_one_node=capacities[one.pk].most_on_one_node,
        )
        text, tone = sentence(figures, policy.may_ever_start(facts, 1))
        shown.append(Outlook(one.slug, one.name, text, tone, price_of(one)))
    return shown


def price_of(gpu_class: GpuClass) -> str:
    """Of one unit and hour; "" for what is free of charge."""
    price = gpu_class.price_per_unit_hour
    return f"{price.normalize():f}" if price else ""


def units_of_runs(namespace: Namespace) -> tuple[dict[str, int], dict[str, int]]:
    """By class slug: units of runs that were admitted, and of those that were not yet. One query."""
    units = Cast(KT("spec__units"), IntegerField())
    rows = (
        Run.objects.filter(workload__namespace=namespace, ended_at=None)
        .order_by()
        .values(slug=KT("spec__gpu_class"))
        .annotate(used=Sum(units, filter=Q(admitted_at__isnull=False)), queued=Sum(units, filter=Q(admitted_at=None)))
    )
    found = list(rows)
    return {row["slug"]: row["used"] or 0 for row in found}, {row["slug"]: row["queued"] or 0 for row in found}
