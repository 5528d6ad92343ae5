"""Who leaves a team, or may only look on from now on, leaves no notebook running in it; its volume stays the team's."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from accounts.actions import deliver, record
from accounts.actor import system
from portal.hints import page_hint
from tenants.models import Membership
from workloads.models import Run
from workloads.policy import LAUNCHERS
from workloads.telling import page_of, people_of

REASON = "person_left"
RULE = system("rule leaving people")

# Of SQL with the tables `run` and `workload`: who asked for this run may launch in its team.
MAY_LAUNCH = f"""EXISTS (
  SELECT FROM {Membership._meta.db_table} member
   WHERE member.tenant_id = workload.tenant_id AND member.user_id = run.requested_by_id
     AND member.role IN ({", ".join(f"'{role}'" for role in sorted(LAUNCHERS))}))"""


@transaction.atomic
def end(run: Run) -> None:
    """Asks it to stop, and tells its person and the team, once; not if the person has come back meanwhile."""
    workload, person = run.workload, run.requested_by
    back = Membership.objects.filter(
        tenant=workload.tenant_id, user=OuterRef("requested_by"), role__in=sorted(LAUNCHERS)
    )
    alive = Run.objects.filter(~Exists(back), pk=run.pk, ended_at=None, stop_requested_at=None)
    team = workload.tenant.name
    message = f"Stopped, since {person.name}, who started it, may not launch in {team} any more."
    if not alive.update(stop_requested_at=Now(), stop_reason=REASON, stop_message=message[:500]):
        return
    after = {"run": run.number, "user": person.email}
    event = record(RULE, "notebook.person_left", workload, tenant=workload.tenant.slug, after=after)
    told = {one.pk: one for one in (*people_of(run), *([person] if person.is_active else []))}
    where = "Volumes and what is on them stay with the team; a member may start it again."
    deliver(
        event,
        list(told.values()),
        subject=f"{workload.name} of {team} was stopped"[:150],
        body=f"{message} {where}\n\n{page_of(workload)}",
    )
    page_hint(workload.namespace.name)
