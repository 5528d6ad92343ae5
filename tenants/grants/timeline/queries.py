"""A team's grants over time, each with its expiry: what stops, what continues and until when, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from catalog.classes import queries as catalog
from tenants.grants import types as grant_types
from tenants.grants.queries import OVER_AT, class_facts
from tenants.grants.timeline.types import GrantReclaim, GrantRow
from tenants.models import Grant, QuotaLine, Tenant


def grants_of(tenant: Tenant, *, at: datetime) -> QuerySet[Grant]:
    rows = Grant.objects.alias(over_at=OVER_AT).filter(tenant=tenant, over_at__gt=at)
    return rows.select_related("gpu_class", "line")


def grant_rows(tenant: Tenant, *, at: datetime) -> list[GrantRow]:
    """Returns grants in force, future or in their grace, by class and start. Five queries, whatever their number."""
    grants = sorted(grants_of(tenant, at=at), key=lambda one: (one.gpu_class.slug, one.period.lower, one.pk))
    facts = class_facts(tenant, {one.gpu_class.slug for one in grants}, at=at) if grants else {}
    known = {slug: found.facts for slug, found in facts.items()}
    takings = reclaims_by_class(tenant, at=at) if grants else {}
    return [_row(one, grants, known, takings.get(one.gpu_class_id, ()), at) for one in grants]


def _row(
    grant: Grant,
    grants: Sequence[Grant],
    facts: dict[str, grant_types.ClassFacts],
    takings: Sequence[GrantReclaim],
    at: datetime,
) -> GrantRow:
    starts, ends = grant.period.lower, grant.period.upper
    later = (
        one
        for one in grants
        if one.gpu_class_id == grant.gpu_class_id and one.kind == Grant.Kind.BASE and one.period.lower >= ends
    )
    following = next(later, None)
    return GrantRow(
        pk=grant.pk,
        slug=grant.gpu_class.slug,
        name=grant.gpu_class.name,
        unit=catalog.unit_of(grant.gpu_class),
        is_storage=grant.gpu_class.is_storage,
        kind=grant.kind,
        units=grant.units,
        starts=starts,
        ends=ends,
        runs_until=ends + grant.grace,
        state="later" if starts > at else "grace" if ends <= at else "now",
        request=grant.line.request_id if grant.line else None,
        follows=following.units if following else None,
        is_continued=following is not None and following.period.lower == ends,
        facts=facts.get(grant.gpu_class.slug),
        taking=next((one for one in takings if grant.kind == Grant.Kind.BASE and _concerns(one, starts, ends)), None),
    )


def _concerns(taking: GrantReclaim, starts: datetime, ends: datetime) -> bool:
    """True for the grant that a pending reduction would cut, or that an approved one cut: it ends at its start."""
    return starts <= taking.starts < ends if taking.is_pending else taking.starts == ends


def reclaims_by_class(tenant: Tenant, *, at: datetime) -> dict[int, list[GrantReclaim]]:
    """Returns, by class id, pending and approved reductions of grants that would still run without them. One query."""
    rows = QuotaLine.objects.filter(tenant=tenant, kind=QuotaLine.Kind.RECLAIM, asked_until__gt=at)
    found: dict[int, list[GrantReclaim]] = {}
    for row in rows.filter(state__in=[QuotaLine.State.PENDING, QuotaLine.State.APPROVED]).order_by("pk"):
        units = row.asked_units if row.decided_units is None else row.decided_units
        starts = row.decided_from or row.asked_from
        taking = GrantReclaim(row.request_id, row.state == QuotaLine.State.PENDING, units, starts, row.asked_until)
        found.setdefault(row.gpu_class_id, []).append(taking)
    return found
