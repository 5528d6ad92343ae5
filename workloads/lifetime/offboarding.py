"""Stops the notebooks of people who left a team, may only view it from now on, or whose account is suspended. Volumes
stay with the team. A notebook that was stopped stays so until a person starts it again.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, Q

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from portal.core.due import wake
from workloads.core.notifications import page_url, recipients_of
from workloads.launch.stopping import request_stop
from workloads.lifetime.queries import launch_rights
from workloads.models import Run, Workload

OFFBOARDING_RULE = system_actor("rule leaving people")


@transaction.atomic
def stop_orphaned_run(run: Run) -> None:
    """Asks it to stop, and tells its person and the team, once; not if the person has come back meanwhile."""
    workload, person, team = run.workload, run.requested_by, run.workload.tenant.name
    if person.is_active:
        reason, why = "person_left", f"{person.name}, who started it, may not launch in {team} any more"
    else:
        reason, why = "person_suspended", f"the account of {person.name}, who started it, is suspended"
    message = f"Stopped, since {why}."
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
    where = "Volumes and what is on them stay with the team; a member may start it again."
    deliver(
        event,
        list(told.values()),
        subject=f"{workload.name} of {team} was stopped"[:150],
        body=f"{message} {where}\n\n{page_url(workload)}",
    )


def wake_orphaned_notebooks() -> int:
    """Notebooks whose person may not launch any more are looked at now, whoever took the right, and how. One query
    where there is none. Who was asked to stop is not asked again.
    """
    alive = Run.objects.filter(~Exists(launch_rights()), ended_at=None, stop_requested_at=None)
    orphans = list(alive.filter(workload__kind=Workload.Kind.NOTEBOOK).values_list("workload_id", flat=True))
    return wake(Workload, orphans) if orphans else 0
