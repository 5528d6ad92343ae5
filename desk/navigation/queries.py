"""What every page shows of a person, in one query: teams, unread notices, the banner, observe-only, another cluster,
announcements.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import Exists, Subquery

from accounts.models import Role, User
from accounts.notices.queries import unread_count_of
from catalog.banner.queries import ActiveBanner, active_banners
from cluster.observe_only.queries import observed_clusters
from cluster.replacement.queries import replaced_clusters
from tenants.announcements import shown as announcements
from tenants.announcements.queries import banner_rows
from tenants.models import Deputy

# Stands for the user in the composed statement. No user has this key.
_SOMEBODY = -1


@dataclass(frozen=True)
class Observed:
    """Since when the portal only observes the cluster. `by`: "" if no person decided it."""

    since: datetime
    by: str


@dataclass(frozen=True)
class PageFacts:
    teams: list[tuple[str, str]]  # slug and name of the user's own teams
    is_deputy: bool  # an approver's delegate now
    unread: int
    banner: ActiveBanner | None
    observed: Observed | None
    other_cluster_since: datetime | None  # the watcher reaches another cluster than the one of the rows
    announcements: list[dict[str, Any]]  # pk, title, body, severity, wants_acknowledgement, retiring: Migration
    announced: str  # changes whenever the announcements do


def page_facts(user: User) -> PageFacts:
    """One query, and one more for users who ever were a delegate, or are in no team and no approver."""
    statement, values = _statement(settings.CLUSTER_NAME)
    with connection.cursor() as cursor:
        cursor.execute(statement, [user.pk if value == _SOMEBODY else value for value in values])
        rows = cursor.fetchall()
    if not rows:
        return PageFacts([], False, 0, None, None, None, [], "")
    _slug, _name, is_named, count, said, ends, since, decider, other_since, announced = rows[0]
    teams = [(slug, name) for slug, name, *_ in rows if slug is not None]
    banners = [json.loads(one) for one in announced]
    # Runs on every page: delegations in force are read only if there are any.
    may_be = is_named if teams else not user.has_role(Role.APPROVER)
    is_deputy = may_be and Deputy.objects.in_force().filter(deputy=user).exists()
    return PageFacts(
        teams,
        is_deputy,
        count or 0,
        ActiveBanner(said, ends) if said else None,
        Observed(since, decider or "") if since else None,
        other_since,
        [announcements.banner(one) for one in banners],
        announcements.digest_of(banners),
    )


@functools.cache
def _statement(cluster: str) -> tuple[str, tuple[Any, ...]]:
    """Composed once in each process: the ORM needs longer for it than PostgreSQL for the answer."""
    named = Exists(Deputy.objects.filter(deputy=_SOMEBODY, ended_at=None))
    unread = Subquery(unread_count_of(_SOMEBODY))
    banner = active_banners(cluster)
    text, until = Subquery(banner.values("text")[:1]), Subquery(banner.values("until")[:1])
    observed = observed_clusters(cluster)
    since = Subquery(observed.values("observe_only_since")[:1])
    decider = Subquery(observed.values("observe_only_by__name")[:1])
    other = Subquery(replaced_clusters(cluster).values("other_since")[:1])
    announced = ArraySubquery(banner_rows(_SOMEBODY))
    # From the user, because users without a team see the rest too.
    found = User.objects.filter(pk=_SOMEBODY).order_by("memberships__tenant__slug")
    shown = found.annotate(
        is_named=named,
        unread=unread,
        text=text,
        until=until,
        since=since,
        decider=decider,
        other=other,
        announced=announced,
    )
    team = ("memberships__tenant__slug", "memberships__tenant__name")
    facts = ("is_named", "unread", "text", "until", "since", "decider", "other", "announced")
    statement, values = shown.values_list(*team, *facts).query.sql_with_params()
    return statement, values
