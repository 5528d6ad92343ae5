"""Running and queued workloads of a team, by class: their end, whether they are preemptible, and suggested actions.

Pure: it turns rows of workloads and quota into lines for page, stream and API. It does not depend on the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from cluster.manifests.run_spec import NOTEBOOK
from portal.ui.text import duration_text, plural
from workloads.core.queries import watch_of
from workloads.core.unit_sql import rank
from workloads.interruption.exposure import Standing
from workloads.lifetime.run_time.queries import total_minutes
from workloads.pages.shown import ListRow, list_row
from workloads.status.explain.container_start import IMAGE_REASONS
from workloads.status.types import Phase
from workloads.status.workload_row import SHOWN_OF_A_CLASS, WorkloadRow

if TYPE_CHECKING:
    from desk.home.quota import ClassQuota

NO = "no"
BORROWED = "yes, borrowed units may be reclaimed"
IN_GRACE = "not before the grace period ends"
# By the rank of the priority.
LESS_URGENT = (NO, "only by production workloads of your team", "only by workloads of your team with higher priority")
# States in which the user reads the output.
LOGGED = frozenset({Phase.RUNNING, Phase.STOPPING})
NAMED = 3


@dataclass(frozen=True)
class RunningRow(ListRow):
    """`units` of its class; `time_limit`: from its start, "" for none. `can_be_interrupted` is the result of
    `interruption_risk`, "" if it is not on a node.

    `verb`: "open", "fix", "log" or "progress", and its `label`; `verb_href`: its link, "" for a button. Permissions are
    not known here: the page hides what its viewer may not use.
    """

    units: int = 0
    time_limit: str = ""
    can_be_interrupted: str = ""
    idle_since: datetime | None = None
    verb: str = ""
    label: str = ""
    verb_href: str = ""


@dataclass(frozen=True)
class RunningGroup:
    """`text`: how many units of the class are in use, "" if unknown."""

    name: str
    text: str
    rows: tuple[RunningRow, ...]

    @property
    def shown(self) -> tuple[RunningRow, ...]:
        """What the page shows: a team may run hundreds."""
        return self.rows[:SHOWN_OF_A_CLASS]

    @property
    def more(self) -> int:
        return len(self.rows) - len(self.shown)


@dataclass(frozen=True)
class WaitingGroup:
    """`sentence` is about the team's own units; `next_end` is the first known end of a running workload."""

    name: str
    title: str
    status: str
    sentence: str
    next_end: str
    next_end_at: datetime | None
    rows: tuple[ListRow, ...]

    @property
    def shown(self) -> tuple[ListRow, ...]:
        """What the page shows, the first in the queue."""
        return self.rows[:SHOWN_OF_A_CLASS]

    @property
    def more(self) -> int:
        return len(self.rows) - len(self.shown)


@dataclass(frozen=True)
class Concern:
    """A workload that needs attention; `since` of an idle one."""

    name: str
    text: str
    since: datetime | None = None


@dataclass(frozen=True)
class Attention:
    title: str
    concerns: tuple[Concern, ...]
    more: int


# ---- running workloads -------------------------------------------------------------------------------------------


def running_groups(
    tenant: str, rows: Iterable[WorkloadRow], holdings: Iterable[ClassQuota]
) -> tuple[RunningGroup, ...]:
    held = {one.slug: one for one in holdings}
    found = []
    for slug, theirs in _by_class(rows).items():
        holding = held.get(slug)
        lines = tuple(_running_row(tenant, row) for row in theirs)
        found.append(RunningGroup(theirs[0].gpu_class.name, usage_text(holding), lines))
    return tuple(found)


def interruption_risk(row: WorkloadRow) -> str:
    """Returns a few words for a workload on a node; "" otherwise and while it is unknown."""
    if row.exposure is None or row.run is None or not is_on_a_node(row):
        return ""
    standing = row.exposure.place.standing
    return {Standing.BORROWED: BORROWED, Standing.IN_GRACE: IN_GRACE, Standing.NO_QUEUE: NO}.get(
        standing, LESS_URGENT[rank(row.run)]
    )


def is_on_a_node(row: WorkloadRow) -> bool:
    return row.pod is not None and row.pod.is_on_a_node


def usage_text(holding: ClassQuota | None) -> str:
    """`3 of 4 GPUs in use`, `6 shares in use, 2 borrowed`."""
    if holding is None or holding.used is None or not holding.unit:
        return ""
    if holding.borrowed:
        return f"{plural(holding.used, holding.unit)} in use, {holding.borrowed} borrowed"
    if holding.used > holding.granted:
        return f"{plural(holding.used, holding.unit)} in use, {holding.granted} granted"
    return f"{holding.used} of {plural(holding.granted, holding.unit)} in use"


def _running_row(tenant: str, row: WorkloadRow) -> RunningRow:
    watch = watch_of(row.run) if row.run else None
    minutes = total_minutes(row.run) if row.run else None
    verb, label, href = _verb(tenant, row)
    return RunningRow(
        **vars(list_row(row)),
        units=_units(row),
        time_limit="" if minutes is None else duration_text(minutes),
        can_be_interrupted=interruption_risk(row),
        idle_since=watch.idle_since if watch else None,
        verb=verb,
        label=label,
        verb_href=href,
    )


def _verb(tenant: str, row: WorkloadRow) -> tuple[str, str, str]:
    phase, names = row.status.phase, [tenant, row.workload.name]
    page = reverse("workload", args=names)
    if row.workload.kind == NOTEBOOK and phase is Phase.READY:
        return "open", "Open", ""
    if phase is Phase.BLOCKED and "change" in row.status.actions:
        label = "Fix image" if row.status.reason in IMAGE_REASONS else "Change"
        return "fix", label, reverse("workload-change", args=names)
    if phase in LOGGED:
        return "log", "Log", f"{page}#log"
    return "progress", "Progress", page


# ---- queued workloads --------------------------------------------------------------------------------------------


def waiting_groups(
    waiting: Iterable[WorkloadRow], running: Iterable[WorkloadRow], holdings: Iterable[ClassQuota]
) -> tuple[WaitingGroup, ...]:
    """Rows keep their order within a class; the class whose first row is first comes first."""
    held, runs = {one.slug: one for one in holdings}, _by_class(running)
    found = []
    for slug, theirs in _by_class(waiting).items():
        holding, kinds = held.get(slug), {row.workload.kind for row in theirs}
        blocked = all(row.status.phase is Phase.BLOCKED for row in theirs)
        ends = [end for row in runs.get(slug, ()) if (end := _end(row)) is not None]
        name, at = min(ends, key=lambda end: end[1]) if ends and not blocked else ("", None)
        found.append(
            WaitingGroup(
                name=theirs[0].gpu_class.name,
                title=f"{plural(len(theirs), kinds.pop() if len(kinds) == 1 else 'workload')}, "
                f"{theirs[0].gpu_class.name}",
                status=str(Phase.BLOCKED if blocked else Phase.QUEUED),
                sentence=_own_units(holding),
                next_end=name,
                next_end_at=at,
                rows=tuple(list_row(row) for row in theirs),
            )
        )
    return tuple(found)


def _own_units(holding: ClassQuota | None) -> str:
    if holding is None or holding.used is None or not holding.unit:
        return ""
    unit, queued = holding.unit, holding.queued
    asks = f" Queued workloads request {plural(queued, unit)}." if queued else ""
    if not holding.granted:
        return f"Your team has no quota for this class now.{asks}"
    if holding.used >= holding.granted:
        more = f", plus {plural(holding.borrowed, unit)} borrowed" if holding.borrowed else ""
        all_of_it = "The {} of your team's quota is" if holding.granted == 1 else "All {} of your team's quota are"
        return f"{all_of_it.format(plural(holding.granted, unit))} in use{more}.{asks}"
    left = holding.granted - holding.used
    return (
        f"{left} of {plural(holding.granted, unit)} of your team's quota {'is' if left == 1 else 'are'} unused.{asks}"
    )


def _end(row: WorkloadRow) -> tuple[str, datetime] | None:
    """Returns the latest known end: the time limit, or the idle stop."""
    if row.run is None or row.run.ended_at is not None:
        return None
    watch = watch_of(row.run)
    ends = [at for at in (row.run.ends_at, watch.stops_at if watch else None) if at is not None]
    return (row.workload.name, min(ends)) if ends else None


# ---- workloads that need attention -------------------------------------------------------------------------------


def attention(rows: Sequence[WorkloadRow], waiting: Iterable[WorkloadRow]) -> Attention | None:
    """Blocked workloads, and idle notebooks while workloads of the team are queued for their class."""
    blocked = [Concern(row.workload.name, row.status.sentence) for row in rows if row.status.phase is Phase.BLOCKED]
    wanted = {_slug(row) for row in waiting if row.status.phase is Phase.QUEUED}
    idle = []
    for row in rows:
        watch = watch_of(row.run) if row.run else None
        if watch and watch.idle_since and is_on_a_node(row) and _slug(row) in wanted:
            size = list_row(row).size
            idle.append(
                Concern(row.workload.name, f"uses {size} that queued workloads need; last used", watch.idle_since)
            )
    if not blocked and not idle:
        return None
    said = []
    if blocked:
        said.append(f"{plural(len(blocked), 'workload')} {'is' if len(blocked) == 1 else 'are'} blocked")
    if idle:
        said.append(
            f"{plural(len(idle), 'notebook')} {'is' if len(idle) == 1 else 'are'} idle while workloads are queued"
        )
    concerns = [*blocked, *idle]
    return Attention(f"{', '.join(said)}.", tuple(concerns[:NAMED]), max(0, len(concerns) - NAMED))


def _by_class(rows: Iterable[WorkloadRow]) -> Mapping[str, list[WorkloadRow]]:
    found: dict[str, list[WorkloadRow]] = {}
    for row in rows:
        found.setdefault(_slug(row), []).append(row)
    return found


def _slug(row: WorkloadRow) -> str:
    return row.gpu_class.slug


def _units(row: WorkloadRow) -> int:
    return row.run.total_units if row.run else row.workload.total_units
