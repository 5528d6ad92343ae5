"""Tells the people of the runs on the nodes, each run once in each stage, and the operator who planned it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from accounts.core.actor import Actor, system_actor
from accounts.events.actions import deliver, record
from accounts.models import Event
from operations.maintenance.affected import OnNodes
from operations.maintenance.choices.outcome import at_drain
from operations.maintenance.choices.policy import ENDS_BEFORE, RESTART, STAYS, STOP
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from portal.ui.text import capital, date_and_time, first_names
from workloads.core.notifications import page_url, recipients_of
from workloads.interruption.loss import file_loss_of, interruption_loss_of
from workloads.models import Run

MAINTENANCE_RULE = system_actor("maintenance")
REMINDER_BEFORE = timedelta(hours=1)
Stage = MaintenanceNotice.Stage
GRACE = "Its programs get SIGTERM and up to 30 s to save their state; the portal makes no checkpoint of its own."


def tell_runs(row: Maintenance, found: OnNodes, *, now: datetime) -> None:
    """Before the drain: announces it to the runs that were not told, and reminds those that it will interrupt. One
    query if nobody is to be told.
    """
    runs = found.all_runs
    told = set(row.notices.filter(run__in=runs).values_list("run_id", "stage")) if runs else set()
    is_soon = now >= row.starts_at - REMINDER_BEFORE
    for run in runs:
        if (run.pk, Stage.ANNOUNCED) not in told:
            _tell(row, run, found.nodes_of(run), Stage.ANNOUNCED)
        elif is_soon and (run.pk, Stage.REMINDED) not in told and _was_told_early(row, run) and not _ends(row, run):
            _tell(row, run, found.nodes_of(run), Stage.REMINDED)


def tell_canceled(row: Maintenance) -> None:
    """Tells the runs that were told of it and still run where they were."""
    done = row.notices.filter(stage__in=(Stage.CANCELED, Stage.MOVED)).values("run")
    goes_on = {"run__ended_at": None, "run__drain_requested_at": None, "run__stop_requested_at": None}
    told = row.notices.filter(stage=Stage.ANNOUNCED, **goes_on)
    for notice in told.exclude(run__in=done).select_related("run__workload__tenant", "run__workload__namespace"):
        _tell(row, notice.run, [], Stage.CANCELED)


@transaction.atomic
def tell_stuck(row: Maintenance, node: MaintenanceNode, remedy: str = "") -> None:
    """Tells the operator who planned it. `remedy`: a sentence about this cause."""
    closed = "The node stays closed. Mend the cause, cancel the maintenance, or release the node as it is."
    text = f"{node_sentence(node)}\n\n{closed} {remedy}".rstrip()
    event = record(MAINTENANCE_RULE, "maintenance.stuck", row, after={"node": node.name, "problem": node.problem})
    _tell_planner(row, event, f"Maintenance of {node.name} is stuck", text)


@transaction.atomic
def tell_end(row: Maintenance, why: str = "", *, code: str = "", by: Actor = MAINTENANCE_RULE) -> None:
    """`why`: a sentence about an end that nobody asked for; `code`: the same for the history."""
    names = ", ".join(row.nodes.values_list("name", flat=True))
    event = record(by, "maintenance.ended", row, after={"outcome": row.outcome, **({"reason": code} if code else {})})
    body = f"{row.reason}\n\n{why}" if why else row.reason
    _tell_planner(row, event, f"Maintenance {row.get_outcome_display()}: {names}", body)


def _tell_planner(row: Maintenance, event: Event, subject: str, body: str) -> None:
    address = f"{settings.PORTAL_URL}{reverse('maintenance', args=[row.pk])}"
    deliver(event, [row.created_by], subject=subject, body=f"{body}\n\n{address}")


@transaction.atomic
def _tell(row: Maintenance, run: Run, nodes: Iterable[str], stage: str) -> None:
    _notice, is_new = MaintenanceNotice.objects.get_or_create(maintenance=row, run=run, stage=stage)
    if not is_new:
        return
    workload = run.workload
    after = {"run": run.number, "maintenance": row.pk, "stage": stage}
    event = record(MAINTENANCE_RULE, "workload.maintenance_told", workload, tenant=workload.tenant.slug, after=after)
    where = first_names(nodes)
    if stage == Stage.CANCELED:
        subject = f"Maintenance canceled: {workload.name} of {workload.tenant.name} continues"
        body = f"The maintenance planned for {date_and_time(row.starts_at)} was canceled. {workload.name} continues."
    else:
        subject = f"Maintenance at {date_and_time(row.starts_at)}: {workload.name} of {workload.tenant.name}"
        period = f"from {date_and_time(row.starts_at)} to {date_and_time(row.ends_at)}"
        body = f"{workload.name} runs on {where}. Maintenance {period}: {row.reason}.\n\n"
        body += "\n\n".join(filter(None, (consequence(row, run), _choice_note(row, run))))
    deliver(event, recipients_of(run), subject=capital(subject), body=f"{body}\n\n{page_url(workload)}")


def consequence(row: Maintenance, run: Run) -> str:
    """What the maintenance does to a run that is on one of its nodes, as was chosen, in sentences."""
    start, what = date_and_time(row.starts_at), at_drain(row, run).what
    if what == ENDS_BEFORE:
        if run.stop_requested_at is not None or run.ends_at is None:
            return "It is being stopped already: the maintenance does nothing to it."
        return f"Its time limit ends at {date_and_time(run.ends_at)}, before the maintenance: it is not interrupted."
    if what == STOP:
        return f"It is stopped at {start} and does not start again, as was chosen. {file_loss_of(run)} {GRACE}"
    if what == STAYS:
        return "The portal cannot move it. Stop it before the maintenance, or the maintenance waits for it."
    moved = f"It is moved off the node at {start} and queued again: it starts elsewhere when there is room."
    own = "To choose the moment yourself, stop or restart it before."
    return f"{moved} {interruption_loss_of(run)} {GRACE} {own}"


def _choice_note(row: Maintenance, run: Run) -> str:
    """Which choice people have, and what happens without one; "" if there is nothing to choose."""
    found = at_drain(row, run)
    if found.what == ENDS_BEFORE:
        return ""
    how = f"on the page below, or with gpu maintenance {run.workload.name} --at-drain"
    if found.is_chosen:
        other = RESTART if found.what == STOP else STOP
        return f"This was chosen. Until the drain begins you can change it, {how} {other}."
    return (
        "This happens by default. Until the drain begins you can choose that it is stopped then and does not start "
        f"again, {how} {STOP}."
    )


def _ends(row: Maintenance, run: Run) -> bool:
    return at_drain(row, run).what == ENDS_BEFORE


def _was_told_early(row: Maintenance, run: Run) -> bool:
    """A run that was told within the last hour before it needs no reminder."""
    early = row.starts_at - 2 * REMINDER_BEFORE
    return row.notices.filter(run=run, stage=Stage.ANNOUNCED, told_at__lte=early).exists()


def node_sentence(node: MaintenanceNode) -> str:
    return f"{node.name}: {node.get_step_display()}. {node.problem}".strip()
