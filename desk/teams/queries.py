"""The list of teams for staff: one page by any of its sort orders, and how many teams are in each state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.rest.paging import LIMIT_DEFAULT
from catalog.classes import queries as catalog
from catalog.classes.capacity.queries import used_by_namespace
from catalog.models import GpuClass
from cluster.apply import queries as apply_queries
from cluster.models import Cluster
from cluster.reads import queries as mirror
from cluster.reads.observed import AsOf
from desk.capacity.totals import weight_of
from desk.queue.queries import queued_runs_by_team
from desk.teams import sql
from desk.teams.cursor import decode_cursor, encode_cursor
from desk.teams.sql import SORTS, TeamRecord
from desk.teams.types import STUCK, TEAM_STATES, ClassUse, TeamFilter, TeamListRow, TeamOwner
from portal.core.due import table_label
from tenants.grants.queries import TeamUnits, units_by_team
from tenants.models import Membership, Namespace

ALL_TEAMS = TeamFilter()
# Rows of one query of an export.
BATCH = 500


@dataclass(frozen=True)
class TeamListPage:
    rows: list[TeamListRow]
    next_cursor: str | None
    as_of: AsOf


def read_teams(
    cluster: Cluster, chosen: TeamFilter, *, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> TeamListPage:
    """Eight queries, whatever the number of teams. Raises Refused (bad_cursor)."""
    found = _page(cluster, chosen, decode_cursor(chosen.sort, cursor) if cursor else None, limit + 1)
    as_of = mirror.as_of(cluster.pk, "Pod", "ResourceClaim")
    return TeamListPage(
        rows=_rows(cluster, found[:limit], is_known=as_of.is_known),
        next_cursor=encode_cursor(chosen.sort, found[limit - 1]) if len(found) > limit else None,
        as_of=as_of,
    )


def every_team(cluster: Cluster, chosen: TeamFilter) -> Iterator[TeamListRow]:
    """All that match, read in batches."""
    cursor = None
    while True:
        page = read_teams(cluster, chosen, cursor=cursor, limit=BATCH)
        yield from page.rows
        cursor = page.next_cursor
        if cursor is None:
            return


def team_counts(cluster: Cluster) -> dict[str, int]:
    """The number of teams in each state. One query."""
    with connection.cursor() as found:
        found.execute(sql.COUNTS, {"cluster": cluster.pk})
        return dict.fromkeys(TEAM_STATES, 0) | dict(found.fetchall())


# ---- one page ----------------------------------------------------------------------------------------------------


def _page(cluster: Cluster, chosen: TeamFilter, after: list[Any] | None, limit: int) -> list[TeamRecord]:
    order = SORTS[chosen.sort]
    values: dict[str, Any] = {f"key{number}": key for number, key in enumerate(after or ())}
    values |= {"cluster": cluster.pk, "limit": limit}
    conditions = ["true"] if after is None else [order.after]
    for number, word in enumerate(chosen.text.split()):
        conditions.append(sql.HAS_WORD.format(number=number))
        values[f"word{number}"] = f"%{_escaped(word)}%"
    if chosen.state:
        conditions.append(sql.IN_STATE)
        values["state"] = chosen.state
    if chosen.gpu_class is not None:
        conditions.append(sql.HAS_CLASS)
        values["class"] = chosen.gpu_class
    if chosen.idle_days is not None:
        conditions.append(sql.IS_IDLE)
        values["idle_days"] = chosen.idle_days
    with connection.cursor() as found:
        found.execute(sql.PAGE.format(where=" AND ".join(conditions), order=order.order), values)
        return [TeamRecord(*row) for row in found.fetchall()]


def _escaped(word: str) -> str:
    """Literal in LIKE."""
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _rows(cluster: Cluster, records: Collection[TeamRecord], *, is_known: bool) -> list[TeamListRow]:
    classes = list(GpuClass.objects.filter(cluster=cluster).order_by("slug"))
    teams = [one.pk for one in records]
    names = [one.namespace for one in records if one.namespace]
    units = units_by_team([one.pk for one in classes], timezone.now(), tenant_ids=teams)
    used = used_by_namespace(cluster, classes, namespaces=names) if is_known else None
    queued = queued_runs_by_team(cluster, [one.slug for one in records])
    owners = _owners(teams)
    label = table_label(Namespace)
    astray = apply_queries.out_of_sync_counts(cluster.pk, [f"{label}.{one.namespace_id}" for one in records])
    return [
        TeamListRow(
            slug=one.slug,
            name=one.name,
            state=one.state,
            created_at=one.created_at,
            is_busy=one.is_busy,
            last_activity_at=one.active_at,
            next_expiry_at=one.expiry_at,
            problem=one.problem if one.state == STUCK else "",
            owners=tuple(owners[one.pk]),
            uses=tuple(_uses(one, classes, units, used)),
            queued_runs=queued.get(one.slug, 0),
            out_of_sync=astray.get(f"{label}.{one.namespace_id}", 0),
        )
        for one in records
    ]


def _owners(teams: Collection[int]) -> dict[int, list[TeamOwner]]:
    rows = Membership.objects.filter(tenant__in=teams, role=Membership.Role.OWNER).order_by("since", "pk")
    found: dict[int, list[TeamOwner]] = defaultdict(list)
    for team, name, email in rows.values_list("tenant_id", "user__name", "user__email"):
        found[team].append(TeamOwner(name, email))
    return found


def _uses(
    team: TeamRecord,
    classes: Collection[GpuClass],
    units: Mapping[int, Mapping[int, TeamUnits]],
    used: Mapping[int, Mapping[str, int]] | None,
) -> Iterator[ClassUse]:
    """Classes of which the team has or uses units. Use of storage is not read: it is not in pods."""
    for one in classes:
        own = units.get(one.pk, {}).get(team.pk)
        quota = own.in_force if own else 0
        taken = None if used is None or one.is_storage else used[one.pk].get(team.namespace or "", 0)
        borrowed = max(0, (taken or 0) - (own.keepable if own else 0))
        if quota or taken:
            is_gpu = one.interface in (GpuClass.Interface.DEVICE_PLUGIN, GpuClass.Interface.DRA)
            is_shared = one.sharing != GpuClass.Sharing.NONE
            unit, weight = catalog.unit_of(one), weight_of(one)
            yield ClassUse(one.slug, one.name, unit, quota, taken, borrowed, is_shared, is_gpu, weight)
