"""Stops the notebooks of users who left a team, became viewers of it, or whose account is suspended. The team keeps its
volumes. A stopped notebook is not started again automatically.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, Q, QuerySet

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from portal.core.due import wake
from workloads.core.notifications import page_url, recipients_of
from workloads.launch.stopping import request_stop
from workloads.lifetime.queries import launch_rights
from workloads.models import Run, Workload

OFFBOARDING_RULE = system_actor("rule offboarding")


@transaction.atomic
def stop_orphaned_run(run: Run) -> None:
    """Requests the stop and notifies the user and the team, once; does nothing if the user has the permission again."""
    workload, person, team = run.workload, run.requested_by, run.workload.tenant.name
    if person.is_active:
        reason, why = "person_left", f"{person.name}, who started it, may no longer launch in {team}"
    else:
        reason, why = "person_suspended", f"the account of {person.name}, who started it, is suspended"
    message = f"Stopped because {why}."
    if not request_stop(workload, Q(~Exists(launch_rights()), pk=run.pk), reason=reason, message=message):
        return
    event = record(
        OFFBOARDING_RULE,
        "notebook.person_left" if person.is_active else "notebook.person_suspended",
        workload,
        tenant=workload.tenant.slug,
        after={"run": run.number, "user": person.email},
    )
    told = {one.pk: one for one in (*recipients_of(run), *([person] if person.is_active else []))}
    where = "The team keeps its volumes and their data. A member may start the notebook again."
    deliver(
        event,
        list(told.values()),
        subject=f"{workload.name} of {team} was stopped"[:150],
        body=f"{message} {where}\n\n{page_url(workload)}",
    )


def wake_suspended_notebooks() -> int:
    """Wakes notebooks of suspended accounts, whoever suspended them. One query if there is none; its cost does not grow
    with other runs.
    """
    return _wake(_notebooks().filter(requested_by__is_active=False))


def wake_orphaned_notebooks() -> int:
    """Wakes notebooks whose user may no longer launch, whatever removed the permission. One query if there is none,
    which reads all live runs: verbs that remove the permission wake the team themselves.
    """
    return _wake(_notebooks().filter(~Exists(launch_rights())))


def _notebooks() -> QuerySet[Run]:
    """A run that is already stopping is not stopped again."""
    return Run.objects.filter(ended_at=None, stop_requested_at=None, workload__kind=Workload.Kind.NOTEBOOK).order_by()


def _wake(orphans: QuerySet[Run]) -> int:
    found = list(orphans.values_list("workload_id", flat=True))
    return wake(Workload, found) if found else 0
