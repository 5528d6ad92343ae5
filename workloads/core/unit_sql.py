"""The number of units of a run, as SQL for sums over runs. Units in the spec are per worker."""

from __future__ import annotations

from django.db.models import IntegerField, Q, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce

from cluster.manifests.run_spec import DEFAULT_PRIORITY, PRIORITIES
from workloads.models import Run

# For a table or alias `run`. A spec frozen by an older release has one worker.
WORKERS = "coalesce((run.spec ->> 'workers')::bigint, 1)"
TOTAL_UNITS = f"((run.spec ->> 'units')::bigint * {WORKERS})"

# Unfinished runs that are admitted and not preempted. All other unfinished runs are queued.
HOLDS = Q(admitted_at__isnull=False, put_back_at=None)
HOLDS_UNITS = "(run.admitted_at IS NOT NULL AND run.put_back_at IS NULL)"

_USUAL = " ".join(f"WHEN '{kind}' THEN '{usual}'" for kind, usual in DEFAULT_PRIORITY.items())
# As `rank`, for `run` and its `workload`; null for a priority that this release does not know.
RANK = f"""array_position(ARRAY{list(PRIORITIES)},
    coalesce(nullif(run.priority, ''), run.spec ->> 'priority', CASE workload.kind {_USUAL} END)) - 1"""


def workers() -> Combinable:
    return Coalesce(Cast(KT("spec__workers"), IntegerField()), Value(1))


def total_units() -> Combinable:
    """The same for a queryset of runs."""
    return Cast(KT("spec__units"), IntegerField()) * workers()


def goes_before(priority: str) -> Q:
    """Selects runs of at least this priority. Of two queued runs with equal priority, the later one comes second."""
    names = PRIORITIES[: PRIORITIES.index(priority) + 1]
    kinds = [kind for kind, usual in DEFAULT_PRIORITY.items() if usual in names]
    frozen = Q(spec__priority__in=names) | Q(spec__priority__isnull=True, workload__kind__in=kinds)
    return Q(priority__in=names) | Q(frozen, priority="")


def priority_of(run: Run) -> str:
    """The priority as operators changed it, or otherwise as launched."""
    return run.priority or run.spec.get("priority") or DEFAULT_PRIORITY[run.spec["kind"]]


def rank(run: Run) -> int:
    """The rank of the run's priority: 0 is the highest."""
    return PRIORITIES.index(priority_of(run))
