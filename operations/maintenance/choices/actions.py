"""Choose what happens to a run when its node is drained."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from operations.maintenance.choices import policy
from operations.maintenance.choices.queries import maintenances_of
from portal.core.errors import refuse_if
from portal.core.hints import page_hint
from workloads.core import queries as core_queries
from workloads.models import Run, Workload


@transaction.atomic
def choose_at_drain(tenant: str, name: str, maintenance: int, choice: str, *, by: Actor) -> Workload:
    """Until the drain of the run's node begins. Choosing the same again changes nothing. The choice is about this run
    and this maintenance: it has no effect on another one.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), not_running, not_in_maintenance, drain_begun
    (409), invalid (422).
    """
    namespace, team = core_queries.team(by, tenant)
    workload = core_queries.undeleted_workload(by, namespace, name)
    # Locked before the nodes are read; leaving.py says why.
    run = core_queries.locked_active_run(workload)
    refuse_if(policy.may_choose(by, team, core_queries.run_facts(workload, run)))
    assert run is not None
    [*found] = (one for one in maintenances_of(workload, run) if one.row.pk == maintenance)
    drained = [node for one in found for node in one.drained]
    refuse_if(policy.choice_refusal(choice, is_concerned=bool(found), drained=drained))
    before = policy.chosen(run.drain_choices, maintenance)
    if choice == before:
        return workload
    Run.objects.filter(pk=run.pk).update(drain_choices=policy.with_choice(run.drain_choices, maintenance, choice))
    after = {"run": run.number, "maintenance": maintenance, "choice": choice}
    record(by, "workload.drain_chosen", workload, tenant=tenant, before={"choice": before}, after=after)
    page_hint(namespace.name)
    return workload
