"""The decision that another cluster takes the place of the one that the rows describe."""

from __future__ import annotations

from django.db import connection, transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from cluster.apply.applied_objects import leave_previous_cluster
from cluster.mirror.admissions import UNSEEN
from cluster.mirror.tables import forget_everything
from cluster.models import AdmissionPeriod, AppliedObject, Cluster, MirrorEpoch, MirrorKind
from cluster.observe_only import policy
from operations.maintenance.recording import end_of_previous_cluster
from portal.core import due
from portal.core.errors import NOT_FOUND, Refused, refuse_if
from workloads.allocations.recording import end_what_was_in_cluster
from workloads.models import Workload


@transaction.atomic
def confirm_cluster(cluster: Cluster, uid: str, *, by: Actor) -> int:
    """From the commit on the cluster that the watcher reaches is the one of the rows. Everything is listed and sent
    again; Jobs and volumes of the previous cluster are marked, and workers end their runs; maintenances end. Returns
    the number of objects that were sent before. Raises Refused: not_allowed (403), and not_found (404) if the watcher
    does not reach this cluster, or it is the one of the rows already.
    """
    refuse_if(policy.may_set(by))
    # In this order: the watcher locks the epoch before each batch.
    MirrorEpoch.objects.select_for_update().filter(cluster_id=cluster.pk).first()
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    if not uid or row.other_uid != uid:
        raise Refused(NOT_FOUND)
    _end_admissions(row)
    end_what_was_in_cluster(row.pk)
    forget_everything(row.pk)
    MirrorEpoch.objects.filter(cluster_id=row.pk).delete()
    owners = set(AppliedObject.objects.filter(cluster_id=row.pk).values_list("owner", flat=True))
    sent = leave_previous_cluster(row.pk, runs=due.table_label(Workload))
    end_of_previous_cluster(row.pk, by=by)
    Cluster.objects.filter(pk=row.pk).update(uid=uid, other_uid="", other_since=None)
    record(by, "cluster.replaced", row, before={"uid": row.uid}, after={"uid": uid})
    due.wake_owners(owners)
    for model in due.due_models():
        due.begin_again(model)
    return sent


def _end_admissions(cluster: Cluster) -> None:
    """What was admitted in the previous cluster was seen last when the watcher heard of it."""
    with connection.cursor() as cursor:
        cursor.execute(_END, [cluster.pk])


_END = f"""
UPDATE {AdmissionPeriod._meta.db_table} period
   SET ended_at = greatest(kind.heard_at, period.admitted_at), reason = '{UNSEEN}', is_exact = false
  FROM {MirrorKind._meta.db_table} kind
 WHERE kind.cluster_id = period.cluster_id AND kind.kind = 'Workload' AND period.cluster_id = %s
   AND period.ended_at IS NULL"""
