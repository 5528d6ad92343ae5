"""How many of a team's own units other teams use through borrowing.

Kueue does not record whose idle units a borrower uses, so this is a single number only if all possible answers agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from catalog.classes import queries as catalog
from catalog.classes.capacity.queries import used_by_namespace
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.reads import queries as mirror
from tenants.grants.queries import units_by_team
from tenants.models import Grant, Namespace


@dataclass(frozen=True)
class LentUnits:
    """Units of one class: the least and the most that may be lent."""

    least: int
    most: int

    @property
    def text(self) -> str:
        if self.least == self.most:
            return f"{self.most}"
        return f"{self.least} to {self.most}" if self.least else f"up to {self.most}"


NONE_LENT = LentUnits(0, 0)


@dataclass(frozen=True)
class GrantUse:
    """The quota of a team for a class, and what it uses of it now."""

    granted: int
    used: int

    @property
    def units(self) -> int:
        return max(0, self.granted - self.used)


@dataclass(frozen=True)
class OtherTeamsUse:
    """Use by all teams except one. `borrowed`: beyond their own quota and grace; `kept`: in use within their quota."""

    borrowed: int
    kept: int


def lent_units(namespace: Namespace, idle: Mapping[GpuClass, GrantUse], at: datetime) -> dict[int, LentUnits | None]:
    """By class id; the caller has checked that pods are known. None: unknown. No query if nothing is idle; one if no
    other team uses such a class, three if one does, five if one borrows. The cost grows with the used units of these
    classes, not with the number of teams that have quota.
    """
    found: dict[int, LentUnits | None] = {one.pk: NONE_LENT for one in idle}
    cluster = namespace.cluster
    lending = [one for one, own in idle.items() if own.units]
    if not lending or not cluster.has_kueue:
        return found
    is_dra = {one.pk for one in lending if one.interface == GpuClass.Interface.DRA}
    if is_dra and not mirror.is_known(cluster.pk, "ResourceClaim"):
        found |= dict.fromkeys(is_dra)
        lending = [one for one in lending if one.pk not in is_dra]
    others = use_by_other_teams(cluster, lending, at, but=namespace.name)
    borrowed = [one for one in lending if others[one.pk].borrowed]
    if not borrowed:
        return found
    spare = _spare(cluster, borrowed)
    # Borrowed units beyond the Cohort's own; and the number of granted units with which other teams could have lent all
    # of them.
    lent_by_teams = {one: 0 if spare is None else max(0, others[one.pk].borrowed - spare[one.pk]) for one in borrowed}
    enough = {one.pk: idle[one].granted + others[one.pk].kept + units for one, units in lent_by_teams.items() if units}
    promised = _promised(enough, at) if enough else {}
    for one, units in lent_by_teams.items():
        theirs, own = others[one.pk], idle[one]
        most = min(own.units, theirs.borrowed)
        idle_elsewhere = max(0, promised.get(one.pk, 0) - own.granted - theirs.kept)
        # Units that other teams may have lent are not certainly this team's.
        found[one.pk] = LentUnits(min(max(0, units - idle_elsewhere), most), most)
    return found


def use_by_other_teams(
    cluster: Cluster, classes: Collection[GpuClass], at: datetime, *, but: str = ""
) -> dict[int, OtherTeamsUse]:
    """By class id, for all namespaces except `but`. Three queries, one if nothing is in use."""
    used = used_by_namespace(cluster, classes) if classes else {}
    names = {name for by_name in used.values() for name in by_name} - {but}
    teams: dict[str, int] = {}
    own = {}
    if names:
        teams = dict(Namespace.objects.filter(cluster=cluster, name__in=names).values_list("name", "tenant_id"))
        own = units_by_team([one.pk for one in classes], at, tenant_ids=list(teams.values()))
    found = {}
    for one in classes:
        borrowed = kept = 0
        for name, units in used[one.pk].items():
            if name in teams:
                theirs = own.get(one.pk, {}).get(teams[name])
                borrowed += max(0, units - (theirs.keepable if theirs else 0))
                kept += min(units, theirs.in_force if theirs else 0)
        found[one.pk] = OtherTeamsUse(borrowed, kept)
    return found


def _promised(enough: Mapping[int, int], at: datetime) -> dict[int, int]:
    """Returns granted units in force of all teams by class id, exact if below `enough`; otherwise at least `enough`.

    Reads at most `enough` grants, however many teams have quota for the class: each grant has at least one unit.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PROMISED, [list(enough), list(enough.values()), at, at])
        return {pk: int(units) for pk, units in cursor.fetchall()}


_PROMISED = f"""
SELECT asked.pk, coalesce(sum(held.units), 0)
  FROM unnest(%s::bigint[], %s::bigint[]) AS asked(pk, enough)
 CROSS JOIN LATERAL (
       SELECT units FROM {Grant._meta.db_table}
        WHERE gpu_class_id = asked.pk AND upper(period) > %s AND lower(period) <= %s AND units > 0
        ORDER BY upper(period) LIMIT asked.enough) held
 GROUP BY asked.pk"""


def _spare(cluster: Cluster, classes: Collection[GpuClass]) -> dict[int, int] | None:
    """By class id: units that the Cohort itself can lend. None: the Cohort is unknown."""
    cohort = mirror.object_named(cluster.pk, "Cohort", cluster.cohort)
    if cohort is None:
        return None
    quota = cohort.record["quota"]
    return {
        one.pk: sum(cell["nominal"] for cell in quota.get(catalog.flavor_name(one), {}).values()) for one in classes
    }
