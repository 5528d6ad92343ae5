"""Who leaves a team, may only look on from now on, or whose account is suspended, leaves no notebook running in it; its
volume stays the team's. Who comes back starts again what was stopped: nobody else's decision brings it back.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from accounts.actions import deliver, record
from accounts.actor import system
from accounts.models import User
from portal.due import wake
from portal.hints import page_hint
from tenants.models import Membership
from workloads.models import Run, Workload
from workloads.policy import LAUNCHERS
from workloads.telling import page_of, people_of

RULE = system("rule leaving people")

# Of SQL with the tables `run` and `workload`: who asked for this run may launch in its team.
MAY_LAUNCH = f"""EXISTS (
  SELECT FROM {Membership._meta.db_table} member
    JOIN {User._meta.db_table} person ON person.id = member.user_id AND person.is_active
   WHERE member.tenant_id = workload.tenant_id AND member.user_id = run.requested_by_id
     AND member.role IN ({", ".join(f"'{role}'" for role in sorted(LAUNCHERS))}))"""


@transaction.atomic
def end(run: Run) -> None:
    """Asks it to stop, and tells its person and the team, once; not if the person has come back meanwhile."""
    workload, person, team = run.workload, run.requested_by, run.workload.tenant.name
    if person.is_active:
        reason, why = "person_left", f"{person.name}, who started it, may not launch in {team} any more"
    else:
        reason, why = "person_suspended", f"the account of {person.name}, who started it, is suspended"
    message = f"Stopped, since {why}."
    alive = Run.objects.filter(~Exists(_rights()), pk=run.pk, ended_at=None, stop_requested_at=None)
    if not alive.update(stop_requested_at=Now(), stop_reason=reason, stop_message=message[:500]):
        return
    event = record(
        RULE,
        "notebook.person_left" if person.is_active else "notebook.person_suspended",
        workload,
        tenant=workload.tenant.slug,
        after={"run": run.number, "user": person.email},
    )
    told = {one.pk: one for one in (*people_of(run), *([person] if person.is_active else []))}
    where = "Volumes and what is on them stay with the team; a member may start it again."
    deliver(
        event,
        list(told.values()),
        subject=f"{workload.name} of {team} was stopped"[:150],
        body=f"{message} {where}\n\n{page_of(workload)}",
    )
    page_hint(workload.namespace.name)


def wake_orphans() -> int:
    """Notebooks whose person may not launch any more are looked at now, whoever took the right, and how. One query
    where there is none. Who was asked to stop is not asked again.
    """
    alive = Run.objects.filter(~Exists(_rights()), ended_at=None, stop_requested_at=None)
    orphans = list(alive.filter(workload__kind=Workload.Kind.NOTEBOOK).values_list("workload_id", flat=True))
    return wake(Workload, orphans) if orphans else 0


def _rights() -> QuerySet[Membership]:
    """Of queries for runs: what lets its person launch in its team."""
    return Membership.objects.filter(
        tenant=OuterRef("workload__tenant"),
        user=OuterRef("requested_by"),
        user__is_active=True,
        role__in=sorted(LAUNCHERS),
    )
