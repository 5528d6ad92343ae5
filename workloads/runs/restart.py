"""Restart: a run that is requested while another one runs, and that the worker starts as soon as that one has ended.

The request is a column of the run that is to stop, so that it survives a crash of web and worker processes.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from cluster.client.kube import Kube
from portal.core.due import Deadline, Outcome
from portal.core.errors import Refused, refuse_if
from portal.core.hints import page_hint
from workloads.core import policy, queries
from workloads.core.notifications import page_url, recipients_of
from workloads.credentials.secrets import actions as secret_actions
from workloads.launch import actions, custom_images
from workloads.launch import policy as launch_policy
from workloads.launch import queries as launch_queries
from workloads.launch.options import Options
from workloads.launch.priorities import queries as priority_queries
from workloads.launch.stopping import announce, request_stop
from workloads.models import Run, Workload
from workloads.runs import policy as run_policy
from workloads.runs.reconcile import reconcile as one_pass
from workloads.storage import queries as storage_queries

RESTART_RULE = "rule runs that follow"


@transaction.atomic
def restart(tenant: str, name: str, *, by: Actor) -> Run:
    """Stops the run; when it has ended, another run starts from the workload's declaration. Starts at once if no run is
    active.

    Raises Refused as `start` and `stop` do, for every reason that is already known.
    """
    namespace, team = queries.team(by, tenant)
    workload = queries.undeleted_workload(by, namespace, name)
    run = queries.locked_active_run(workload)
    return actions.start(tenant, name, by=by) if run is None else request_restart(workload, run, team, by=by)


@transaction.atomic
def request_restart(
    workload: Workload, run: Run, team: policy.TeamFacts, *, because: tuple[str, str] = ("", ""), by: Actor
) -> Run:
    """Requests that `run`, which is locked and has not ended, stops, and that another run of the same group starts
    then.

    `because`: reason and message of its end, if no stop was requested before. Raises Refused as `restart` does.
    """
    namespace, name, tenant = workload.namespace, workload.name, workload.tenant.slug
    said = Options.from_json(workload.options)
    found = launch_queries.class_facts(namespace, workload.gpu_class, units=workload.units, by=by, said=said)
    refuse_if(run_policy.may_restart(by, team, queries.run_facts(workload, run)))
    refuse_if(
        launch_policy.may_start_on(found, workload.kind, workload.units, said)
        or launch_policy.must_accept_terms(found, 0)
    )
    refuse_if(custom_images.custom_image_refusal(workload))
    refuse_if(secret_actions.missing_secrets_refusal(namespace, said.secrets))
    if workload.volume is not None:
        volume = workload.volume
        refuse_if(
            storage_queries.volume_refusal(
                namespace,
                volume.name,
                volume.size_gib,
                workload.gpu_class,
                instead_of=name,
                workers=said.workers or 1,
            )
        )
    units = workload.total_units
    refuse_if(
        priority_queries.production_refusal(
            namespace, workload.gpu_class, priority=said.priority, units=units, besides=name
        )
    )
    if run.next_wanted_by_id is not None:
        return run
    is_this, (reason, message) = Q(pk=run.pk), because
    if not request_stop(workload, is_this, reason=reason, message=message, next_wanted_by=by.person):
        Run.objects.filter(is_this).update(next_wanted_by=by.person)
        announce(workload)
    after = {"run": run.number, **({"group": run.group} if run.group else {})}
    record(by, "workload.restart_asked", workload, tenant=tenant, after=after)
    run.refresh_from_db()
    return run


def reconcile_and_restart(workload: Workload, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Makes the cluster match one workload. Starts the requested next run if the run has ended; its row is then due
    again.
    """
    outcome = one_pass(workload, deadline, kube=kube)
    start_pending(workload)
    return outcome


def start_pending(workload: Workload) -> bool:
    """Returns whether the requested next run was started, after the last run has ended. A refusal is recorded on the
    ended run and sent to its people. One query if no run was requested.
    """
    if workload.delete_requested_at is not None:
        return False
    last = Run.objects.filter(workload=workload).select_related("next_wanted_by", "workload__tenant").first()
    if last is None or last.ended_at is None or last.next_wanted_by is None:
        return False
    by = Actor(last.next_wanted_by, via=RESTART_RULE)
    try:
        refuse_if(run_policy.may_start_next(is_active=last.next_wanted_by.is_active, name=by.name))
        return _begin(last, by)
    except Refused as refused:
        _give_up(last, by, str(refused))
        return False


@transaction.atomic
def _begin(last: Run, by: Actor) -> bool:
    """Returns False if the request was withdrawn a moment ago."""
    rows = Run.objects.select_for_update(no_key=True).filter(pk=last.pk, next_wanted_by=by.user)
    if rows.first() is None:
        return False
    actions.start(last.workload.tenant.slug, last.workload.name, group=last.group, by=by)
    return True


@transaction.atomic
def _give_up(run: Run, by: Actor, why: str) -> None:
    workload = run.workload
    message = f"{run.message} It was not restarted: {why}".strip()
    if not Run.objects.filter(pk=run.pk, next_wanted_by=by.user).update(next_wanted_by=None, message=message[:500]):
        return
    event = record(by, "workload.not_followed", workload, tenant=workload.tenant.slug, after={"run": run.number})
    deliver(
        event,
        recipients_of(run),
        subject=f"{workload.name} of {workload.tenant.name} has stopped and was not restarted",
        body=f"{workload.name} has stopped. The requested restart failed: {why}\n\n{page_url(workload)}",
    )
    page_hint(workload.namespace.name)
