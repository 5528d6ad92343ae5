"""The SQL of the list of teams, its sort orders, and a row of its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts.models import Event
from cluster.observe_only.queries import WAITING
from desk.teams import types as team_types
from tenants.models import Grant, Namespace, Tenant
from workloads.models import Run, Workload

# As tenants.lifecycle.policy.lifecycle_state for a closed namespace. A failed reconcile comes first: it needs a person.
_STATE = f"""CASE WHEN namespace.id IS NULL THEN '{team_types.NO_NAMESPACE}'
     WHEN namespace.error_code NOT IN ('', '{WAITING}') THEN '{team_types.STUCK}'
     WHEN namespace.wanted = '{Namespace.Wanted.CLOSED.value}' AND namespace.closes_at > now()
     THEN '{team_types.CLOSING}'
     WHEN namespace.wanted = '{Namespace.Wanted.CLOSED.value}' THEN '{team_types.CLOSED}'
     WHEN namespace.wanted = '{Namespace.Wanted.SUSPENDED.value}' THEN '{team_types.SUSPENDED}'
     WHEN namespace.applied_as_of IS NULL THEN '{team_types.PROVISIONING}'
     WHEN namespace.is_trial THEN '{team_types.TRIAL}' ELSE '{team_types.ACTIVE}' END"""

_TEAMS = f"""{Tenant._meta.db_table} team
  LEFT JOIN {Namespace._meta.db_table} namespace
    ON namespace.tenant_id = team.id AND namespace.cluster_id = %(cluster)s"""

# Whatever a look-up reads is of one team: with the order of an index, a page reads only the teams that it shows.
_FROM = f"""{_TEAMS}
  LEFT JOIN LATERAL (
       SELECT max(coalesce(last.ended_at, last.requested_at)) AS at,
              coalesce(bool_or(last.ended_at IS NULL), false) AS is_busy
         FROM {Workload._meta.db_table} workload
         JOIN LATERAL (SELECT run.ended_at, run.requested_at FROM {Run._meta.db_table} run
                        WHERE run.workload_id = workload.id ORDER BY run.number DESC LIMIT 1) last ON true
        WHERE workload.tenant_id = team.id) ran ON true
  LEFT JOIN LATERAL (
       SELECT event.at FROM {Event._meta.db_table} event
        WHERE event.tenant = team.slug AND event.actor_id IS NOT NULL ORDER BY event.id DESC LIMIT 1) acted ON true
  LEFT JOIN LATERAL (
       SELECT min(upper(held.period)) AS at FROM {Grant._meta.db_table} held
        WHERE held.tenant_id = team.id AND held.units > 0 AND held.period @> now()) expiry ON true"""
_ACTIVE_AT = "greatest(ran.at, acted.at)"
_IDLE_SINCE = f"coalesce({_ACTIVE_AT}, team.created_at)"

HAS_WORD = "(team.slug ILIKE %(word{number})s OR team.name ILIKE %(word{number})s)"
IN_STATE = f"{_STATE} = %(state)s"
HAS_CLASS = f"""EXISTS (SELECT FROM {Grant._meta.db_table} own
     WHERE own.tenant_id = team.id AND own.gpu_class_id = %(class)s AND own.units > 0 AND own.period @> now())"""
IS_IDLE = f"NOT ran.is_busy AND {_IDLE_SINCE} <= now() - make_interval(days => %(idle_days)s)"

PAGE = f"""SELECT team.id, team.slug, team.name, team.created_at, namespace.id, namespace.name, {_STATE},
       coalesce(namespace.error_text, ''), ran.is_busy, {_ACTIVE_AT}, expiry.at
  FROM {_FROM}
 WHERE {{where}} ORDER BY {{order}} LIMIT %(limit)s"""

COUNTS = f"SELECT {_STATE}, count(*) FROM {_TEAMS} GROUP BY 1"


@dataclass(frozen=True)
class TeamRecord:
    pk: int
    slug: str
    name: str
    created_at: datetime
    namespace_id: int | None
    namespace: str | None
    state: str
    problem: str
    is_busy: bool
    active_at: datetime | None
    expiry_at: datetime | None


@dataclass(frozen=True)
class SortOrder:
    """`columns`: in SQL; the last one is unique. `key`: their values of a row, of these `kinds`."""

    label: str
    columns: tuple[str, ...]
    key: Callable[[TeamRecord], list[Any]]
    kinds: tuple[type, ...]
    is_descending: bool = False

    @property
    def order(self) -> str:
        return ", ".join(f"{one} DESC" if self.is_descending else one for one in self.columns)

    @property
    def after(self) -> str:
        values = ", ".join(f"%(key{number})s" for number in range(len(self.columns)))
        return f"({', '.join(self.columns)}) {'<' if self.is_descending else '>'} ({values})"


# The first two read an index. The others read what they sort by of all teams, in one query.
SORTS = {
    "team": SortOrder("Team", ("team.slug",), lambda one: [one.slug], (str,)),
    "created": SortOrder("Newest first", ("team.id",), lambda one: [one.pk], (int,), is_descending=True),
    "activity": SortOrder(
        "Longest idle first",
        ("ran.is_busy::int", _IDLE_SINCE, "team.id"),
        lambda one: [int(one.is_busy), one.active_at or one.created_at, one.pk],
        (int, datetime, int),
    ),
    "expiry": SortOrder(
        "Next expiry first",
        ("(expiry.at IS NULL)::int", "coalesce(expiry.at, team.created_at)", "team.id"),
        lambda one: [int(one.expiry_at is None), one.expiry_at or one.created_at, one.pk],
        (int, datetime, int),
    ),
}
