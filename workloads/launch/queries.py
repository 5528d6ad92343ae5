"""Classes that a team can launch on, with their limits for the team."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from catalog.classes.capacity.device_memory import MemorySize, memory_sizes
from catalog.classes.capacity.queries import capacities
from catalog.classes.queries import successor_name
from catalog.classes.topology import levels_of
from catalog.images import compatibility, image_references
from catalog.images.queries import LEAST_CUDA
from catalog.models import GpuClass, Image
from cluster.manifests.node_removal.spot import spot_label
from cluster.models import MirrorNode
from cluster.reads import queries as read_queries
from portal.core.errors import Refusal
from portal.core.sql import columns, instance, instance_or_none
from tenants.class_access.image_prefixes.queries import prefixes_of
from tenants.class_access.queries import may_use_class, usable_by_sql
from tenants.grants import promises
from tenants.grants.overcommit.queries import promise_of
from tenants.grants.promises import Promise
from tenants.models import Grant, Namespace, TermsAccepted
from workloads.core import policy
from workloads.core import policy as core_policy
from workloads.launch import policy as launch_policy
from workloads.launch import types as launch_types
from workloads.launch.options import NO_OPTIONS, Options


@dataclass(frozen=True)
class NamedImage:
    """`reference`: the reference in the pod, with the digest if staff entered one. `is_own`: the image is not in the
    catalog but under a prefix that the team may use; its contents are unknown.
    """

    name: str
    reference: str
    vendor: str
    min_cuda: str
    is_own: bool = False


@dataclass(frozen=True)
class LaunchTarget:
    """What a launch names: the class with its facts, the image (None: unknown), and why that image does not run on this
    class ("" if it does, as far as is known).
    """

    gpu_class: GpuClass
    facts: policy.ClassFacts
    image: NamedImage | None
    image_problem: str


def launch_target(namespace: Namespace, wanted: launch_types.LaunchSpec, *, by: Actor) -> LaunchTarget | None:
    """Returns None if the class does not exist or this team may not see it. One query, since a user waits; two more if
    the units might not fit on one node, at most three for a memory size of devices, at most two for a level of a
    topology, and one for an image that is not in the catalog.
    """
    named: dict[str, Any] = {"tenant": namespace.tenant_id, "cluster": namespace.cluster_id, "user": by.user_id}
    named |= {"kind": wanted.kind, "image": wanted.image, "slug": wanted.gpu_class}
    with connection.cursor() as cursor:
        cursor.execute(_TARGET, named)
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    found = instance(GpuClass, values)
    promised, terms_accepted, image_name, reference, digest, vendor, min_cuda, cuda = values
    facts = class_facts_of(found, _peak(promised, timezone.now()), wanted.units)
    facts = replace(facts, terms_accepted=terms_accepted)
    facts = _with_facts_for(facts, namespace, found, wanted.options)
    if image_name is None:
        return LaunchTarget(found, facts, _own(namespace, wanted.image), "")
    image = NamedImage(image_name, image_references.pinned(reference, digest), vendor, min_cuda)
    hardware = compatibility.HardwareFacts(found.name, found.vendor, cuda)
    return LaunchTarget(found, facts, image, compatibility.compatibility(image, hardware))


def _peak(promised: list[tuple[int, str, str]], now: datetime) -> int:
    theirs = [
        Promise(units, datetime.fromisoformat(start), datetime.fromisoformat(end)) for units, start, end in promised
    ]
    return peak_of(theirs, now)


def _own(namespace: Namespace, text: str) -> NamedImage | None:
    if not image_references.is_reference(text) or not image_references.is_below(text, prefixes_of(namespace.tenant_id)):
        return None
    return NamedImage(text, text, "", "", is_own=True)


_PROMISED = f"""
       (SELECT coalesce(json_agg(json_build_array(own.units, lower(own.period), upper(own.period))), '[]')
          FROM {Grant._meta.db_table} own
         WHERE own.tenant_id = %(tenant)s AND own.gpu_class_id = class.id AND upper(own.period) > now()) AS promised"""
# The CUDA version of the nodes is read only for an image that needs it.
_TARGET = f"""
SELECT {columns(GpuClass, "class")}, {_PROMISED},
       EXISTS (SELECT FROM {TermsAccepted._meta.db_table} terms
                WHERE terms.user_id = %(user)s AND terms.gpu_class_id = class.id AND terms.version = class.terms_version
              ) AS terms_accepted,
       image.name AS image_name, image.reference AS image_reference, image.digest AS image_digest,
       image.vendor AS image_vendor, image.min_cuda AS image_min_cuda,
       CASE WHEN image.min_cuda <> '' THEN {LEAST_CUDA} END AS cuda
  FROM {GpuClass._meta.db_table} class
  LEFT JOIN LATERAL (
       SELECT * FROM {Image._meta.db_table} image
        WHERE image.kind = %(kind)s
          AND %(image)s IN (image.name, image.reference, image.reference || '@' || image.digest)
        ORDER BY image.position, image.name LIMIT 1) image ON true
 WHERE class.cluster_id = %(cluster)s AND class.slug = %(slug)s
   AND class.life_cycle <> '{GpuClass.LifeCycle.DRAFT}' AND {usable_by_sql("class")}"""
_REACHABLE = f"""
SELECT {columns(GpuClass, "class")}, {columns(GpuClass, "successor")}, {_PROMISED}
  FROM {GpuClass._meta.db_table} class
  LEFT JOIN {GpuClass._meta.db_table} successor ON successor.id = class.successor_id
 WHERE class.cluster_id = %(cluster)s AND class.life_cycle = ANY(%(open)s)
   AND class.interface <> '{GpuClass.Interface.STORAGE}' AND {usable_by_sql("class")}
 ORDER BY class.slug"""


def image_names(kind: str) -> list[str]:
    return list(Image.objects.filter(kind=kind).values_list("name", flat=True))


def reachable_classes(namespace: Namespace) -> list[tuple[GpuClass, policy.ClassFacts]]:
    """Returns, by slug, active classes that the team may use, and for which it has, will have or may borrow quota; and
    classes in retirement for which it still has quota. One query: most pages of a team ask.
    """
    named: dict[str, Any] = {"tenant": namespace.tenant_id, "cluster": namespace.cluster_id}
    named["open"] = list(catalog.OPEN_STATES)
    found, now = [], timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(_REACHABLE, named)
        for row in cursor.fetchall():
            values = iter(row)
            one = instance(GpuClass, values)
            one.successor = instance_or_none(GpuClass, values)
            [promised] = values
            found.append((one, class_facts_of(one, _peak(promised, now), 1)))
    return [(one, facts) for one, facts in found if facts.granted or (facts.borrowing_limit and _is_active(one))]


def _is_active(one: GpuClass) -> bool:
    return one.life_cycle == GpuClass.LifeCycle.ACTIVE


def launch_any_refusal(
    by: Actor, team: policy.TeamFacts, classes: Iterable[tuple[GpuClass, policy.ClassFacts]]
) -> Refusal | None:
    """May this user launch anything in this team? For the launch buttons. `classes`: see `reachable_classes`."""
    return launch_policy.may_launch_any(by, team, has_class=any(_is_active(one) for one, _ in classes))


def class_facts(
    namespace: Namespace, gpu_class: GpuClass, *, units: int, by: Actor, said: Options = NO_OPTIONS
) -> core_policy.ClassFacts:
    """One query; one more for terms, one more for a class with restricted access, two more if the units might not fit
    on one node, at most three if `said` has a memory size of devices, and at most two if it has a level of a topology.
    """
    granted = peak_grants(namespace.tenant_id, [gpu_class.pk]).get(gpu_class.pk, 0)
    found = _with_facts_for(class_facts_of(gpu_class, granted, units), namespace, gpu_class, said)
    return replace(
        found,
        is_usable=may_use_class(namespace.tenant_id, gpu_class),
        terms_accepted=gpu_class.pk in accepted_terms(by, [gpu_class]),
    )


def accepted_terms(by: Actor, classes: Iterable[GpuClass]) -> set[int]:
    """Returns the ids of the classes whose current terms this user has accepted. No query if no class has terms,
    otherwise one.
    """
    versions = {one.pk: one.terms_version for one in classes if one.terms_version}
    if not versions:
        return set()
    rows = TermsAccepted.objects.filter(user_id=by.user_id or 0, gpu_class_id__in=versions)
    return {pk for pk, version in rows.values_list("gpu_class_id", "version") if versions[pk] == version}


def class_facts_of(gpu_class: GpuClass, granted: int, units: int) -> core_policy.ClassFacts:
    """`granted`: the most units granted at any time from now on. Does not include facts that depend on a user or a
    team. One query for the name of a successor that was not fetched with the class.
    """
    is_active = gpu_class.life_cycle == GpuClass.LifeCycle.ACTIVE
    return core_policy.ClassFacts(
        slug=gpu_class.slug,
        name=gpu_class.name,
        life_cycle=gpu_class.life_cycle,
        granted=granted,
        borrowing_limit=gpu_class.borrowing_limit,
        units_per_workload=gpu_class.units_per_workload,
        node_units=node_units(gpu_class) if units > 1 else None,
        cpu_per_unit=gpu_class.cpu_per_unit,
        memory_gib_per_unit=gpu_class.memory_gib_per_unit,
        kinds=gpu_class.kinds,
        successor="" if is_active else successor_name(gpu_class),
        terms_version=gpu_class.terms_version,
        run_hours_limit=gpu_class.run_hours_limit,
        is_storage=gpu_class.is_storage,
        is_spot=spot_label(gpu_class.node_labels) is not None,
    )


def _with_facts_for(
    facts: core_policy.ClassFacts, namespace: Namespace, gpu_class: GpuClass, said: Options
) -> core_policy.ClassFacts:
    """With the facts that only few launches are checked against."""
    return replace(
        facts,
        memory_sizes=class_memory_sizes(namespace, gpu_class) if said.gpu_memory_gib is not None else None,
        topology_levels=levels_of(gpu_class) if said.topology_level else None,
    )


def class_memory_sizes(namespace: Namespace, gpu_class: GpuClass) -> tuple[MemorySize, ...] | None:
    """As in `ClassFacts`. At most three queries."""
    return memory_sizes(gpu_class, capacities(namespace.cluster, [gpu_class])[gpu_class.pk])


def peak_grants(tenant_id: int, class_ids: Sequence[int]) -> dict[int, int]:
    """Returns by class id the most units granted to the team at any time from now on. One query."""
    now = timezone.now()
    found: dict[int, list[promises.Promise]] = {}
    for grant in Grant.objects.filter(tenant_id=tenant_id, gpu_class_id__in=class_ids, period__endswith__gt=now):
        found.setdefault(grant.gpu_class_id, []).append(promise_of(grant))
    return {pk: peak_of(theirs, now) for pk, theirs in found.items()}


def peak_of(theirs: Sequence[promises.Promise], now: datetime) -> int:
    return promises.peak(theirs, now, max((promise.end for promise in theirs), default=now))


def node_units(gpu_class: GpuClass) -> int | None:
    """Returns the most units that one node of the class has, in use or not; None if unknown. Two queries.

    A class without nodes is unknown too: a node may be added or come back.
    """
    is_counted = gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN
    if not is_counted or not read_queries.is_known(gpu_class.cluster_id, "Node"):
        return None
    statement = f"""
        SELECT max((record -> 'capacity' ->> %s)::bigint) FROM {MirrorNode._meta.db_table}
         WHERE cluster_id = %s AND record -> 'labels' @> %s::jsonb"""
    with connection.cursor() as cursor:
        labels = GpuClass._meta.get_field("node_labels").get_db_prep_value(gpu_class.node_labels, connection)
        cursor.execute(statement, [gpu_class.resource, gpu_class.cluster_id, labels])
        found = cursor.fetchone()[0]
    return int(found) if found else None
