"""Idle notebooks: their servers are asked, people are told, and what nobody uses gives its units back.

A row of its own per run of a notebook on a class with an idle rule; what is no such run costs nothing. The question is
asked outside of any transaction, and judged under the row's lock: who keeps the notebook meanwhile is heard.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.actions import deliver, record
from accounts.actor import Actor, system
from catalog.life_cycle import date_and_time
from cluster import jupyter
from cluster import queries as mirror
from cluster.jupyter import Activity, Unanswered
from portal.due import DONE, Deadline, Outcome, owner_label, touch
from portal.errors import get_or_refuse, refuse_if
from portal.hints import page_hint
from workloads import idle_policy, policy, queries
from workloads.idle_policy import Step, Verdict, Watched
from workloads.models import NotebookWatch, Run, Workload
from workloads.notebook_token import notebook_token
from workloads.run_time_policy import words
from workloads.telling import files_of, page_of, people_of

REASON = "idle"
# (address, token) → what the server answers.
Ask = Callable[[str, str], Activity]
RULE = system("rule idle notebooks")


# ---- what the worker does --------------------------------------------------------------------------------------------


def begin(run: Run) -> None:
    """When a run is ready; with the rule that was frozen at its start. No query for a run without one."""
    if run.spec.get("idle_stop_minutes"):
        NotebookWatch.objects.get_or_create(run=run)


def look(watch: NotebookWatch, deadline: Deadline, *, ask: Ask = jupyter.ask, at: datetime | None = None) -> Outcome:
    """Ask once, and do what follows. `at`: as if it were asked then."""
    run = _run(watch)
    if not _is_wanted(run):
        # Another run has a row of its own.
        return DONE
    deadline.check()
    try:
        activity, problem = _asked(run, ask), ""
    except Unanswered as silent:
        activity, problem = None, str(silent)
    verdict = _judged(watch.pk, activity, problem, at or timezone.now())
    return DONE if verdict is None else Outcome(clock=verdict.again_at)


def _asked(run: Run, ask: Ask) -> Activity:
    """Raises Unanswered, also where there is nobody to ask."""
    workload = run.workload
    namespace = workload.namespace
    if not mirror.is_known(namespace.cluster_id, "Pod"):
        raise Unanswered("The portal has not read the cluster yet.")
    # Anybody may put our labels on a pod of theirs, and would be told the token.
    mine = {"namespace": namespace.name, "owner": owner_label(workload), "run": queries.job_name(workload, run)}
    pods = mirror.pods(namespace.cluster_id, **mine)
    there = [pod for pod in pods if pod.phase == "Running" and pod.deleting_since is None and pod.ip]
    if not there:
        raise Unanswered("No pod of it runs at the moment.")
    token = notebook_token(settings.NOTEBOOK_TOKEN_KEY, workload_id=workload.pk, run_number=run.number)
    return ask(there[-1].ip, token)


@transaction.atomic
def _judged(watch_id: int, activity: Activity | None, problem: str, now: datetime) -> Verdict | None:
    """None: it ended, or was asked to stop, while its server was asked."""
    watch = NotebookWatch.objects.select_for_update(no_key=True).get(pk=watch_id)
    run = _run(watch)
    if not _is_wanted(run):
        return None
    verdict = idle_policy.judge(activity, _watched(watch, run), now=now)
    before = (watch.stops_at, bool(watch.problem))
    _note(watch, activity, problem, verdict, now)
    if verdict.step is Step.WARN:
        _warn(watch, run, verdict)
    elif verdict.step is Step.STOP:
        _stop(watch, run, now)
    if before != (watch.stops_at, bool(watch.problem)) or verdict.step is Step.STOP:
        page_hint(run.workload.namespace.name)
    return verdict


def _watched(watch: NotebookWatch, run: Run) -> Watched:
    limit = timedelta(minutes=run.spec["idle_stop_minutes"])
    return Watched(limit, watch.answered_at, watch.warned_at, watch.stops_at, watch.kept_until)


def _note(watch: NotebookWatch, activity: Activity | None, problem: str, verdict: Verdict, now: datetime) -> None:
    watch.asked_at, watch.problem = now, problem
    watch.stops_at, watch.idle_since = verdict.stops_at, verdict.idle_since
    if verdict.step is Step.WARN:
        watch.warned_at = now
    elif verdict.stops_at is None:
        watch.warned_at = None
    if activity is not None:
        watch.answered_at, watch.last_activity = now, min(idle_policy.last_use(activity), now)
        watch.evidence = idle_policy.evidence(activity)
    columns = ("asked_at", "problem", "stops_at", "idle_since", "warned_at", "answered_at", "last_activity", "evidence")
    watch.save(update_fields=columns)


def _warn(watch: NotebookWatch, run: Run, verdict: Verdict) -> None:
    assert verdict.stops_at is not None
    workload, minutes = run.workload, run.spec["idle_stop_minutes"]
    after = {"run": run.number, "stops_at": verdict.stops_at, "evidence": evidence(watch)}
    event = record(RULE, "notebook.idle_warned", workload, tenant=workload.tenant.slug, after=after)
    stops_at = date_and_time(verdict.stops_at)
    deliver(
        event,
        people_of(run),
        subject=f"{workload.name} of {workload.tenant.name} is idle and stops at {stops_at}",
        body=(
            f"Nobody has used the notebook {workload.name} for a while: {evidence(watch)}. On its class an idle "
            f"notebook is stopped after {words(minutes)}; this one at {stops_at}. Use it, or say why it stays, and it "
            f"goes on. {files_of(run)}\n\n{page_of(workload)}"
        ),
    )


def _stop(watch: NotebookWatch, run: Run, now: datetime) -> None:
    workload, told = run.workload, evidence(watch)
    rule = words(run.spec["idle_stop_minutes"])
    message = f"Stopped, since nobody had used it for {rule}: {told}."
    alive = Run.objects.filter(pk=run.pk, ended_at=None, stop_requested_at=None)
    if not alive.update(stop_requested_at=Now(), stop_reason=REASON, stop_message=message):
        return
    touch(Workload, workload.pk)
    after = {"run": run.number, "idle_since": watch.idle_since, "evidence": told}
    event = record(RULE, "notebook.idle_stopped", workload, tenant=workload.tenant.slug, after=after)
    deliver(
        event,
        people_of(run),
        subject=f"{workload.name} of {workload.tenant.name} was stopped, being idle",
        body=(
            f"{message} It gives its units back. {files_of(run)}\n\n"
            f"Start it again, with the same choices or with others: {page_of(workload)}"
        ),
    )


def evidence(watch: NotebookWatch) -> str:
    """Half a sentence; "" before the first answer."""
    if watch.answered_at is None:
        return ""
    return idle_policy.told(watch.evidence, last_activity=watch.last_activity, asked_at=watch.answered_at)


def _run(watch: NotebookWatch) -> Run:
    rows = Run.objects.select_related("workload__tenant", "workload__namespace")
    return rows.get(pk=watch.run_id)


def _is_wanted(run: Run) -> bool:
    return run.ended_at is None and run.stop_requested_at is None and run.workload.delete_requested_at is None


# ---- the verb --------------------------------------------------------------------------------------------------------


@transaction.atomic
def keep(tenant: str, name: str, *, hours: int, reason: str, by: Actor) -> NotebookWatch:
    """It stays, however idle, for so many hours from now; then people are told again before anything happens.

    Raises Refused: not_found (404), not_allowed (403), not_running, no_idle_rule (409), bad_hours, no_reason (422).
    """
    namespace, team = queries.team(by, tenant)
    rows = Workload.objects.visible_to(by).select_related("gpu_class", "tenant", "namespace")
    workload = get_or_refuse(rows.filter(delete_requested_at=None), namespace=namespace, name=name)
    run = queries.last_run(workload)
    found = queries.run_facts(workload, run)
    refuse_if(policy.may_manage(by, team, found, "keep"))
    rows_of_run = NotebookWatch.objects.select_for_update(of=("self",), no_key=True).filter(run=run)
    watch = rows_of_run.first() if run else None
    refuse_if(idle_policy.may_keep(found, is_watched=watch is not None, hours=hours, reason=reason))
    assert watch is not None
    before: dict[str, Any] = {"kept_until": watch.kept_until}
    watch.kept_until = timezone.now() + timedelta(hours=hours)
    watch.kept_reason, watch.kept_by = " ".join(reason.split()), by.user
    watch.warned_at = watch.stops_at = None
    watch.save(update_fields=["kept_until", "kept_reason", "kept_by", "warned_at", "stops_at"])
    touch(NotebookWatch, watch.pk)
    after = {"kept_until": watch.kept_until, "reason": watch.kept_reason}
    record(by, "notebook.kept", workload, tenant=tenant, before=before, after=after)
    page_hint(namespace.name)
    return watch
