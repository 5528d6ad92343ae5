"""The cluster for all users: capacity, queue length and wait times. No workloads of other teams."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.banner.queries import ActiveBanner, active_banner
from catalog.classes import life_cycle
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass
from catalog.pool.queries import delayed_falls, fall_sentences
from cluster.models import Cluster
from cluster.reads import queries as mirror
from desk.queue.queries import queued_run_counts
from portal.ui.text import plural
from tenants.class_access.queries import visible_classes
from tenants.members.models import in_teams_of
from tenants.models import Namespace, Tenant
from workloads.models import Run, Workload

DAYS = 30
# Smaller numbers of other teams are not shown: with few teams, users could infer whose runs they are.
ANONYMITY_MINIMUM = 3
BELOW_MINIMUM_TEXT = "a few"
_STEPS = ((90, 1, "second"), (5400, 60, "minute"), (float("inf"), 3600, "hour"))


@dataclass(frozen=True)
class ClassCapacity:
    """One class. `others`: queued runs of other teams, None if unknown or not shown; `others_text` has the number or
    the reason. `median_s`: None if too few runs started.
    """

    slug: str
    name: str
    unit: str
    allocatable: int | None
    free: int | None
    yours: int | None
    others: int | None
    others_text: str
    median_s: float | None
    hold: str
    falls: list[str]

    @property
    def used_percent(self) -> int | None:
        """For the bar. Units that are not free count as used: cordoned and unhealthy units start nothing either."""
        if self.free is None or not self.allocatable:
            return None
        return round(100 * (self.allocatable - self.free) / self.allocatable)

    @property
    def median_text(self) -> str:
        """ "40 seconds", "12 minutes"; "" if unknown."""
        if self.median_s is None:
            return ""
        size, unit = next((size, unit) for limit, size, unit in _STEPS if self.median_s < limit)
        return plural(round(self.median_s / size), unit)


@dataclass(frozen=True)
class ClusterPage:
    lines: list[ClassCapacity]
    banner: ActiveBanner | None
    as_of: datetime | None
    is_stale: bool
    problem: str


@dataclass(frozen=True)
class _Waited:
    runs: int = 0
    own: int = 0
    median: float | None = None
    own_median: float | None = None


def cluster_page(by: Actor, cluster: Cluster) -> ClusterPage:
    """At most ten queries, whatever the number of classes, teams and runs."""
    classes = list(visible_classes(by, cluster).exclude(interface=GpuClass.Interface.STORAGE).order_by("slug"))
    teams = list(Tenant.objects.filter(in_teams_of(by)).values_list("pk", "slug"))
    as_of = mirror.as_of(cluster.pk, "Node", "Pod", "Job", "Workload")
    waiting = queued_run_counts(cluster, [slug for _, slug in teams]) if as_of.is_known else None
    waited = _waited(cluster, [pk for pk, _ in teams])
    capacities = capacity_queries.capacities(cluster, classes)
    falls, now = delayed_falls(classes), timezone.now()
    lines = []
    for one in classes:
        yours, others, text = _waits(waiting, one.slug, is_staff=by.sees_all)
        lines.append(
            ClassCapacity(
                slug=one.slug,
                name=one.name,
                unit=catalog.unit_of(one),
                allocatable=capacities[one.pk].allocatable,
                free=capacities[one.pk].free,
                yours=yours,
                others=others,
                others_text=text,
                median_s=_median(waited.get(one.slug, _Waited()), is_staff=by.sees_all),
                hold=life_cycle.hold_sentence(one, now=now),
                falls=fall_sentences(falls.get(one.pk, [])),
            )
        )
    return ClusterPage(lines, active_banner(cluster.pk), as_of.at, not as_of.is_current, as_of.problem)


def _waits(
    waiting: dict[str, tuple[int, int]] | None, slug: str, *, is_staff: bool
) -> tuple[int | None, int | None, str]:
    if waiting is None:
        return None, None, "unknown"
    total, own = waiting.get(slug, (0, 0))
    others = total - own
    if 0 < others < ANONYMITY_MINIMUM and not is_staff:
        return own, None, BELOW_MINIMUM_TEXT
    return own, others, str(others)


def _median(waited: _Waited, *, is_staff: bool) -> float | None:
    """Ignores other teams' runs if there are few, because the median would show their waits. None for few runs."""
    hides = 0 < waited.runs - waited.own < ANONYMITY_MINIMUM and not is_staff
    runs, median = (waited.own, waited.own_median) if hides else (waited.runs, waited.median)
    return median if runs >= ANONYMITY_MINIMUM else None


def _waited(cluster: Cluster, teams: Collection[int]) -> dict[str, _Waited]:
    since = timezone.now() - timedelta(days=DAYS)
    with connection.cursor() as found:
        found.execute(_WAITED, {"cluster": cluster.pk, "teams": list(teams), "since": since})
        return {slug: _Waited(*rest) for slug, *rest in found.fetchall()}


_SECONDS = "extract(epoch FROM greatest(run.admitted_at - run.requested_at, interval '0'))::float8"
_OWN = "workload.tenant_id = ANY(%(teams)s)"
_WAITED = f"""
SELECT run.spec ->> 'gpu_class', count(*), count(*) FILTER (WHERE {_OWN}),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY {_SECONDS}),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY {_SECONDS}) FILTER (WHERE {_OWN})
  FROM {Run._meta.db_table} run
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
 WHERE namespace.cluster_id = %(cluster)s AND run.admitted_at >= %(since)s
 GROUP BY 1"""
