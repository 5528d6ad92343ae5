"""The snapshot of the page Health, and the same as plain text for when pages do not work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from cluster.models import Cluster
from desk.health.catalog_checks import CatalogChecks, catalog_checks
from desk.health.queries import Health, health
from portal.ui.text import plural

_UNFINISHED = "The log of these pods, or of the job migrate, says why. docs/operators.md: Upgrade."


@dataclass(frozen=True)
class HealthSnapshot:
    health: Health
    checks: CatalogChecks

    @property
    def is_well(self) -> bool:
        return self.health.is_well

    @property
    def findings(self) -> list[ReportLine]:
        return findings(self)


@dataclass(frozen=True)
class FoundObject:
    """What a finding is about: an object of the cluster by its kind, a class, a run, a table of tasks."""

    kind: str
    name: str
    namespace: str = ""


@dataclass(frozen=True)
class ReportLine:
    """One finding and its remedy. `code` is for programs, and stable."""

    about: str
    sentence: str
    do: str
    code: str
    objects: tuple[FoundObject, ...] = ()


def take_snapshot(cluster: Cluster, *, is_staff: bool) -> HealthSnapshot:
    """`is_staff`: as catalog_checks. The number of queries does not depend on the number of rows."""
    checks = catalog_checks(cluster, is_staff=is_staff)
    return HealthSnapshot(health(cluster, checks), checks)


def report_lines(found: HealthSnapshot) -> Iterator[str]:
    """Returns verdict, age of the data, then two lines for each finding. Times in UTC."""
    yield found.health.verdict
    age = f" (outdated). {found.health.mirror_problem}" if found.health.is_stale else "."
    yield f"Cluster data last updated: {_at(found.health.as_of)}{age}"
    for told in findings(found):
        yield ""
        yield f"{told.about}: {told.sentence}"
        yield f"  → {told.do}"


def findings(found: HealthSnapshot) -> list[ReportLine]:
    """In the order of the page."""
    return [
        *_silent(found.health),
        *_releases(found.health),
        *_certificates(found.health),
        *_gpu_operator(found.health),
        *_gpu_faults(found.health),
        *_catalog(found.checks),
        *_late(found.health),
        *_failing(found.health),
        *_contradictions(found.health),
        *_objects(found.health),
        *_read(found.health),
    ]


def _silent(found: Health) -> Iterator[ReportLine]:
    for one in found.silent:
        text = f"{f'{_at(one.since)}: ' if one.since else ''}{one.sentence}"
        yield ReportLine(
            f"component {one.name}", text, one.do, "component_silent", (FoundObject("component", one.name),)
        )


def _releases(found: Health) -> Iterator[ReportLine]:
    for sentence in found.releases.problems if found.releases else ():
        yield ReportLine("processes of the portal", sentence, _UNFINISHED, "upgrade_incomplete")


def _certificates(found: Health) -> Iterator[ReportLine]:
    for one in found.certificates:
        if one.is_to_renew:
            verb = "Expired" if one.is_expired else "Expires"
            text = f"{verb} at {_at(one.ends_at)}; read at {_at(one.read_at)}."
            code = "certificate_expired" if one.is_expired else "certificate_expiring"
            yield ReportLine(one.name, text, one.do, code, (FoundObject("certificate", one.name),))


def _gpu_operator(found: Health) -> Iterator[ReportLine]:
    for one in found.gpu_operator.wrong if found.gpu_operator else ():
        since = f" since {_at(one.since)}" if one.since else ""
        text = f"{one.state}{since}. {one.sentence}"
        objects = (FoundObject(one.kind, one.name),)
        yield ReportLine(f"{one.kind} {one.name}", text, one.do, "gpu_operator_not_ready", objects)


def _gpu_faults(found: Health) -> Iterator[ReportLine]:
    for one in found.gpu_faults:
        sentence = f"{one.title}, seen at {_at(one.row.first_seen)}. {one.meaning.what}"
        objects = (FoundObject("Node", one.row.node), FoundObject("GPU", one.row.device))
        yield ReportLine(f"GPU {one.row}", sentence, one.meaning.operators, "gpu_fault", objects)


def _catalog(checks: CatalogChecks) -> Iterator[ReportLine]:
    if checks.problem:
        do = "The check runs again when the cluster can be read."
        yield ReportLine("catalog", checks.problem, do, "catalog_not_checked")
    for line in checks.lines or ():
        kind, _, name = line.about.partition(" ")
        objects = (FoundObject(kind, name),) if line.about != "the catalog" else ()
        about = f"{line.severity} {line.code}, {line.about}"
        yield ReportLine(about, line.sentence, line.remedy, line.code, objects)
    if checks.more:
        text = f"{plural(checks.more, 'further finding')} of the same kinds."
        yield ReportLine("catalog", text, "Fix the listed findings first.", "catalog_more")


def _late(found: Health) -> Iterator[ReportLine]:
    for one in found.overdue:
        if one.is_late:
            text = f"{plural(one.rows, 'task')} past due, the oldest since {_at(one.oldest_at)}."
            yield ReportLine(
                f"overdue {one.table}",
                text,
                "Check that a worker is running: its log first, then Redis and Celery beat.",
                "tasks_overdue",
                (FoundObject("table", one.table),),
            )


def _failing(found: Health) -> Iterator[ReportLine]:
    for one in found.problems:
        text = f"{one.error_code}: {one.error_text} ({plural(one.attempts, 'attempt')})"
        do = f"Fix the cause. Next retry: {_at(one.due_at)}."
        yield ReportLine(f"failing {one.row}", text, do, "task_failing", (FoundObject("task", one.row),))


def _contradictions(found: Health) -> Iterator[ReportLine]:
    if found.contradictions is None:
        yield ReportLine(
            "inconsistencies",
            "Not checked: the cluster data is outdated.",
            "Fix the cluster updates first.",
            "inconsistencies_unknown",
        )
    for one in found.contradictions or ():
        about = f"inconsistency {one.code}, run {one.run} of {one.team}/{one.workload}"
        objects = (FoundObject("run", f"{one.workload}/{one.run}", one.team),)
        yield ReportLine(about, f"{one.sentence}, since at least {_at(one.since)}.", one.do, one.code, objects)


def _objects(found: Health) -> Iterator[ReportLine]:
    for one in found.objects:
        do = one.do or {
            "refused": "Fix what the message of the cluster names. The portal retries automatically.",
            "foreign": "Rename or remove the object, which the portal did not create.",
        }.get(
            one.result,
            "The portal repairs drift automatically. If it is still there after 1 minute, check the worker's log.",
        )
        text = f"{one.detail} {one.raw}".strip() or "It differs from what the portal applied."
        namespace, _, name = one.name.rpartition("/")
        objects = (FoundObject(one.kind, name, namespace),)
        yield ReportLine(f"{one.result} {one.kind} {one.name}", text, do, f"object_{one.result}", objects)
    for stuck in found.stuck:
        about = f"namespace {stuck.name} of {stuck.tenant}"
        left = f" Remaining objects: {', '.join(stuck.objects)}." if stuck.objects else ""
        if not stuck.blockers:
            text = f"Deleted at {_at(stuck.since)}. The cluster has not reported what blocks deletion.{left}"
            do = "Wait 1 minute, then check the controllers of the remaining objects."
            yield ReportLine(about, text, do, "namespace_terminating", (FoundObject("Namespace", stuck.name),))
        for blocker in stuck.blockers:
            text = f"Deleted at {_at(stuck.since)}. {blocker.said}{left}"
            yield ReportLine(about, text, blocker.do, "namespace_terminating", (FoundObject("Namespace", stuck.name),))
    for limit in found.foreign:
        text = f"It is not the portal's, and it can hold workloads back{f': {limit.content}' if limit.content else ''}."
        objects = (FoundObject(limit.kind, limit.name, limit.namespace),)
        about = f"foreign {limit.kind} {limit.namespace}/{limit.name}"
        yield ReportLine(about, text, limit.do, "foreign_limit", objects)
    for orphan in found.orphans:
        where = f"{orphan.namespace}/{orphan.name}" if orphan.namespace else orphan.name
        text = "It has the portal's label, but no record."
        objects = (FoundObject(orphan.kind, orphan.name, orphan.namespace),)
        do = "Delete it with kubectl if it is not needed."
        yield ReportLine(f"orphan {orphan.kind} {where}", text, do, "object_orphaned", objects)


def _read(found: Health) -> Iterator[ReportLine]:
    do = "Check the watcher's log: is it running, does the API server respond, does it have list and watch permission?"
    if not found.mirrors:
        yield ReportLine("mirror", "The cluster has not been read yet.", do, "mirror_unread")
    for one in found.mirrors:
        if one.is_stale:
            text = f"Listed: {_at(one.listed_at)}. Last event: {_at(one.last_event_at)}."
            yield ReportLine(f"mirror of {one.kind}", text, do, "mirror_outdated", (FoundObject("kind", one.kind),))
    if found.is_stale and found.mirrors and not any(one.is_stale for one in found.mirrors):
        yield ReportLine("mirror", "The watcher is not running. The data is outdated.", do, "watcher_silent")


def _at(moment: datetime | None) -> str:
    return "never" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
