"""Checks the activity of notebook servers, warns users, and stops idle notebooks.

Each run of a notebook on a class with an idle rule has its own row; other runs need no work. A row without a time limit
for idle notebooks is only asked, for the rule of idle GPUs (usage/idle). The worker calls the
server outside of any transaction and judges the answer under the row's lock, so that a user can keep the notebook in
the meantime.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from cluster.client import jupyter
from cluster.client.jupyter import NotebookActivity, NotebookUnreachable
from cluster.manifests.metadata import names_other_row
from cluster.reads import queries as mirror
from portal.core.due import DONE, Deadline, Outcome, owner_label
from portal.core.hints import page_hint
from portal.ui.text import duration_text, time_with_zone
from workloads.core import queries
from workloads.core.notifications import page_url, recipients_of
from workloads.credentials.notebook_token import token_of_run
from workloads.interruption.loss import file_loss_of
from workloads.launch.stopping import request_stop
from workloads.lifetime.idle import policy as idle_policy
from workloads.lifetime.idle.policy import IdleFacts, IdleStep, IdleVerdict
from workloads.lifetime.idle.queries import evidence_text
from workloads.models import NotebookWatch, Run

IDLE_REASON = "idle"
# (address, token) → the server's answer.
AskActivity = Callable[[str, str], NotebookActivity]
IDLE_RULE = system_actor("rule idle notebooks")


# ---- checks by the worker --------------------------------------------------------------------------------------------


def start_watch(run: Run) -> None:
    """Called when a run is ready; uses the rule that was frozen at its start. No query for a run without a rule."""
    if run.spec.get("idle_stop_minutes"):
        NotebookWatch.objects.get_or_create(run=run)


def check_idle(
    watch: NotebookWatch, deadline: Deadline, *, ask: AskActivity = jupyter.read_activity, at: datetime | None = None
) -> Outcome:
    """Checks once, and acts on the result. `at`: the time that the check uses instead of the current time."""
    run = _run(watch)
    if not _is_wanted(run):
        # Another run has its own row.
        return DONE
    deadline.check()
    try:
        activity, problem = _asked(run, ask), ""
    except NotebookUnreachable as silent:
        activity, problem = None, str(silent)
    verdict = _judged(watch.pk, activity, problem, at or timezone.now())
    return DONE if verdict is None else Outcome(clock=verdict.again_at)


def _asked(run: Run, ask: AskActivity) -> NotebookActivity:
    """Raises NotebookUnreachable, also if no server runs."""
    workload = run.workload
    namespace = workload.namespace
    if not mirror.is_known(namespace.cluster_id, "Pod"):
        raise NotebookUnreachable("The portal has not read the cluster yet.")
    # A user may set our labels on another pod, which would then get the token.
    mine = {"namespace": namespace.name, "owner": owner_label(workload), "run": queries.job_name(workload, run)}
    identity = run.spec.get("identity", "")
    pods = [pod for pod in mirror.pods(namespace.cluster_id, **mine) if not names_other_row(pod.labels, identity)]
    there = [pod for pod in pods if pod.phase == "Running" and pod.deleting_since is None and pod.ip]
    if not there:
        raise NotebookUnreachable("It has no running pod at the moment.")
    token = token_of_run(run.token_key, workload_id=workload.pk, run_number=run.number)
    return ask(there[-1].ip, token)


@transaction.atomic
def _judged(watch_id: int, activity: NotebookActivity | None, problem: str, now: datetime) -> IdleVerdict | None:
    """Returns None if the run ended or was stopped while its server was checked."""
    watch = NotebookWatch.objects.select_for_update(no_key=True).get(pk=watch_id)
    run = _run(watch)
    if not _is_wanted(run):
        return None
    verdict = idle_policy.judge(activity, _watched(watch, run), now=now)
    before = (watch.stops_at, bool(watch.problem))
    _note(watch, activity, problem, verdict, now)
    if verdict.step is IdleStep.WARN:
        _warn(watch, run, verdict)
    elif verdict.step is IdleStep.STOP:
        _stop(watch, run, now)
    if before != (watch.stops_at, bool(watch.problem)):
        page_hint(run.workload.namespace.name)
    return verdict


def _watched(watch: NotebookWatch, run: Run) -> IdleFacts:
    minutes = run.spec.get("idle_stop_minutes")
    limit = timedelta(minutes=minutes) if minutes else None
    return IdleFacts(limit, watch.answered_at, watch.warned_at, watch.stops_at, watch.kept_until)


def _note(
    watch: NotebookWatch, activity: NotebookActivity | None, problem: str, verdict: IdleVerdict, now: datetime
) -> None:
    watch.asked_at, watch.problem = now, problem
    watch.stops_at, watch.idle_since = verdict.stops_at, verdict.idle_since
    if verdict.step is IdleStep.WARN:
        watch.warned_at = now
    elif verdict.stops_at is None:
        watch.warned_at = None
    if activity is not None:
        watch.answered_at, watch.last_activity = now, min(idle_policy.last_use(activity), now)
        watch.evidence = idle_policy.evidence(activity)
    columns = ("asked_at", "problem", "stops_at", "idle_since", "warned_at", "answered_at", "last_activity", "evidence")
    watch.save(update_fields=columns)


def _warn(watch: NotebookWatch, run: Run, verdict: IdleVerdict) -> None:
    assert verdict.stops_at is not None
    workload, minutes = run.workload, run.spec["idle_stop_minutes"]
    after = {"run": run.number, "stops_at": verdict.stops_at, "evidence": evidence_text(watch)}
    event = record(IDLE_RULE, "notebook.idle_warned", workload, tenant=workload.tenant.slug, after=after)
    stops_at = time_with_zone(verdict.stops_at)
    deliver(
        event,
        recipients_of(run),
        subject=f"{workload.name} of {workload.tenant.name} is idle and is stopped at {stops_at}",
        body=(
            f"The notebook {workload.name} is idle: {evidence_text(watch)}. Its class stops idle notebooks after "
            f"{duration_text(minutes)}; this one is stopped at {stops_at}. To prevent this, use it or keep it with a "
            f"reason. {file_loss_of(run)}\n\n{page_url(workload)}"
        ),
    )


def _stop(watch: NotebookWatch, run: Run, now: datetime) -> None:
    workload, told = run.workload, evidence_text(watch)
    rule = duration_text(run.spec["idle_stop_minutes"])
    message = f"Stopped because it was idle for {rule}: {told}."
    if not request_stop(workload, Q(pk=run.pk), reason=IDLE_REASON, message=message):
        return
    after = {"run": run.number, "idle_since": watch.idle_since, "evidence": told}
    event = record(IDLE_RULE, "notebook.idle_stopped", workload, tenant=workload.tenant.slug, after=after)
    deliver(
        event,
        recipients_of(run),
        subject=f"{workload.name} of {workload.tenant.name} was stopped because it was idle",
        body=(
            f"{message} Its units are released. {file_loss_of(run)}\n\n"
            f"Start it again, or change it first: {page_url(workload)}"
        ),
    )


def _run(watch: NotebookWatch) -> Run:
    rows = Run.objects.select_related("workload__tenant", "workload__namespace")
    return rows.get(pk=watch.run_id)


def _is_wanted(run: Run) -> bool:
    return run.ended_at is None and run.stop_requested_at is None and run.workload.delete_requested_at is None
