"""Begins and ends the time in which the portal only observes the cluster."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import record
from cluster.models import Cluster
from cluster.observe_only import policy
from cluster.observe_only.queries import WAITING
from portal.core import due
from portal.core.errors import refuse_if


@transaction.atomic
def set_observe_only(cluster: Cluster, *, wanted: bool, by: Actor) -> Cluster:
    """From the commit on no process begins a write to the cluster, or what waited is due at once. The same again
    changes nothing. Raises Refused: not_allowed (403).
    """
    refuse_if(policy.may_set(by))
    row = Cluster.objects.select_for_update().get(pk=cluster.pk)
    if row.is_observe_only == wanted:
        return row
    since = row.observe_only_since
    columns = {"observe_only_since": Now(), "observe_only_by": by.user} if wanted else None
    Cluster.objects.filter(pk=row.pk).update(**(columns or {"observe_only_since": None, "observe_only_by": None}))
    row.refresh_from_db()
    if wanted:
        record(by, "cluster.observe_only_begun", row, after={"since": row.observe_only_since})
    else:
        record(by, "cluster.observe_only_ended", row, before={"since": since})
        for model in due.due_models():
            due.wake(model, model._base_manager.filter(error_code=WAITING).values_list("pk", flat=True))
    return row
