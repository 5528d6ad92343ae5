"""What a team could launch on, with what it would meet there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection
from django.db.models import Sum
from django.db.models.fields.json import KT
from django.utils import timezone

from accounts.actor import Actor
from catalog import images, references
from catalog import queries as catalog
from catalog.models import GpuClass, Image
from catalog.queries.hardware import LEAST_CUDA
from portal.errors import Refusal
from portal.sql import columns, instance
from tenants.models import ClassAccess, Grant, Namespace, TermsAccepted
from tenants.promises import Promise
from tenants.queries.image_prefixes import prefixes
from tenants.queries.visibility import usable_by
from workloads import policy
from workloads.models import Run
from workloads.queries import facts_of, most_promised, peak
from workloads.queries.sizes import HOLDS, total_units


@dataclass(frozen=True)
class NamedImage:
    """`reference`: what the pod gets, with its digest where staff entered one. `is_own`: not of the catalog, but below
    a prefix that is allowed to the team; nothing is known of it.
    """

    name: str
    reference: str
    vendor: str
    min_cuda: str
    is_own: bool = False


@dataclass(frozen=True)
class Target:
    """What a launch names: the class with its facts, the image (None: nobody knows it), and why that image does not run
    on this class ("" when it does, as far as anybody knows).
    """

    gpu_class: GpuClass
    facts: policy.ClassFacts
    image: NamedImage | None
    image_problem: str


def target(namespace: Namespace, wanted: policy.Wanted, *, by: Actor) -> Target | None:
    """None: no such class, or none that this team may know of. One query, since somebody waits; two more when the units
    might not fit on one node, and one for an image that is not in the catalog.
    """
    tenant_id, user_id = namespace.tenant_id, by.user_id
    named = [tenant_id, user_id, wanted.kind, wanted.image, namespace.cluster_id, wanted.gpu_class, tenant_id]
    with connection.cursor() as cursor:
        cursor.execute(_TARGET, named)
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    found = instance(GpuClass, values)
    promised, terms_accepted, image_name, reference, digest, vendor, min_cuda, cuda = values
    theirs = [
        Promise(units, datetime.fromisoformat(start), datetime.fromisoformat(end)) for units, start, end in promised
    ]
    facts = facts_of(found, peak(theirs, timezone.now()), wanted.units)
    facts = replace(facts, terms_accepted=terms_accepted)
    if image_name is None:
        return Target(found, facts, _own(namespace, wanted.image), "")
    image = NamedImage(image_name, images.pinned(reference, digest), vendor, min_cuda)
    hardware = images.HardwareFacts(found.name, found.vendor, cuda)
    return Target(found, facts, image, images.compatibility(image, hardware))


def _own(namespace: Namespace, text: str) -> NamedImage | None:
    if not references.is_reference(text) or not references.is_below(text, prefixes(namespace.tenant_id)):
        return None
    return NamedImage(text, text, "", "", is_own=True)


# What the nodes offer is only looked up for an image that needs it.
_TARGET = f"""
SELECT {columns(GpuClass, "class")},
       (SELECT coalesce(json_agg(json_build_array(own.units, lower(own.period), upper(own.period))), '[]')
          FROM {Grant._meta.db_table} own
         WHERE own.tenant_id = %s AND own.gpu_class_id = class.id AND upper(own.period) > now()) AS promised,
       EXISTS (SELECT FROM {TermsAccepted._meta.db_table} terms
                WHERE terms.user_id = %s AND terms.gpu_class_id = class.id AND terms.version = class.terms_version
              ) AS terms_accepted,
       image.name AS image_name, image.reference AS image_reference, image.digest AS image_digest,
       image.vendor AS image_vendor, image.min_cuda AS image_min_cuda,
       CASE WHEN image.min_cuda <> '' THEN {LEAST_CUDA} END AS cuda
  FROM {GpuClass._meta.db_table} class
  LEFT JOIN LATERAL (
       SELECT * FROM {Image._meta.db_table} image
        WHERE image.kind = %s AND %s IN (image.name, image.reference, image.reference || '@' || image.digest)
        ORDER BY image.position, image.name LIMIT 1) image ON true
 WHERE class.cluster_id = %s AND class.slug = %s AND class.life_cycle <> '{GpuClass.LifeCycle.DRAFT}'
   AND (class.visibility = '{GpuClass.Visibility.EVERYONE}'
        OR EXISTS (SELECT FROM {ClassAccess._meta.db_table} access
                    WHERE access.tenant_id = %s AND access.gpu_class_id = class.id))"""


def names_of_images(kind: str) -> list[str]:
    return list(Image.objects.filter(kind=kind).values_list("name", flat=True))


def classes_for(namespace: Namespace) -> list[tuple[GpuClass, policy.ClassFacts]]:
    """Active classes that the team may use, and holds, will hold or may borrow, by slug. Two queries."""
    return [(one, facts) for one, facts in reachable(namespace) if _is_active(one)]


def reachable(namespace: Namespace) -> list[tuple[GpuClass, policy.ClassFacts]]:
    """As `classes_for`, with those that are being retired and that the team still holds. Two queries."""
    open_ones = list(
        GpuClass.objects.filter(usable_by(namespace.tenant_id), cluster_id=namespace.cluster_id)
        .filter(life_cycle__in=catalog.OPEN)
        .exclude(interface=GpuClass.Interface.STORAGE)
        .select_related("successor")
        .order_by("slug")
    )
    promised = most_promised(namespace.tenant_id, [one.pk for one in open_ones])
    found = [(one, facts_of(one, promised.get(one.pk, 0), 1)) for one in open_ones]
    return [(one, facts) for one, facts in found if facts.granted or (facts.borrowing_limit and _is_active(one))]


def _is_active(one: GpuClass) -> bool:
    return one.life_cycle == GpuClass.LifeCycle.ACTIVE


def may_launch_any(by: Actor, namespace: Namespace, team: policy.TeamFacts) -> Refusal | None:
    """For the launch buttons: may this person launch anything at all in this team? Two queries."""
    return policy.may_launch_any(by, team, has_class=bool(classes_for(namespace)))


def price_of(gpu_class: GpuClass) -> str:
    """Of one unit and hour; "" for what is free of charge."""
    price = gpu_class.price_per_unit_hour
    return f"{price.normalize():f}" if price else ""


def units_of_runs(namespace: Namespace) -> tuple[dict[str, int], dict[str, int]]:
    """By class slug: units that runs hold, and those that others wait for. One query."""
    units = total_units()
    rows = (
        Run.objects.filter(workload__namespace=namespace, ended_at=None)
        .order_by()
        .values(slug=KT("spec__gpu_class"))
        .annotate(used=Sum(units, filter=HOLDS), queued=Sum(units, filter=~HOLDS))
    )
    found = list(rows)
    return {row["slug"]: row["used"] or 0 for row in found}, {row["slug"]: row["queued"] or 0 for row in found}
