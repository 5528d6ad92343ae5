"""A workload as templates show it. Pure: WorkloadRow in, words and figures out; templates compose no sentences."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from accounts.events.texts import verb_text
from accounts.models import Event
from catalog.classes.queries import retirement_notice, unit_of
from catalog.images import image_references
from catalog.models import GpuClass
from cluster.manifests.run_spec import DEFAULT_PRIORITY, HOME, NOTEBOOK
from cluster.reads.observed import Pod
from portal.ui.text import ordinal, plural
from tenants.models import Tenant
from workloads.core.queries import watch_of
from workloads.interruption import loss
from workloads.launch.options import level_text
from workloads.lifetime.limits import limit_notices
from workloads.models import Run, Workload
from workloads.status.estimates.estimate import EstimateOutcome
from workloads.status.explain.endings.termination import termination_explanation
from workloads.status.progress import ProgressStep
from workloads.status.types import PREEMPTED_REASONS, Phase
from workloads.status.workers import by_worker, current_pods
from workloads.status.workload_row import WorkloadRow

# Phases that need a sentence in lists.
EXPLAINED_IN_LISTS = frozenset({Phase.QUEUED, Phase.BLOCKED, Phase.FAILED, Phase.UNKNOWN})


@dataclass(frozen=True)
class ListRow:
    """One line of a list. `reason` is a sentence; `position` "2nd" or ""; `estimate`: of queued runs. `ends_at`: when
    its time limit is reached; `idle_stops_at`: the announced stop of an idle notebook. `opener`: key of the
    only person who can open it, 0 if every member who may launch can.
    `is_borrowed`: it uses units that the lender can reclaim; `interrupted`: its last interruption, "" if `reason`
    states it.
    """

    name: str
    status: str
    hint: str
    kind: str
    size: str
    gpu_class: str
    who: str
    requested_at: datetime
    since: datetime | None
    position: str
    reason: str
    estimate: EstimateOutcome | None = None
    ends_at: datetime | None = None
    idle_stops_at: datetime | None = None
    opener: int = 0
    is_borrowed: bool = False
    interrupted: str = ""


@dataclass(frozen=True)
class WorkloadState:
    """What the page and the stream of one workload show; the same for every user."""

    tenant: Tenant
    namespace: str
    name: str
    kind: str
    status: str
    message: str
    run_number: int
    requested_at: datetime | None
    steps: tuple[ProgressStep, ...]
    as_of: datetime | None
    is_stale: bool
    notices: tuple[str, ...] = ()
    workers: tuple[WorkerLine, ...] = ()
    estimate: EstimateOutcome | None = None
    interruption: InterruptionLines | None = None
    # The form for a request of the quota that ended, "" if none did.
    quota_href: str = ""
    # Whether a notebook is private; "" for a job.
    access: str = ""
    spec: tuple[Definition, ...] = ()


@dataclass(frozen=True)
class InterruptionLines:
    """Sentences: the last interruption, or ""; possible causes, and what an interruption loses."""

    last: str
    may_be: str
    loses: str


@dataclass(frozen=True)
class WorkerLine:
    """One of several workers of the last run; `tries`: number of its pods so far."""

    index: int
    status: str
    note: str
    node: str
    tries: int


@dataclass(frozen=True)
class RunLine:
    number: int
    status: str
    requested_at: datetime
    ended_at: datetime | None
    message: str
    has_log: bool = False


@dataclass(frozen=True)
class Definition:
    term: str
    value: str = ""
    code: bool = False


@dataclass(frozen=True)
class EventLine:
    """`href` is "" where the row has no page."""

    at: datetime
    who: str
    sentence: str
    name: str
    href: str


def event_line(event: Event, *, tenant: str, names: Collection[str] = ()) -> EventLine:
    """`names`: workloads that have a page."""
    has_page = event.row.startswith("workloads.workload.") and event.name in names
    href = reverse("workload", args=[tenant, event.name]) if has_page else ""
    return EventLine(event.at, event.actor, verb_text(event.verb, event.after), event.name, href)


def size_of(gpu_class: GpuClass, units: int, workers: int = 1) -> str:
    """`units` are per worker."""
    each = plural(units, unit_of(gpu_class))
    return each if workers == 1 else f"{workers} workers × {each}"


def list_row(row: WorkloadRow) -> ListRow:
    workload, status = row.workload, row.status
    units, workers = (row.run.spec["units"], row.run.workers) if row.run else (workload.units, workload.workers)
    position = status.facts.get("position")
    alive = row.run if row.run and row.run.ended_at is None else None
    watch = watch_of(alive) if alive else None
    return ListRow(
        name=workload.name,
        status=str(status.phase),
        hint=status.sentence if status.phase in EXPLAINED_IN_LISTS else "",
        kind=workload.kind,
        size=size_of(row.gpu_class, units, workers),
        gpu_class=row.gpu_class.name,
        who=workload.created_by.name,
        requested_at=row.run.requested_at if row.run else workload.created_at,
        since=status.since,
        position=ordinal(position) if position else "",
        reason=status.sentence,
        estimate=row.estimate,
        ends_at=alive.ends_at if alive else None,
        idle_stops_at=watch.stops_at if watch else None,
        opener=workload.created_by_id if is_private(workload) else 0,
        is_borrowed=row.exposure is not None and row.exposure.holds and row.exposure.is_borrowed,
        interrupted=row.interrupted.count if row.interrupted and status.phase not in EXPLAINED_IN_LISTS else "",
    )


def workload_state(row: WorkloadRow) -> WorkloadState:
    workload, status, as_of = row.workload, row.status, row.as_of
    return WorkloadState(
        tenant=workload.tenant,
        namespace=workload.namespace.name,
        name=workload.name,
        kind=workload.kind,
        status=str(status.phase),
        message=status.sentence,
        run_number=row.run.number if row.run else 0,
        requested_at=row.run.requested_at if row.run else None,
        steps=row.steps,
        as_of=as_of.at,
        is_stale=not as_of.is_current,
        notices=limit_notices(row.run),
        workers=worker_lines(row),
        estimate=row.estimate,
        interruption=interruption_lines(row),
        quota_href=_quota_href(row),
        access=_access(workload),
        spec=tuple(definitions(row)),
    )


def _quota_href(row: WorkloadRow) -> str:
    if row.loss is None or not row.loss.slug:
        return ""
    return f"{reverse('request-new', args=[row.workload.tenant.slug])}?units-{row.loss.slug}={row.loss.before}"


def interruption_lines(row: WorkloadRow) -> InterruptionLines | None:
    """Lines for queued and running runs. While a run is requeued, the status already states why it was interrupted."""
    if row.run is None or row.run.ended_at is not None or row.run.stop_requested_at is not None:
        return None
    last, waits = row.interrupted, row.status.reason in PREEMPTED_REASONS
    said = "" if last is None else last.brief if waits else last.sentence
    may_be = row.exposure.sentence if row.exposure else ""
    loses = loss.work_loss(row.run.spec["kind"], checkpoints=row.run.spec.get("checkpoints", False))
    return InterruptionLines(said, may_be, loses) if said or may_be else None


def worker_lines(row: WorkloadRow) -> tuple[WorkerLine, ...]:
    """Lines for a run with several workers; includes workers without a pod."""
    if row.run is None or row.run.workers == 1 or not row.pods:
        return ()
    pods = by_worker(row.pods)
    return tuple(_worker_line(index, pods.get(index, ())) for index in range(row.run.workers))


def _worker_line(index: int, pods: tuple[Pod, ...]) -> WorkerLine:
    pod = current_pods(pods).get(index)
    if pod is None:
        return WorkerLine(index, "preparing", "pod is being created", "", 0)
    if pod.phase == "Failed":
        return WorkerLine(index, "failed", termination_explanation(pod).sentence, pod.node, len(pods))
    if pod.phase == "Succeeded":
        return WorkerLine(index, "succeeded", "", pod.node, len(pods))
    if pod.deleting_since is not None:
        return WorkerLine(index, "stopping", "", pod.node, len(pods))
    return WorkerLine(index, "running" if pod.is_ready else "preparing", "", pod.node, len(pods))


def run_line(run: Run, *, has_log: bool) -> RunLine:
    ended = {"succeeded": Phase.SUCCEEDED, "stopped": Phase.STOPPED}.get(run.outcome, Phase.FAILED)
    return RunLine(run.number, str(ended), run.requested_at, run.ended_at, run.message, has_log)


def files(claim: str, mount_path: str) -> str:
    """States where files are stored, and whether they are kept."""
    if not claim:
        return f"{HOME}; deleted when it stops"
    kept = f"{mount_path} on the volume {claim}; kept when it stops"
    return kept if mount_path == HOME else f"{kept}. Other files are deleted."


def stop_notice(row: WorkloadRow) -> str:
    """States what stopping the run loses, and the way back."""
    run = row.run
    if run is None:
        return ""
    if run.started_at is None:
        return "It leaves the queue and loses its place. Nothing of this run has started. You can start it again."
    again = "You can start it again; it then waits for free units like any other run."
    if run.spec["kind"] == NOTEBOOK:
        return f"{loss.file_loss_of(run)} {again}"
    kept = "progress after its last checkpoint" if run.spec.get("checkpoints") else "all progress of this run"
    return f"{loss.file_loss_of(run)} As a job it loses {kept}. {again}"


def deletion_notice(row: WorkloadRow) -> str:
    """States what is kept and what is lost when the workload is deleted."""
    claims = {row.run.spec["claim"] if row.run else "", row.workload.volume.name if row.workload.volume else ""}
    names = sorted(claims - {""})
    if names:
        volumes = "volume" if len(names) == 1 else "volumes"
        files_text = f"The {volumes} {' and '.join(names)} and all data there are kept."
    else:
        files_text = "It has no volume: its files are deleted."
    return f"It is stopped and removed from the lists. Its history is kept. {files_text}"


def definitions(row: WorkloadRow) -> list[Definition]:
    """The configuration of the last run, and of the next run where it was changed since."""
    workload, run = row.workload, row.run
    volume = workload.volume.name if workload.volume else ""
    declared: dict[str, Any] = {
        "units": workload.units,
        "workers": workload.workers,
        "image": workload.image,
        "command": list(workload.command),
        "script": workload.options.get("script", "").replace("\r\n", "\n"),
        "claim": volume,
    }
    spec = {"workers": 1, "script": "", **run.spec} if run else declared
    found = [
        Definition("Class", row.gpu_class.name),
        Definition("Size", size_of(row.gpu_class, spec["units"], spec["workers"])),
        Definition("Image", spec["image"], code=True),
        Definition("Files", files(spec["claim"], (spec if run else workload.options).get("mount_path") or HOME)),
        Definition("Launched by", workload.created_by.name),
    ]
    if workload.kind == NOTEBOOK:
        found.append(Definition("Who can open it", who_can_open(workload)))
    if spec["command"]:
        found.insert(3, Definition("Command", " ".join(spec["command"]), code=True))
    if spec["script"]:
        found.insert(3, Definition("Script", _first_line(spec["script"]), code=True))
    if end := retirement_notice(row.gpu_class):
        found.insert(1, Definition("Retirement", end))
    same = row.gpu_class == workload.gpu_class and all(spec[key] == value for key, value in declared.items())
    if not same:
        size = size_of(workload.gpu_class, workload.units, workload.workers)
        text = f"{size} of {workload.gpu_class.name}, image {workload.image}"
        found.append(Definition("Next run", f"{text}, volume {volume}" if volume else text))
    if spec.get("registry") if run else workload.own_image:
        found.append(
            Definition("Compatibility", image_references.unknown_compatibility(row.gpu_class.name, workload.kind))
        )
    if run is not None:
        each = " per worker" if run.workers > 1 else ""
        cores = plural(spec["cpu"], "core")
        found.append(Definition("CPU and memory", f"{cores}, {spec['memory_gib']} GiB{each}"))
        found += _of_jobs(run)
        if run.group:
            found.append(Definition("Group", run.group))
        if row.pod is not None and row.pod.node and run.workers == 1:
            found.append(Definition("Node", row.pod.node, code=True))
        if run.preemptions:
            found.append(Definition("Interrupted", plural(run.preemptions, "time")))
    return found


def is_private(workload: Workload) -> bool:
    return workload.kind == NOTEBOOK and workload.visibility == Workload.Visibility.PRIVATE


def _access(workload: Workload) -> str:
    if workload.kind != NOTEBOOK:
        return ""
    return f"Private to {workload.created_by.name}" if is_private(workload) else f"Shared with {workload.tenant.name}"


def who_can_open(workload: Workload) -> str:
    if is_private(workload):
        return f"only {workload.created_by.name}. The team sees its log, and its owners and managers can stop it."
    return f"all members of {workload.tenant.name}, except viewers. Events say who opened it."


def _of_jobs(run: Run) -> list[Definition]:
    """Options that differ from the defaults."""
    spec, found = run.spec, []
    if run is not None and run.priority:
        found.append(Definition("Priority", f"{run.priority}, changed by operators for this run"))
    elif (priority := spec.get("priority", "")) and priority != DEFAULT_PRIORITY[spec["kind"]]:
        found.append(Definition("Priority", priority))
    if gib := spec.get("gpu_memory_gib", 0):
        found.append(Definition("GPU memory", f"at least {gib} GiB each"))
    if level := spec.get("topology_level", ""):
        found.append(Definition("Topology", level_text(level, is_required=spec["topology_required"])))
    if retries := spec.get("retries", 0):
        found.append(Definition("Retries", f"up to {retries} after a crash"))
    if spec.get("checkpoints"):
        found.append(Definition("Checkpointing", "yes; resumes from its last checkpoint"))
    return found


def _first_line(script: str) -> str:
    """The first line that is not a comment, and the number of lines."""
    lines = [line for line in script.split("\n") if line.strip()]
    said = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
    return said if len(lines) == 1 else f"{said} … ({len(lines)} lines)"
