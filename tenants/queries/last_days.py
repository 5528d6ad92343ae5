"""A team's grants over time, each with its last day: what stops, what goes on until when, what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from catalog import queries as catalog
from portal.errors import Refusal
from tenants import policy
from tenants.models import Grant, Tenant
from tenants.queries import class_facts, reclaims
from tenants.queries.grants import OVER_AT
from tenants.queries.reclaims import Taking


@dataclass(frozen=True)
class GrantRow:
    """`state`: now, later, or grace (it is over, what runs goes on until `runs_until`).

    `request`: which decided it, None for a grant that came without one. `follows`: the total of the base grant that
    begins when or after this one ends, None without one; `is_continued`: it begins at once. `facts`: the class as a
    renewal sees it, None when the team may not ask for it. `taking`: units of it may be taken back, or were. `refusal`:
    why this person may not renew it, `reclaim_refusal`: why not take units of it back; the page fills them in.
    """

    pk: int
    slug: str
    name: str
    unit: str
    kind: str
    units: int
    starts: datetime
    ends: datetime
    runs_until: datetime
    state: str
    request: int | None
    follows: int | None
    is_continued: bool
    facts: policy.ClassFacts | None
    taking: Taking | None
    refusal: Refusal | None = None
    reclaim_refusal: Refusal | None = None

    @property
    def is_storage(self) -> bool:
        return self.unit == "GiB"

    @property
    def take_label(self) -> str:
        return "Take storage back…" if self.is_storage else "Take units back…"

    @property
    def has_grace(self) -> bool:
        return self.runs_until > self.ends


@dataclass(frozen=True)
class Bar:
    """A grant in the picture of its class: where it begins and how long it is, in percent of the picture's time."""

    row: GrantRow
    x: float
    width: float
    y: int


@dataclass(frozen=True)
class ClassGrants:
    """One class with its grants by start, drawn from `start` to `end`."""

    slug: str
    name: str
    unit: str
    rows: tuple[GrantRow, ...]
    bars: tuple[Bar, ...]
    start: datetime
    end: datetime
    now_x: float

    @property
    def height(self) -> int:
        return BAR_PX * len(self.bars)


BAR_PX = 22


def grants_of(tenant: Tenant, *, at: datetime) -> QuerySet[Grant]:
    rows = Grant.objects.alias(over_at=OVER_AT).filter(tenant=tenant, over_at__gt=at)
    return rows.select_related("gpu_class", "line")


def grant_rows(tenant: Tenant, *, at: datetime) -> list[GrantRow]:
    """In force, to come, or in their grace; by class and start. Five queries, whatever the number of grants."""
    grants = sorted(grants_of(tenant, at=at), key=lambda one: (one.gpu_class.slug, one.period.lower, one.pk))
    facts = class_facts(tenant, {one.gpu_class.slug for one in grants}, at=at) if grants else {}
    known = {slug: found.facts for slug, found in facts.items()}
    takings = reclaims.takings(tenant, at=at) if grants else {}
    return [_row(one, grants, known, takings.get(one.gpu_class_id, ()), at) for one in grants]


def by_class(rows: list[GrantRow], *, at: datetime) -> list[ClassGrants]:
    """One picture a class, all over the same time."""
    if not rows:
        return []
    start = min(at, *(row.starts for row in rows))
    end = max(row.runs_until for row in rows)
    span = (end - start).total_seconds()

    def x(moment: datetime) -> float:
        return round(100 * (moment - start).total_seconds() / span, 2)

    found: dict[str, list[GrantRow]] = {}
    for row in rows:
        found.setdefault(row.slug, []).append(row)
    return [
        ClassGrants(
            slug=slug,
            name=own[0].name,
            unit=own[0].unit,
            rows=tuple(own),
            bars=tuple(
                Bar(row, x(row.starts), round(x(row.ends) - x(row.starts), 2), number * BAR_PX)
                for number, row in enumerate(own)
            ),
            start=start,
            end=end,
            now_x=x(at),
        )
        for slug, own in found.items()
    ]


def _row(
    grant: Grant,
    grants: Sequence[Grant],
    facts: dict[str, policy.ClassFacts],
    takings: Sequence[Taking],
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


def _concerns(taking: Taking, starts: datetime, ends: datetime) -> bool:
    """The grant that would be cut, or the one that was: it ends where the other total begins."""
    return starts <= taking.starts < ends if taking.is_pending else taking.starts == ends
