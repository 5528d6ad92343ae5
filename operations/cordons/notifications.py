"""Tells the people of a run once that its node was cordoned, and once that this is over."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from cluster.manifests.node_removal.cordons import Cordon, cordon_sentence
from operations.models import CordonNotice, NodeCordon
from portal.ui.text import date_and_time
from workloads.core.notifications import page_url, recipients_of
from workloads.interruption.loss import interruption_loss_of
from workloads.models import Run

CORDON_RULE = system_actor("rule interruptions")


def cordon_of_row(row: NodeCordon) -> Cordon:
    return Cordon(row.manager, row.since)


@transaction.atomic
def tell_cordoned(row: NodeCordon, run: Run) -> None:
    _notice, is_new = CordonNotice.objects.get_or_create(cordon=row, run=run)
    if not is_new:
        return
    workload = run.workload
    after = {"run": run.number, "node": row.node, "node_uid": row.node_uid, "manager": row.manager, "since": row.since}
    event = record(CORDON_RULE, "workload.node_cordoned", workload, tenant=workload.tenant.slug, after=after)
    until = f" until its time limit ends at {date_and_time(run.ends_at)}" if run.ends_at is not None else ""
    body = (
        f"{cordon_sentence(row.node, cordon_of_row(row))} {workload.name} continues there{until}. If the node is "
        f"drained, its programs get SIGTERM and up to 30 s to save their state. {interruption_loss_of(run)}"
    )
    subject = f"The node of {workload.name} of {workload.tenant.name} was cordoned"
    deliver(event, recipients_of(run), subject=subject, body=f"{body}\n\n{page_url(workload)}")


@transaction.atomic
def tell_over(notice: CordonNotice) -> None:
    row, run = notice.cordon, notice.run
    if not CordonNotice.objects.filter(pk=notice.pk, over_told_at=None).update(over_told_at=Now()):
        return
    workload = run.workload
    after = {"run": run.number, "node": row.node, "node_uid": row.node_uid}
    event = record(CORDON_RULE, "workload.node_uncordoned", workload, tenant=workload.tenant.slug, after=after)
    since = f" since {date_and_time(row.since)}" if row.since is not None else ""
    body = f"Node {row.node} takes new workloads again. It was cordoned{since}."
    subject = f"The node of {workload.name} of {workload.tenant.name} is no longer cordoned"
    deliver(event, recipients_of(run), subject=subject, body=f"{body}\n\n{page_url(workload)}")
