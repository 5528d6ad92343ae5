"""The snapshot of the page Health, and the same in plain text for when there is no page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils import timezone

from cluster.models import Cluster
from desk.health.catalog_checks import CatalogChecks, catalog_checks
from desk.health.queries import LATE, Health, health
from portal.ui.text import plural


@dataclass(frozen=True)
class HealthSnapshot:
    health: Health
    checks: CatalogChecks

    @property
    def is_well(self) -> bool:
        return self.health.is_well


@dataclass(frozen=True)
class ReportLine:
    """One finding: what is, and what to do about it."""

    about: str
    sentence: str
    do: str


def take_snapshot(cluster: Cluster, *, is_staff: bool) -> HealthSnapshot:
    """`is_staff`: as catalog_checks. The number of queries does not grow with what is well."""
    checks = catalog_checks(cluster, is_staff=is_staff)
    return HealthSnapshot(health(cluster, checks), checks)


def report_lines(found: HealthSnapshot) -> Iterator[str]:
    """Verdict, age of the picture, then two lines for each finding. Times in UTC."""
    yield found.health.verdict
    yield f"The cluster as of {_at(found.health.as_of)}{' (old)' if found.health.is_stale else ''}."
    for told in findings(found):
        yield ""
        yield f"{told.about}: {told.sentence}"
        yield f"  → {told.do}"


def findings(found: HealthSnapshot) -> list[ReportLine]:
    """In the order of the page."""
    return [
        *_catalog(found.checks),
        *_late(found.health),
        *_failing(found.health),
        *_contradictions(found.health),
        *_objects(found.health),
        *_read(found.health),
    ]


def _catalog(checks: CatalogChecks) -> Iterator[ReportLine]:
    if checks.problem:
        yield ReportLine("catalog", checks.problem, "It is checked again when the cluster can be read.")
    for line in checks.lines or ():
        yield ReportLine(f"{line.severity} {line.code}, {line.about}", line.sentence, line.remedy)
    if checks.more:
        yield ReportLine(
            "catalog", f"{plural(checks.more, 'further finding')} of the same kinds.", "Mend the first ones."
        )


def _late(found: Health) -> Iterator[ReportLine]:
    now = timezone.now()
    for one in found.overdue:
        if now - one.oldest_at > LATE:
            text = f"{plural(one.rows, 'row')} due and not taken, the oldest since {_at(one.oldest_at)}."
            yield ReportLine(
                f"overdue {one.table}", text, "Is a worker up? Look at its log, then at Redis and the beat."
            )


def _failing(found: Health) -> Iterator[ReportLine]:
    for one in found.problems:
        text = f"{one.error_code}: {one.error_text} (tried {plural(one.attempts, 'time')})"
        yield ReportLine(f"failing {one.row}", text, f"Mend the cause; it is tried again at {_at(one.due_at)}.")


def _contradictions(found: Health) -> Iterator[ReportLine]:
    if found.contradictions is None:
        yield ReportLine(
            "contradictions", "Not looked for: the picture of the cluster is old.", "Mend what reads the cluster first."
        )
    for one in found.contradictions or ():
        about = f"contradiction {one.code}, run {one.run} of {one.team}/{one.workload}"
        yield ReportLine(about, f"{one.sentence}, since {_at(one.since)} at least.", one.do)


def _objects(found: Health) -> Iterator[ReportLine]:
    for one in found.objects:
        do = {
            "refused": "Read the words of the cluster below it and change what they name; it is tried again by itself.",
            "foreign": "Rename or remove the object that the portal did not make.",
        }.get(one.result, "Nothing, if it is gone in a minute: the portal sets it back. Else look at the worker's log.")
        text = f"{one.detail} {one.raw}".strip() or "It is not as it was sent."
        yield ReportLine(f"{one.result} {one.kind} {one.name}", text, do)
    for stuck in found.stuck:
        about = f"namespace {stuck.name} of {stuck.tenant}"
        left = f" Still there: {', '.join(stuck.objects)}." if stuck.objects else ""
        if not stuck.blockers:
            text = f"It was deleted at {_at(stuck.since)} and is still there; the cluster has not said why.{left}"
            yield ReportLine(about, text, "Wait a minute, then look at the controllers of what is still there.")
        for blocker in stuck.blockers:
            yield ReportLine(about, f"Deleted at {_at(stuck.since)}. {blocker.said}{left}", blocker.do)
    for orphan in found.orphans:
        where = f"{orphan.namespace}/{orphan.name}" if orphan.namespace else orphan.name
        text = "It carries the portal's label, and no row wants it."
        yield ReportLine(f"orphan {orphan.kind} {where}", text, "Delete it with kubectl if nobody needs it.")


def _read(found: Health) -> Iterator[ReportLine]:
    do = "Is the watcher up, does the API server answer, may it list and watch? Look at its log."
    if not found.mirrors:
        yield ReportLine("mirror", "Nothing was read from the cluster yet.", do)
    for one in found.mirrors:
        if one.is_stale:
            yield ReportLine(
                f"mirror of {one.kind}", f"Listed {_at(one.listed_at)}, last word {_at(one.last_event_at)}.", do
            )
    if found.is_stale and found.mirrors and not any(one.is_stale for one in found.mirrors):
        yield ReportLine("mirror", "The watcher does not beat; what is shown grows old.", do)


def _at(moment: datetime | None) -> str:
    return "never" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
