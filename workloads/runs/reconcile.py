"""Makes the cluster match one workload: its current run has a Job, an ended run has none, and a Run records the result.

A Job is created once. The Job comes first and its Secret right after: users wait for the place in the queue, and a
kubelet waits for a Secret. Columns of a Run are filled from the mirror once each. While the mirror is unknown, the
absence of an object proves nothing.

A run to which nothing happens costs nothing: what wakes its row, and what does not need to, is in docs/adr/0100.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from cluster.apply import reconcile as apply_reconcile
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.manifests import names
from cluster.manifests import run as manifests
from cluster.manifests import workers as worker_manifests
from cluster.manifests.metadata import Manifest, names_other_row
from cluster.manifests.run_spec import JOB, RunSpec
from cluster.models import AppliedObject, Cluster
from cluster.reads import queries as mirror
from portal.core.due import DONE, Deadline, Outcome, TryLater, owner_label, until_turn_s
from portal.core.hints import page_hint
from portal.core.sql import select
from workloads.core.observation import Observation
from workloads.launch import spec as launch_spec
from workloads.lifetime import offboarding
from workloads.lifetime.run_time import reconcile as run_time_reconcile
from workloads.models import Run, Workload
from workloads.runs import interruption_notices, recording, requeue
from workloads.runs.draining import reconcile as drain_reconcile
from workloads.runs.kept import kept_logs, late_errors
from workloads.runs.objects import orphans, pull_secret, run_secret, volume_claim
from workloads.runs.priority import reconcile as priority_reconcile
from workloads.runs.queries import active_run
from workloads.status import outcome as status_outcome
from workloads.status.observations.queries import leaving_node
from workloads.status.queries import WORKLOAD_KINDS
from workloads.storage.claim_states import CLAIM, VOLUME
from workloads.storage.queries import volume_of_run

Result = AppliedObject.Result
RUN_KINDS = ("Job", "Service", "Secret", "ResourceClaimTemplate")
# Changes wake the row at once. This covers a wake-up that was lost.
RESYNC = timedelta(hours=8)
# While something is not as it should be: an object was refused, or the mirror does not show what was sent.
UNSETTLED_AGAIN_S = 60.0
ENDING_AGAIN_S = 1.5
# The mirror lags behind the API server by much less than this.
MIRROR_LAG = timedelta(seconds=1.5)
REFUSED_AGAIN = timedelta(seconds=300)


@dataclass(frozen=True)
class _Work:
    """One pass over one workload: the client, the rows, and the objects sent before, by kind and name."""

    kube: Kube
    deadline: Deadline
    workload: Workload
    cluster_id: int
    owner: str
    sent: dict[tuple[str, str], AppliedObject]


def reconcile(workload: Workload, deadline: Deadline, *, kube: Kube) -> Outcome:
    owner = owner_label(workload)
    run = active_run(workload)
    cluster_id = workload.namespace.cluster_id if run is None else run.cluster_id
    # Users wait for the first pass over a new workload, and nothing was sent before it.
    is_new = workload.observed_generation == 0 and workload.attempts <= 1
    rows = () if is_new else select(AppliedObject, "cluster_id = %s AND owner = %s", [cluster_id, owner])
    work = _Work(kube, deadline, workload, cluster_id, owner, {(row.kind, row.name): row for row in rows})
    if run is None:
        return _tidy(work)
    if run.stop_requested_at is None and _has_come(run.ends_at):
        run_time_reconcile.end_overdue(run)
        run.refresh_from_db(fields=["stop_requested_at", "stop_reason", "stop_message", "ends_at", "extended_minutes"])
    if run.stop_requested_at is None and workload.kind != JOB and not run.may_launch:
        offboarding.stop_orphaned_run(run)
        run.refresh_from_db(fields=["stop_requested_at", "stop_reason", "stop_message"])
    is_over = _has_come(run.closes_at) or _has_come(run.runs_until)
    if run.stop_requested_at is not None or workload.delete_requested_at is not None or is_over:
        return _stop(work, run)
    is_sent = ("Job", names.run_name(workload.name, run.number)) in work.sent
    outcome = _follow(work, run) if is_sent else _create(work, run)
    stays_until = _tidy_earlier(work, run)
    ends = (outcome.clock, stays_until, run.runs_until, run.closes_at, run_time_reconcile.next_moment_of(run))
    return replace(outcome, clock=min((at for at in ends if at is not None), default=None))


def _has_come(end: datetime | None) -> bool:
    """Whether the class is retired or the team closed, and the time until which runs could continue has passed."""
    return end is not None and end <= timezone.now()


# ---- starting and following a run ------------------------------------------------------------------------------------


def _create(work: _Work, run: Run) -> Outcome:
    spec = RunSpec.from_json(run.spec)
    if spec.claim and not mirror.is_known(work.cluster_id, CLAIM, VOLUME):
        # Its nodes are chosen with the Job, and a Job is never sent again.
        raise TryLater("volume_unknown", "Where the volume can be mounted is not read yet.")
    if spec.interface == "dra":
        # Kueue reads the template when it sees the Job, and would deactivate a Job without one.
        template = _send(work, manifests.claim_template(spec))
        if template.result != Result.APPLIED:
            raise TryLater("claim_template_refused", template.text)
    job = _send(work, launch_spec.job_manifest(Cluster.objects.get(pk=work.cluster_id), spec))
    if job.result == Result.APPLIED:
        _complete(work, run, spec, job)
    page_hint(spec.namespace)
    return Outcome(again_in_s=UNSETTLED_AGAIN_S)


def _complete(work: _Work, run: Run, spec: RunSpec, job: AppliedObject) -> bool:
    """Sends the objects that the pods of the Job wait for. Returns whether all of them are there."""
    there = []
    if launch_spec.needs_secret(spec):
        known = work.sent.get(("Secret", job.name))
        if _is_to_send(known):
            secret = run_secret.run_secret_manifest(work.workload, run, spec, job_uid=job.uid)
            work.deadline.check()
            if secret is not None:
                known = apply_reconcile.send(
                    kube=work.kube, cluster_id=work.cluster_id, owner=work.owner, manifest=secret, row=known
                )
        there.append(_is_applied(known))
    if spec.registry:
        work.deadline.check()
        there.append(pull_secret.sync_pull_secret(work.workload, spec, job, work.sent, kube=work.kube))
    if spec.workers > 1:
        known = work.sent.get(("Service", job.name))
        if _is_to_send(known):
            known = _send(work, worker_manifests.headless_service(spec, job.name, job_uid=job.uid))
        there.append(_is_applied(known))
    if spec.claim and (volume := volume_of_run(work.workload, spec.claim)) is not None:
        work.deadline.check()
        there.append(volume_claim.ensure_claim(volume, spec.namespace, cluster_id=work.cluster_id, kube=work.kube))
    return all(there)


def _is_applied(known: AppliedObject | None) -> bool:
    return known is not None and known.result == Result.APPLIED


def _is_to_send(known: AppliedObject | None) -> bool:
    return known is None or (known.result != Result.APPLIED and timezone.now() - known.sent_at > REFUSED_AGAIN)


def _follow(work: _Work, run: Run) -> Outcome:
    """The Job was created: record what the mirror shows of this run."""
    spec = RunSpec.from_json(run.spec)
    job = work.sent["Job", manifests.job_name(spec)]
    if job.result in (Result.REFUSED, Result.FOREIGN):
        return _try_again_later(work, run, job)
    if job.code == PREVIOUS_CLUSTER:
        recording.record_end(run, status_outcome.CLUSTER_REPLACED)
        return _tidy(work)
    is_complete = _complete(work, run, spec, job)
    seen = _look(work, run)
    if seen is None:
        # The watcher wakes all rows that have a Job when the mirror is known.
        return _rest(work, is_settled=is_complete)
    put_back_at = run.put_back_at
    recording.record_state(run, seen)
    if put_back_at is None and run.put_back_at is not None:
        # Its pods end now; the next attempt replaces this log by its own.
        kept_logs.keep_logs(run, seen, kube=work.kube)
    run_time_reconcile.warn_if_due(run)
    end = status_outcome.outcome_of(seen, kind=run.workload.kind) or (
        status_outcome.LOST if seen.job is None and _is_gone(work, job) else None
    )
    if end is None:
        is_missed = run_secret.recreate_if_missing(
            run, spec, job, work.sent.get(("Secret", job.name)), seen, kube=work.kube
        )
        is_other_priority = priority_reconcile.apply_priority(run, job, seen, kube=work.kube)
        moments = (drain_reconcile.apply_drain(run, seen, kube=work.kube), interruption_notices.settles_at(run, seen))
        clock = min((at for at in moments if at is not None), default=None)
        is_changing = is_missed or is_other_priority or run.drain_requested_at is not None
        return _rest(work, is_settled=is_complete and seen.job is not None and not is_changing, clock=clock)
    if run.drain_requested_at is not None:
        end = status_outcome.drained_outcome(end, run.drain_reason)
    is_back = end.reason in status_outcome.INTERRUPTED_REASONS and requeue.may_requeue(run, end.reason)
    if end.reason in status_outcome.INTERRUPTED_REASONS:
        end = replace(
            end, message=f"{end.message} {status_outcome.RESTARTS_NOTE if is_back else status_outcome.NO_RESTART_NOTE}"
        )
    kept_logs.keep_logs(run, seen, kube=work.kube)
    with transaction.atomic():
        if recording.record_end(run, end, seen) and is_back:
            requeue.requeue(run, end, seen)
    return _tidy(work)


def _rest(work: _Work, *, is_settled: bool, clock: datetime | None = None) -> Outcome:
    if not is_settled:
        return Outcome(again_in_s=UNSETTLED_AGAIN_S, clock=clock)
    return Outcome(again_in_s=until_turn_s(work.workload.pk, RESYNC, at=timezone.now()), clock=clock)


def _try_again_later(work: _Work, run: Run, job: AppliedObject) -> Outcome:
    """A refused Job is sent again only after some time, since quotas and policies change."""
    age = timezone.now() - job.sent_at
    if age < REFUSED_AGAIN:
        return Outcome(again_in_s=(REFUSED_AGAIN - age).total_seconds() + 1)
    job.delete()
    return _create(work, run)


def _is_gone(work: _Work, job: AppliedObject) -> bool:
    """The mirror does not show the Job; only the API server knows whether it is really gone."""
    if timezone.now() - job.sent_at < MIRROR_LAG:
        return False
    try:
        found = work.kube.get("Job", name=job.name, namespace=job.namespace)
    except NotFound:
        is_gone = True
    else:
        is_gone = found.uid != job.uid
    if is_gone and not AppliedObject.objects.filter(pk=job.pk, uid=job.uid).exclude(code=PREVIOUS_CLUSTER).exists():
        # Another cluster was confirmed during this pass, and that one was asked.
        raise TryLater("other_cluster", "The cluster was replaced by another one meanwhile.")
    return is_gone


# ---- stopping a run --------------------------------------------------------------------------------------------------


def _stop(work: _Work, run: Run) -> Outcome:
    """Delete the Job, then wait until the mirror shows neither it nor a pod: until then its units are in use."""
    orphans.record_orphans(RunSpec.from_json(run.spec), work.sent, cluster_id=work.cluster_id, kube=work.kube)
    seen = _look(work, run)
    if seen is not None:
        recording.record_state(run, seen)
        if (end := status_outcome.outcome_of(seen, kind=run.workload.kind)) is not None:
            is_own = end.at is not None and end.at < recording.told_to_end(run)
            kept_logs.keep_logs(run, seen, kube=work.kube)
            recording.record_end(
                run, end if is_own else _stopped(run, status_outcome.stopped_outcome(run.admitted_at is not None)), seen
            )
            return _tidy(work)
    job = work.sent.get(("Job", names.run_name(work.workload.name, run.number)))
    kept_logs.keep_logs_of_stopped(run, seen, job, kube=work.kube)
    if not _delete_job(work, run):
        recording.record_end(run, _stopped(run, status_outcome.NEVER_SUBMITTED))
        return _tidy(work)
    asked = work.sent["Job", names.run_name(work.workload.name, run.number)]
    if seen is None or seen.job is not None or seen.pods:
        return _patience(asked.sent_at)
    if timezone.now() - asked.sent_at < MIRROR_LAG or not _shows_what_came_after(work, asked.sent_at):
        return _patience(asked.sent_at)
    recording.record_end(run, _stopped(run, status_outcome.stopped_outcome(run.admitted_at is not None)))
    return _tidy(work)


def _stopped(run: Any, otherwise: status_outcome.RunOutcome) -> status_outcome.RunOutcome:
    """A stop by a person remains that, even if the team is closed or the class is retired meanwhile. A stop by a rule
    keeps the rule's message.
    """
    if run.stop_reason:
        return status_outcome.RunOutcome(status_outcome.STOPPED, run.stop_reason, run.stop_message)
    if run.stop_requested_at is not None:
        return otherwise
    if _has_come(run.closes_at):
        return status_outcome.team_closed_outcome(was_admitted=run.admitted_at is not None)
    if not _has_come(run.runs_until):
        return otherwise
    return status_outcome.class_retired_outcome(
        run.class_name, run.runs_until, was_admitted=run.admitted_at is not None
    )


def _patience(since_: datetime) -> Outcome:
    """The watcher wakes the row when an object ends. A long wait, for example for a dead node, is checked rarely."""
    waited_s = (timezone.now() - since_).total_seconds()
    return Outcome(again_in_s=min(max(ENDING_AGAIN_S, waited_s / 4), UNSETTLED_AGAIN_S))


def _shows_what_came_after(work: _Work, at: datetime) -> bool:
    """Returns whether the mirror was updated after `at`. When the watcher is down, its rows look known, but a pod that
    it never saw may use units.
    """
    as_of = mirror.as_of(work.cluster_id, *WORKLOAD_KINDS)
    return as_of.is_current and as_of.at is not None and as_of.at >= at


def _delete_job(work: _Work, run: Run) -> bool:
    """Requests the deletion of the Job once. Returns False if there never was a Job."""
    known = work.sent.get(("Job", names.run_name(work.workload.name, run.number)))
    if known is None or known.result in (Result.REFUSED, Result.FOREIGN):
        return False
    if known.result == Result.TERMINATING:
        return True
    work.deadline.check()
    work.kube.delete("Job", name=known.name, namespace=known.namespace, uid=known.uid)
    known.result = Result.TERMINATING
    # Uses the database's clock: the time is compared with the mirror's, maybe by another worker.
    known.sent_at = Now()
    known.save()
    known.refresh_from_db(fields=["sent_at"])
    return True


# ---- deleting objects of ended runs ----------------------------------------------------------------------------------


def _tidy(work: _Work) -> Outcome:
    """Without an active run, deletes its objects; those of a finished Job are deleted later. A deleted workload is
    marked as deleted when no object is left.
    """
    kept = kept_logs.jobs_that_stay(work.workload, work.sent) if work.workload.delete_requested_at is None else {}
    again_at = late_errors.record_late_errors(work.workload, partial(_look, work)) if kept else None
    _delete_objects(work, kept)
    if kept:
        return Outcome(clock=min(at for at in (*kept.values(), again_at) if at is not None))
    if work.workload.delete_requested_at is None or work.workload.deleted_at is not None:
        return DONE
    if not mirror.as_of(work.cluster_id, *WORKLOAD_KINDS).is_current:
        return _patience(work.workload.delete_requested_at)
    mine = {"owner": work.owner, "namespace": work.workload.namespace.name}
    if mirror.jobs(work.cluster_id, **mine) or mirror.pods(work.cluster_id, **mine):
        return _patience(work.workload.delete_requested_at)
    kept_logs.delete_logs(work.workload)
    Workload.objects.filter(pk=work.workload.pk).update(deleted_at=Now())
    page_hint(work.workload.namespace.name)
    return DONE


def _tidy_earlier(work: _Work, run: Run) -> datetime | None:
    """Deletes objects of earlier runs: a requeued run is followed at once by the next one, and the worker may have been
    killed in between. Returns until when others stay. No query if there are none.
    """
    job = names.run_name(work.workload.name, run.number)
    own = {job, names.image_pull_secret_name(job)}
    if all(name in own for kind, name in work.sent if kind in RUN_KINDS):
        return None
    kept = kept_logs.jobs_that_stay(work.workload, work.sent)
    _delete_objects(work, own | kept.keys())
    return min(kept.values(), default=None)


def _delete_objects(work: _Work, kept: Collection[str]) -> None:
    for (kind, name), row in list(work.sent.items()):
        if kind in RUN_KINDS and name not in kept:
            work.deadline.check()
            if kind == "Job" and (run := kept_logs.run_with_missed_log(work.workload, job=name)) is not None:
                kept_logs.keep_logs(run, _look(work, run), kube=work.kube)
            apply_reconcile.delete_row(work.kube, row)
            del work.sent[kind, name]


# ---- the mirror and the cluster --------------------------------------------------------------------------------------


def _look(work: _Work, run: Run) -> Observation | None:
    """What the mirror shows of this run; None while it is unknown. Pods of other people may have our labels, and after
    a restore a Job may have the name that a later row had.
    """
    cluster_id, mine = work.cluster_id, {"owner": work.owner, "namespace": work.workload.namespace.name}
    if not mirror.is_known(cluster_id, *WORKLOAD_KINDS):
        return None
    name = names.run_name(work.workload.name, run.number)
    job = next((job for job in mirror.jobs(cluster_id, **mine) if job.run == name), None)
    if job is not None and names_other_row(job.labels, run.spec.get("identity", "")):
        return Observation()
    queued = mirror.workloads(cluster_id, job_uid=job.uid) if job else []
    pods, removed = mirror.pods(cluster_id, **mine, run=name), mirror.removed_pods(cluster_id, **mine, run=name)
    failed = {pod.node for pod in pods if pod.phase == "Failed" and pod.node}
    errors = tuple(error for found in mirror.gpu_errors_of_nodes(cluster_id, failed).values() for error in found)
    return Observation(
        job=job,
        queue=queued[0] if queued else None,
        pods=tuple(pods),
        removed=tuple(removed),
        gpu_errors=errors,
        leaving=leaving_node(cluster_id, pods),
    )


def _send(work: _Work, manifest: Manifest) -> AppliedObject:
    work.deadline.check()
    sent = apply_reconcile.create_once(kube=work.kube, cluster_id=work.cluster_id, owner=work.owner, manifest=manifest)
    if sent.code == "NotFound":
        sent.delete()
        raise TryLater("namespace_missing", "The team's namespace does not exist in the cluster yet.")
    return sent
