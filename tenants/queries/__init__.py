"""Reads about tenants, quota and requests: frozen dataclasses for page and API alike.

Nothing stores a quota: what is in force is computed from grants at an instant, here and nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Lower, Upper

from accounts.actor import Actor
from accounts.models import User
from accounts.queries import events_of_row  # by its name: a module beside this one is called accounts
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster.live_queue import LiveQueue
from cluster.models import AppliedObject, Cluster
from cluster.specs import NamespaceSpec
from portal.due import owner_label
from tenants import entitlements, policy, promises
from tenants.entitlements import Share
from tenants.models import Grant, Membership, Namespace, QuotaLine, Tenant
from tenants.promises import Promise
from tenants.queries.deputies import approvers_of as approvers_of
from tenants.queries.deputies import rights as rights
from tenants.queries.grants import OVER_AT
from tenants.queries.promised import Promised, promised_of
from tenants.queries.promised import promise_of as promise_of

# What the layers above ask here.
from tenants.queries.visibility import known_classes as known_classes
from tenants.queries.visibility import may_use as may_use
from tenants.queries.visibility import usable_by as usable_by
from tenants.queries.visibility import visible_classes as visible_classes


def now() -> datetime:
    """The database's clock at this instant: not the transaction's start, which may lie before a lock was waited for."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        instant: datetime = cursor.fetchone()[0]
    return instant


# ---- who stands where --------------------------------------------------------------------------------------------


def named(found: QuerySet[Tenant], words: str) -> QuerySet[Tenant]:
    """Those with each of `words` in slug or name."""
    for word in words.split():
        found = found.filter(Q(slug__icontains=word) | Q(name__icontains=word))
    return found


def standing(by: Actor, tenant: Tenant, *, wanted: str = "") -> policy.Standing:
    """The actor's role in the tenant and what is wanted of its namespace, where the caller does not know that. Two
    queries at most.
    """
    role = (
        Membership.objects.of(by).filter(tenant=tenant).values_list("role", flat=True).first()
        if by.user is not None
        else None
    )
    wanted = wanted or tenant.namespaces.values_list("wanted", flat=True).first() or ""
    return policy.Standing(role=role or "", wanted=wanted or "active")


def decides(by: Actor) -> frozenset[str] | None:
    """Slugs of the classes that the actor decides, also as a deputy; None for all of them."""
    return rights(by).classes


def managers_of(tenant: Tenant) -> list[User]:
    roles = [Membership.Role.OWNER, Membership.Role.MANAGER]
    return list(User.objects.filter(memberships__tenant=tenant, memberships__role__in=roles).order_by("pk"))


# ---- what is in force --------------------------------------------------------------------------------------------


def units_in_force(tenant_id: int, at: datetime) -> dict[int, int]:
    """Units by class id at that instant. One query."""
    rows = Grant.objects.filter(tenant_id=tenant_id, period__contains=at).values("gpu_class_id")
    return {row["gpu_class_id"]: row["total"] for row in rows.annotate(total=Sum("units"))}


def promised_units(cluster: Cluster, at: datetime) -> dict[int, int]:
    """Units by class id in force at that instant, over all tenants of the cluster. One query."""
    rows = Grant.objects.filter(gpu_class__cluster=cluster, period__contains=at).values("gpu_class_id")
    return {row["gpu_class_id"]: row["total"] for row in rows.annotate(total=Sum("units"))}


def next_clock(after: datetime, *, tenant_id: int | None = None, cluster: Cluster | None = None) -> datetime | None:
    """When what is in force, or may go on, changes next by itself: a grant's start, end or end of grace. One query."""
    rows = Grant.objects.alias(over_at=OVER_AT).filter(over_at__gt=after)
    rows = rows.filter(tenant_id=tenant_id) if tenant_id else rows.filter(gpu_class__cluster=cluster)
    found = rows.aggregate(
        starts=Min(Lower("period"), filter=Q(period__startswith__gt=after)),
        ends=Min(Upper("period"), filter=Q(period__endswith__gt=after)),
        over=Min(OVER_AT),
    )
    return min((at for at in found.values() if at is not None), default=None)


@dataclass(frozen=True)
class Holding:
    """A class of which the tenant has units in force. `until`: the running base grant's end, None without one."""

    gpu_class_id: int
    slug: str
    name: str
    units: int
    until: datetime | None


def holdings(tenant: Tenant, *, at: datetime | None = None) -> list[Holding]:
    """By slug. One query (two without `at`)."""
    running = Grant.objects.filter(tenant=tenant, period__contains=at or now())
    rows = running.values("gpu_class_id", "gpu_class__slug", "gpu_class__name").annotate(
        units=Sum("units"), until=Max(Upper("period"), filter=Q(kind=Grant.Kind.BASE))
    )
    return [
        Holding(row["gpu_class_id"], row["gpu_class__slug"], row["gpu_class__name"], row["units"], row["until"])
        for row in rows.order_by("gpu_class__slug")
    ]


# ---- what a namespace is made of ---------------------------------------------------------------------------------


def members_group(namespace: str) -> str:
    """The group that a site's login gives to the tenant's members for kubectl."""
    return f"gpu-portal:{namespace}"


def shares(
    namespace: Namespace, units: dict[int, int], *, keepable: dict[int, int] | None = None, planned: bool = False
) -> list[Share]:
    """Every class of the cluster with what the tenant has of it. Two queries. One that is not for this tenant is lent
    to it no more; what was granted stays.

    `planned`: as if flavors that are still being made were there already.
    """
    ready = dict(
        AppliedObject.objects.filter(
            cluster_id=namespace.cluster_id, kind="ResourceFlavor", result=AppliedObject.Result.APPLIED
        ).values_list("name", "sent_at")
    )
    classes = GpuClass.objects.filter(cluster_id=namespace.cluster_id).exclude(life_cycle=GpuClass.LifeCycle.DRAFT)
    usable = usable_by(namespace.tenant_id)
    found = classes.annotate(is_usable=ExpressionWrapper(usable, BooleanField())).order_by("slug")
    kept = keepable or {}
    return [_share(one, units.get(one.pk, 0), kept.get(one.pk, 0), ready, planned) for one in found]


def _share(gpu_class: Any, in_force: int, keepable: int, ready: dict[str, datetime], planned: bool) -> Share:
    flavor = catalog.flavor_name(gpu_class)
    may_borrow = gpu_class.life_cycle == GpuClass.LifeCycle.ACTIVE and gpu_class.is_usable
    return Share(
        slug=gpu_class.slug,
        resource=gpu_class.resource,
        flavor=flavor,
        device_class=gpu_class.device_class,
        cpu_per_unit=gpu_class.cpu_per_unit,
        memory_gib_per_unit=gpu_class.memory_gib_per_unit,
        borrowing_limit=gpu_class.borrowing_limit if may_borrow else 0,
        in_force=in_force,
        keepable=keepable,
        is_flavor_ready=planned or flavor in ready,
        flavor_sent_at=ready.get(flavor),
        is_storage=gpu_class.is_storage,
    )


def namespace_spec(namespace: Namespace, found: list[Share], live: LiveQueue, *, is_held: bool) -> NamespaceSpec:
    has_queue = namespace.cluster.queue_system == Cluster.QueueSystem.KUEUE
    return NamespaceSpec(
        name=namespace.name,
        owner=owner_label(namespace),
        group=members_group(namespace.name),
        cohort=namespace.cluster.cohort,
        quota=entitlements.quota(found, live),
        cells=entitlements.queue_cells(found, live) if has_queue else None,
        is_held=is_held,
        wakes=live.wakes,
        grace=entitlements.grace_cells(found, live) if has_queue else (),
    )


@dataclass(frozen=True)
class AskedClass:
    """A class by its id with what a line about it has to respect."""

    pk: int
    facts: policy.ClassFacts


def class_facts(tenant: Tenant, slugs: Collection[str], *, at: datetime) -> dict[str, AskedClass]:
    """By slug; unknown slugs and classes that the tenant may not use are left out. Three queries."""
    classes = (
        GpuClass.objects.filter(usable_by(tenant.pk), cluster__namespaces__tenant=tenant, slug__in=slugs)
        .select_related("successor")
        .distinct()
    )
    held = units_in_force(tenant.pk, at)
    lines = QuotaLine.objects.filter(tenant=tenant, state=QuotaLine.State.PENDING)
    pending = dict(lines.values_list("gpu_class_id", "kind"))
    return {
        found.slug: AskedClass(
            found.pk,
            policy.ClassFacts(
                found.slug,
                found.name,
                found.life_cycle,
                held.get(found.pk, 0),
                found.pk in pending,
                catalog.successor_of(found),
                is_reclaimed=pending.get(found.pk) == QuotaLine.Kind.RECLAIM,
                unit=catalog.counted_in(found),
            ),
        )
        for found in classes
    }


# ---- what decisions rest on --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """One class for one tenant, as an approver sees it. None: the mirror does not know.

    `limit`: units that may be promised at one time (staff's limit, else allocatable). `promised`: in force now, all
    tenants together. `used`: by the tenant; `in_use`: by everybody, now.
    """

    held: int
    used: int | None
    allocatable: int | None
    in_use: int | None
    free: int | None
    promised: int
    limit: int | None
    as_of: datetime | None


def figures(
    tenant: Tenant,
    classes: Collection[GpuClass],
    *,
    at: datetime,
    target: Namespace | None = None,
    promised: Promised | None = None,
) -> dict[int, Figures]:
    """By class id. About ten queries, whatever the number of classes; fewer for who knows the team's `target`, with its
    cluster, and what is `promised` of these classes at that instant.
    """
    if not classes:
        return {}
    target = target or tenant.namespaces.select_related("cluster").get()
    capacities = catalog.capacities(target.cluster, classes)
    used = catalog.units_used(target.cluster, classes, namespace=target.name)
    promised = promised or promised_of(tenant.pk, [one.pk for one in classes], at=at)
    return {
        gpu_class.pk: Figures(
            held=promised.held(gpu_class.pk),
            used=used.get(gpu_class.pk),
            allocatable=(capacity := capacities[gpu_class.pk]).allocatable,
            in_use=capacity.used,
            free=capacity.free,
            promised=promised.steps[gpu_class.pk][0].units,
            limit=capacity.limit(gpu_class),
            as_of=capacity.as_of,
        )
        for gpu_class in classes
    }


def pool_figures(class_ids: Collection[int]) -> dict[int, str]:
    """What all tenants together were promised of each class, as a sentence. About ten queries."""
    classes = list(GpuClass.objects.filter(pk__in=class_ids).select_related("cluster"))
    if not classes:
        return {}
    capacities = catalog.capacities(classes[0].cluster, classes)
    promised = promised_units(classes[0].cluster, now())
    return {one.pk: pool_sentence(one, capacities[one.pk], promised.get(one.pk, 0)) for one in classes}


def pool_sentence(gpu_class: GpuClass, capacity: catalog.Capacity, promised: int) -> str:
    limit = capacity.limit(gpu_class)
    if gpu_class.is_storage:
        return f"{promised} of {'unknown' if limit is None else limit} GiB promised"
    free = "free units unknown" if capacity.free is None else f"{capacity.free} free now"
    return f"{promised} of {'unknown' if limit is None else limit} promised; {free}"


def excess_of(
    tenant_id: int, gpu_class: GpuClass, promised: Promise, *, is_base: bool, limit: int | None, at: datetime
) -> policy.Excess | None:
    """Would this promise take the class over its limit at some instant, and higher than it is promised already?

    `limit` None: any growth is a promise in the dark.
    """
    before, after = before_and_after(tenant_id, gpu_class, promised, is_base=is_base, at=at)
    units = promises.adds_excess(before, after, limit or 0, promised.start, promised.end)
    return policy.Excess(gpu_class.name, units, limit) if units else None


def before_and_after(
    tenant_id: int, gpu_class: GpuClass, promised: Promise, *, is_base: bool, at: datetime
) -> tuple[list[Promise], list[Promise]]:
    """What all teams are promised of the class, without and with this promise. One query.

    A new base total ends the tenant's running one when it starts.
    """
    return _before_and_after(Grant.objects.filter(gpu_class=gpu_class), tenant_id, promised, is_base=is_base, at=at)


def own_before_and_after(
    tenant_id: int, class_id: int, promised: Promise, *, at: datetime
) -> tuple[list[Promise], list[Promise]]:
    """The same of this tenant alone, for a new base total. One query."""
    own = Grant.objects.filter(gpu_class_id=class_id, tenant_id=tenant_id)
    return _before_and_after(own, tenant_id, promised, is_base=True, at=at)


def _before_and_after(
    grants: QuerySet[Grant], tenant_id: int, promised: Promise, *, is_base: bool, at: datetime
) -> tuple[list[Promise], list[Promise]]:
    before, after = [], [promised]
    for grant in grants.filter(period__endswith__gt=at):
        found = promise_of(grant)
        before.append(found)
        is_replaced = is_base and grant.tenant_id == tenant_id and grant.kind == Grant.Kind.BASE
        if is_replaced and found.start < promised.start:
            found = Promise(found.units, found.start, min(found.end, promised.start))
        after.append(found)
    return before, after


# ---- objects in the cluster --------------------------------------------------------------------------------------


def objects_inside(namespace: Namespace) -> Counter[str]:
    """By kind: what of ours is in the namespace, of workloads too. One query."""
    rows = AppliedObject.objects.filter(cluster_id=namespace.cluster_id, namespace=namespace.name)
    return Counter(rows.values_list("kind", flat=True))


def last_told(namespace: Namespace) -> str:
    """Why it is suspended or being closed, as whoever did it said; "" while it is active. At most one query."""
    if namespace.wanted == Namespace.Wanted.ACTIVE:
        return ""
    last = events_of_row(namespace).filter(verb="namespace.changed").first()
    return str(last.after.get("because", "")) if last else ""


def namespace_objects(namespace: Namespace) -> list[AppliedObject]:
    """What was sent for this namespace and what came of it, in a fixed order."""
    rows = AppliedObject.objects.filter(cluster_id=namespace.cluster_id, owner=owner_label(namespace))
    return list(rows.order_by("namespace", "kind", "name"))
