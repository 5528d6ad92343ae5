"""The run time of runs: when it is over, telling people before, ending it, and the verb that adds to it.

It counts from when the container started. A run that was preempted counts anew when it starts again: it lost what it
had done, and waited in between. Until then it has no end.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from accounts.actions import deliver, record
from accounts.actor import Actor, system
from accounts.models import Event
from accounts.queries import row_label
from catalog.life_cycle import date_and_time
from catalog.models import GpuClass
from portal.due import touch
from portal.errors import get_or_refuse, refuse_if
from portal.hints import page_hint
from workloads import policy, queries, run_time_policy
from workloads.models import Run, Workload
from workloads.run_time_policy import TimeFacts
from workloads.seen import Seen, running_since
from workloads.telling import files_of, page_of, people_of

REASON = "run_time_over"
RULE = system("rule run time")


def total_minutes(run: Run) -> int | None:
    """From its start; None: no end."""
    minutes = run.spec.get("run_minutes")
    return None if minutes is None else minutes + run.extended_minutes


def facts(run: Run, gpu_class: GpuClass) -> TimeFacts:
    """`gpu_class`: the run's own; the workload may have been declared with another one since."""
    return TimeFacts(gpu_class.name, total_minutes(run), run.ends_at, gpu_class.run_hours_limit)


# ---- what the worker does --------------------------------------------------------------------------------------------


def follow(run: Run, seen: Seen) -> bool:
    """When it will be over, from what was seen of its pod; whether that is another moment than before."""
    total = total_minutes(run)
    if total is None:
        return False
    ends_at = run.ends_at
    began = _began(run, seen)
    if began is not None:
        ends_at = began + timedelta(minutes=total)
    elif seen.pod is None and seen.queue is not None and not seen.queue.is_true("Admitted"):
        ends_at = None
    if ends_at == run.ends_at:
        return False
    # An extension meanwhile wakes the row: the next look counts it.
    rows = Run.objects.filter(pk=run.pk, ended_at=None, extended_minutes=run.extended_minutes)
    if not rows.update(ends_at=ends_at):
        return False
    run.ends_at = ends_at
    return True


def _began(run: Run, seen: Seen) -> datetime | None:
    pod = seen.pod
    since = running_since(pod) if pod is not None and pod.deleting_since is None else None
    # The cluster tells whole seconds: nothing happened before it was asked for.
    return None if since is None else max(since, run.requested_at)


def next_moment(run: Run) -> datetime | None:
    """When the worker has to look again on its account."""
    total = total_minutes(run)
    if total is None or run.ends_at is None:
        return None
    return run_time_policy.next_moment(total, run.ends_at, timezone.now())


def warn_due(run: Run) -> None:
    """Each warning once, however often and by however many this is called. No query while none is near."""
    total, now = total_minutes(run), timezone.now()
    if total is not None and run.ends_at is not None and run_time_policy.lead_due(total, run.ends_at, now):
        _warn(run.pk, now)


@transaction.atomic
def _warn(run_id: int, now: datetime) -> None:
    run = _locked(run_id)
    total = total_minutes(run)
    if total is None or run.ends_at is None or run.stop_requested_at is not None or run.ended_at is not None:
        return
    lead = run_time_policy.lead_due(total, run.ends_at, now)
    if lead is None:
        return
    # An extension makes another end, with warnings of its own; told of the last one, nobody needs the first.
    after = {"run": run.number, "ends_at": run.ends_at.isoformat(), "lead_s": int(lead.total_seconds())}
    told = Event.objects.filter(row=row_label(run.workload), verb="run.reminded", after__run=run.number)
    if told.filter(after__ends_at=after["ends_at"], after__lead_s__lte=after["lead_s"]).exists():
        return
    workload = run.workload
    event = record(RULE, "run.reminded", workload, tenant=workload.tenant.slug, after=after)
    deliver(
        event,
        people_of(run),
        subject=f"{workload.name} of {workload.tenant.name} ends at {date_and_time(run.ends_at)}",
        body=(
            f"The run time of {workload.name}, {run_time_policy.words(total)}, is over at "
            f"{date_and_time(run.ends_at)}. It is stopped then and gives its units back. {files_of(run)}\n\n"
            f"Extend it, or stop it before: {page_of(workload)}"
        ),
    )
    page_hint(workload.namespace.name)


@transaction.atomic
def end(run: Run) -> bool:
    """Ask it to stop because its time is over; False when that is not so any more."""
    over = Run.objects.filter(pk=run.pk, ended_at=None, stop_requested_at=None, ends_at__lte=Now())
    locked = over.select_for_update(of=("self",), no_key=True).select_related("workload__tenant").first()
    if locked is None or locked.ends_at is None or (total := total_minutes(locked)) is None:
        return False
    message = run_time_policy.over(total, locked.extended_minutes, locked.ends_at)
    over.update(stop_requested_at=Now(), stop_reason=REASON, stop_message=message)
    workload = locked.workload
    after = {"run": locked.number, "ended": locked.ends_at, "minutes": total}
    event = record(RULE, "run.time_over", workload, tenant=workload.tenant.slug, after=after)
    deliver(
        event,
        people_of(locked),
        subject=f"{workload.name} of {workload.tenant.name} was stopped: its run time was over",
        body=(
            f"{message} {workload.name} was stopped and gives its units back. {files_of(locked)}\n\n"
            f"Start it again, with the same choices or with others: {page_of(workload)}"
        ),
    )
    return True


# ---- the verb --------------------------------------------------------------------------------------------------------


@transaction.atomic
def extend(tenant: str, name: str, *, hours: int, by: Actor) -> Run:
    """Later than it was, within what its class allows a run from its start.

    Raises Refused: not_found (404), not_allowed (403), not_running, no_end, not_started (409), exceeds_run_time (422).
    """
    namespace, team = queries.team(by, tenant)
    rows = Workload.objects.visible_to(by).select_related("gpu_class", "tenant", "namespace")
    workload = get_or_refuse(rows.filter(delete_requested_at=None), namespace=namespace, name=name)
    last = queries.last_run(workload)
    run = _locked(last.pk) if last else None
    found = queries.run_facts(workload, run)
    refuse_if(policy.may_manage(by, team, found, "extend"))
    if run is None:
        refuse_if(run_time_policy.may_extend(found, TimeFacts(workload.gpu_class.name, None, None, None), hours))
        raise AssertionError("what never ran is over")
    gpu_class = _class_of(workload, run)
    refuse_if(run_time_policy.may_extend(found, facts(run, gpu_class), hours))
    more = timedelta(hours=hours)
    before = {"run": run.number, "ends_at": run.ends_at}
    Run.objects.filter(pk=run.pk).update(
        extended_minutes=F("extended_minutes") + hours * run_time_policy.HOUR, ends_at=F("ends_at") + more
    )
    run.refresh_from_db(fields=["extended_minutes", "ends_at"])
    touch(Workload, workload.pk)
    after = {"run": run.number, "ends_at": run.ends_at, "hours": hours}
    record(by, "run.extended", workload, tenant=tenant, before=before, after=after)
    page_hint(namespace.name)
    return run


def _class_of(workload: Workload, run: Run) -> GpuClass:
    """The workload may have been declared with another one since: one query then."""
    if run.spec["gpu_class"] == workload.gpu_class.slug:
        return workload.gpu_class
    return GpuClass.objects.get(cluster_id=workload.gpu_class.cluster_id, slug=run.spec["gpu_class"])


def _locked(run_id: int) -> Run:
    rows = Run.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("workload__tenant", "workload__namespace", "requested_by").get(pk=run_id)
