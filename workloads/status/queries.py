"""Workloads with the status of their current run: one frozen row for page, stream and API alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from django.utils import timezone

from catalog.classes import life_cycle
from catalog.models import GpuClass
from cluster.manifests import names
from cluster.models import AppliedObject, Cluster
from cluster.reads import queries as mirror
from cluster.reads.namespace_deletion import deletion_blockers
from cluster.reads.observed import AsOf, conditions
from portal.core.due import table_label
from portal.core.sql import select
from tenants.grants.queries import GrantedUnits, granted_units
from tenants.models import Namespace
from workloads.core.observation import Observation
from workloads.core.queries import job_name
from workloads.core.queries import team as team
from workloads.core.workload_sql import last_runs
from workloads.interruption.queries import ActiveRun, exposures, interruptions
from workloads.models import Run, Workload
from workloads.status import entitlement, failure_record, progress
from workloads.status.desired_run import DesiredRun
from workloads.status.estimates.queries import estimates_of
from workloads.status.explain import unexplained
from workloads.status.explain.container_start import RegistryAccess, UnreadableSecrets
from workloads.status.observations.autoscaler import with_autoscaler
from workloads.status.observations.claims import with_claims
from workloads.status.observations.device_memory import with_devices
from workloads.status.observations.node_capacity import with_nodes
from workloads.status.observations.queries import AwaitedImage, observe
from workloads.status.observations.wait_conditions import has_reached as has_reached
from workloads.status.phase import status_of
from workloads.status.workload_row import WorkloadRow

Wishes = dict[int, tuple[DesiredRun | None, Observation | None]]
NAMESPACE_REASONS = frozenset({"namespace_ending", "namespace_going"})
# The kinds that show whether a workload runs; its position in the queue is in Kueue's own kind.
WORKLOAD_KINDS = ("Job", "Pod")


def status_kinds(cluster: Cluster) -> tuple[str, ...]:
    """Returns the kinds from which the state of a workload is derived. Without Kueue, its kind is not watched."""
    return (*WORKLOAD_KINDS, "Workload") if cluster.queue_system == Cluster.QueueSystem.KUEUE else WORKLOAD_KINDS


# ---- status for pages and API --------------------------------------------------------------------------------------


def workload_rows(
    workloads: Iterable[Workload], as_of: AsOf | None = None, own: GrantedUnits | None = None
) -> list[WorkloadRow]:
    """Returns the status of each workload. All must be of one namespace and read `with_names`. Eight queries, whatever
    their number. At most three more if a run waits for devices with enough memory. One more for each of these cases: a
    run has a class that no workload is declared with any more; a run is on a node; a run has a position in the queue; a
    run waits there or has no pod; a run waits for its image, for a node or for its volume; a run was interrupted; a run
    waits for more units than its team is granted, or for the end of its namespace. One more if a run waits for units,
    or three if other runs that are not in the list wait or use units. `as_of`, `own`: how current the mirror is and
    what the team is granted, if the caller has read that already.
    """
    found = list(workloads)
    if not found:
        return []
    runs = last_runs(found)
    classes = _classes_of_runs(found, runs)
    run_names = {workload.pk: _run_name(workload, runs.get(workload.pk)) for workload in found}
    sent, signs_in = _sent(run_names)
    now = timezone.now()
    namespace = found[0].namespace
    as_of = as_of or mirror.as_of(namespace.cluster_id, *status_kinds(namespace.cluster))
    images = {pk: AwaitedImage.of(run) for pk, run in runs.items() if not run.started_at and not run.ended_at}
    seen = _seen(namespace, run_names, images, runs, classes) if as_of.is_known else None
    shown = []
    alive: list[ActiveRun] = []
    wishes: Wishes = {}
    for workload in found:
        run = runs.get(workload.pk)
        gpu_class = classes.get(run.spec["gpu_class"], workload.gpu_class) if run else workload.gpu_class
        wish = desired_run(workload, run, gpu_class, sent.get(workload.pk), signs_in=workload.pk in signs_in)
        theirs = None if seen is None else seen.get(workload.pk, Observation())
        told = status_of(wish, theirs, now=now, as_of=as_of, is_deleting=workload.delete_requested_at is not None)
        if run is not None:
            unexplained.count_unexplained(told.explained, run_id=run.pk)
            if theirs is not None and run.ended_at is None:
                alive.append(ActiveRun(run, gpu_class, theirs))
        wishes[workload.pk] = wish, theirs
        pod = theirs.pod if theirs else None
        pods = theirs.pods if theirs else ()
        shown.append(
            WorkloadRow(workload, run, gpu_class, told, progress.progress_steps(wish, theirs, told), pod, as_of, pods)
        )
    if not alive:
        return shown
    own = own or granted_units(namespace.tenant_id, now)
    shown = _with_blockers(namespace, shown, wishes)
    shown = _with_losses(namespace.tenant_id, shown, wishes, own, now)
    starts = estimates_of(namespace, shown, own, alive)
    may_be, was = exposures(namespace, alive, own), interruptions(alive)
    return [
        replace(
            row,
            estimate=starts.get(row.workload.pk),
            exposure=may_be.get(row.run.pk) if row.run else None,
            interrupted=was.get(row.run.pk) if row.run else None,
        )
        for row in shown
    ]


def _seen(
    namespace: Namespace,
    run_names: Mapping[int, str],
    images: Mapping[int, AwaitedImage],
    runs: Mapping[int, Run],
    classes: Mapping[str, GpuClass],
) -> dict[int, Observation]:
    identities = {pk: run.spec.get("identity", "") for pk, run in runs.items()}
    found = with_nodes(namespace.cluster_id, observe(namespace, run_names, images, identities), runs)
    found = with_autoscaler(namespace.cluster_id, found, runs)
    found = with_devices(namespace.cluster, found, runs, classes)
    return with_claims(namespace.cluster_id, namespace.name, found, runs)


def _with_blockers(namespace: Namespace, rows: list[WorkloadRow], wishes: Wishes) -> list[WorkloadRow]:
    """Names what keeps a deleted namespace for runs that wait for its end. One query if one does."""
    if not any(row.status.reason in NAMESPACE_REASONS for row in rows):
        return rows
    found = mirror.object_named(namespace.cluster_id, "Namespace", namespace.name)
    is_going = found is not None and found.deleting_since is not None
    blockers = deletion_blockers(namespace.name, conditions(found.record)) if found is not None and is_going else []
    said = " ".join(one.said for one in blockers)
    return [_with_text(row, *wishes[row.workload.pk], said) for row in rows]


def _with_text(row: WorkloadRow, wish: DesiredRun | None, seen: Observation | None, more: str) -> WorkloadRow:
    if not more or row.status.reason not in NAMESPACE_REASONS:
        return row
    sentence = f"{row.status.sentence} {more}"
    explained = replace(row.status.explained, sentence=sentence) if row.status.explained is not None else None
    told = replace(row.status, sentence=sentence, explained=explained)
    return replace(row, status=told, steps=progress.progress_steps(wish, seen, told))


def _with_losses(
    tenant_id: int,
    rows: list[WorkloadRow],
    wishes: Wishes,
    own: GrantedUnits,
    now: datetime,
) -> list[WorkloadRow]:
    """Names the quota that ended for runs that would have enough with it. One query if a run waits for more units than
    its team is granted.
    """
    lacking = {
        row.gpu_class.pk: row.gpu_class
        for row in rows
        if row.run is not None
        and row.status.reason in entitlement.QUOTA_REASONS
        and own.in_force.get(row.gpu_class.pk, 0) < row.run.total_units
    }
    losses = entitlement.quota_losses(tenant_id, lacking.values(), now)
    return [_of_quota(row, *wishes[row.workload.pk], own, losses.get(row.gpu_class.pk)) for row in rows]


def _of_quota(
    row: WorkloadRow,
    wish: DesiredRun | None,
    seen: Observation | None,
    own: GrantedUnits,
    loss: entitlement.QuotaLoss | None,
) -> WorkloadRow:
    if row.run is None or row.status.reason not in entitlement.QUOTA_REASONS:
        return row
    units = row.run.total_units
    told = entitlement.with_allowance(
        row.status, name=row.gpu_class.name, units=units, own=own, gpu_class=row.gpu_class
    )
    loss = loss if loss is not None and units <= loss.before else None
    told = told if loss is None else entitlement.with_loss(told, loss)
    if told is row.status:
        return row
    return replace(row, status=told, steps=progress.progress_steps(wish, seen, told), loss=loss)


def _classes_of_runs(workloads: Iterable[Workload], runs: Mapping[int, Run]) -> dict[str, GpuClass]:
    """Returns classes by slug. One query, only if a run has a class that no workload is declared with any more."""
    found = {workload.gpu_class.slug: workload.gpu_class for workload in workloads}
    missing = {run.spec["gpu_class"] for run in runs.values()} - found.keys()
    if missing:
        cluster_id = next(iter(found.values())).cluster_id
        found |= {one.slug: one for one in GpuClass.objects.filter(cluster_id=cluster_id, slug__in=missing)}
    return found


def desired_run(
    workload: Workload, run: Run | None, gpu_class: GpuClass, sent: AppliedObject | None, *, signs_in: bool
) -> DesiredRun | None:
    if run is None:
        return None
    registry = run.spec.get("registry")
    return DesiredRun(
        kind=workload.kind,
        class_name=gpu_class.name,
        class_slug=run.spec["gpu_class"],
        units=run.spec["units"],
        image=run.spec["image"],
        number=run.number,
        requested_at=run.requested_at,
        is_deleting=workload.delete_requested_at is not None,
        volume=run.spec["claim"],
        has_repository=bool(run.spec.get("repository")),
        sign_in=RegistryAccess(registry, signs_in) if registry else None,
        sent=sent.result if sent else "",
        sent_at=sent.sent_at if sent else None,
        sent_text=sent.text if sent else "",
        problem=workload.error_code,
        problem_text=workload.error_text,
        sealed=UnreadableSecrets.of(workload.error_code, workload.error_text, run.spec.get("secrets", ())),
        hold=life_cycle.hold_sentence(gpu_class, now=timezone.now()),
        borrowing_limit=gpu_class.borrowing_limit,
        max_units=gpu_class.max_units,
        node_minutes=gpu_class.node_minutes,
        stop_requested_at=run.stop_requested_at,
        is_followed=run.next_wanted_by_id is not None,
        admitted_at=run.admitted_at,
        started_at=run.started_at,
        ready_at=run.ready_at,
        ended_at=run.ended_at,
        outcome=run.outcome,
        reason=run.reason,
        message=run.message,
        exit_code=run.exit_code,
        preemptions=run.preemptions,
        drain_reason=run.drain_reason,
        kept=failure_record.failure_record_from_json(run.kept),
        asked={"cpu": str(run.spec["cpu"]), "memory": f"{run.spec['memory_gib']}Gi"},
        workers=run.workers,
        retries=run.spec.get("retries", 0),
        gpu_memory_gib=run.spec.get("gpu_memory_gib", 0),
        required_level=run.spec["topology_level"] if run.spec.get("topology_required") else "",
    )


def _run_name(workload: Workload, run: Run | None) -> str:
    return job_name(workload, run) if run else ""


def _sent(runs: Mapping[int, str]) -> tuple[dict[int, AppliedObject], set[int]]:
    """Returns by workload id the result of sending the Job of its run of that name (Jobs of earlier runs may still
    exist), and the ids of the workloads whose pod can sign in to its registry. One query.
    """
    owners = {f"{table_label(Workload)}.{pk}": pk for pk in runs}
    pulls = [names.image_pull_secret_name(name) for name in runs.values() if name]
    found = select(
        AppliedObject,
        "owner = ANY(%s) AND (kind = 'Job' OR kind = 'Secret' AND name = ANY(%s) AND result = %s)",
        [list(owners), pulls, AppliedObject.Result.APPLIED],
    )
    jobs = {owners[row.owner]: row for row in found if row.kind == "Job" and row.name == runs[owners[row.owner]]}
    return jobs, {owners[row.owner] for row in found if row.kind == "Secret"}
