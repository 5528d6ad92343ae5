"""Starts a run that CI requests, in place of queued and running runs of the same concurrency group."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.core.actor import Actor
from accounts.events.actions import record
from portal.core.errors import refuse_if
from tenants.models import Namespace
from workloads.core import policy, queries
from workloads.launch import actions
from workloads.launch import policy as launch_policy
from workloads.launch import queries as launch_queries
from workloads.launch.stopping import announce, request_stop
from workloads.models import Run, Workload
from workloads.runs import restart
from workloads.runs.concurrency import policy as concurrency_policy
from workloads.runs.concurrency.policy import RunRequest

SUPERSEDED = "superseded"


@dataclass(frozen=True)
class RequestedRun:
    """With `has_begun` False, the run of this number starts when the previous run has ended."""

    number: int
    has_begun: bool


@transaction.atomic
def start_in_group(tenant: str, name: str, push: RunRequest, *, by: Actor) -> RequestedRun:
    """Starts another run of the workload. With `cancel_running`, requests a stop of all other queued and running runs
    of the team in this group, or of none. If the workload's own run of the group has not ended, the new run starts when
    it has.

    Raises Refused as `actions.start` and `restart.restart` do; bad_group, group_missing (422), and not_allowed (403)
    for a run of the group that the actor may not stop.
    """
    namespace, team = queries.team(by, tenant)
    refuse_if(concurrency_policy.group_refusal(push))
    if not push.cancel_running:
        run = actions.start(tenant, name, accept_terms=push.accept_terms, group=push.group, by=by)
        return RequestedRun(run.number, has_begun=True)
    # Only one such request of a team runs at a time: two concurrent ones would not see each other's runs.
    Namespace.objects.select_for_update(no_key=True).get(pk=namespace.pk)
    workload = queries.undeleted_workload(by, namespace, name)
    because = f"Stopped: replaced by a newer run of the group {push.group}, {name}."
    # Runs that end or start while this transaction waits for a row lock are found by the next read.
    while others := list(_others(workload, push.group)):
        for run in others:
            _supersede(run, team, because, by)
    own = queries.locked_active_run(workload)
    if own is None:
        run = actions.start(tenant, name, accept_terms=push.accept_terms, group=push.group, by=by)
        return RequestedRun(run.number, has_begun=True)
    refuse_if(concurrency_policy.may_replace_own_run(own.group, push.group))
    _accept_terms(workload, push.accept_terms, by)
    restart.request_restart(workload, own, team, because=(SUPERSEDED, because), by=by)
    return RequestedRun(own.number + 1, has_begun=False)


def _others(workload: Workload, group: str) -> QuerySet[Run]:
    """Returns runs of the team's other workloads that have no stop request or that have a requested next run. All
    callers lock them in the same order.
    """
    later = Run.objects.filter(workload=OuterRef("workload"), number__gt=OuterRef("number"))
    rows = queries.locked_runs().filter(workload__namespace=workload.namespace, group=group)
    rows = rows.filter(workload__delete_requested_at=None)
    rows = rows.exclude(workload=workload).filter(Q(ended_at=None) | Q(next_wanted_by__isnull=False))
    rows = rows.filter(Q(ended_at=None, stop_requested_at=None) | Q(next_wanted_by__isnull=False) & ~Exists(later))
    return rows.select_related("workload__tenant", "workload__namespace").order_by("pk")


def _supersede(run: Run, team: policy.TeamFacts, because: str, by: Actor) -> None:
    """Requests the stop of the run and withdraws the request for a next run."""
    workload = run.workload
    facts = queries.run_facts(workload, run)
    refuse_if(concurrency_policy.may_supersede(by, team, facts, name=workload.name, group=run.group))
    is_this = Q(pk=run.pk)
    if not request_stop(workload, is_this, reason=SUPERSEDED, message=because, next_wanted_by=None):
        Run.objects.filter(is_this).update(next_wanted_by=None)
        announce(workload)
    after = {"run": run.number, "group": run.group, "because": because}
    record(by, "workload.superseded", workload, tenant=workload.tenant.slug, after=after)


def _accept_terms(workload: Workload, accepted: int, by: Actor) -> None:
    found = launch_queries.class_facts(workload.namespace, workload.gpu_class, units=workload.units, by=by)
    refuse_if(launch_policy.must_accept_terms(found, accepted))
    actions.accept_if_needed(workload.gpu_class, found, accepted, by)
