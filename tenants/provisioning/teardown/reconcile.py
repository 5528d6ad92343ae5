"""Deletes what a closed team has in the cluster, one step per check, in an order in which no step blocks.

Hold → Jobs → their Workloads → LocalQueue → ClusterQueue; then only the volumes are kept until `volumes_until`; then
the namespace. The row states when each part begins (`closes_at`, `volumes_until`), and its clock wakes the worker;
there is no separate job.
"""

from __future__ import annotations

from cluster.apply import reconcile as apply_reconcile
from cluster.apply.reconcile import delete_owned
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.manifests import namespace as manifests
from cluster.manifests.namespace import retained_objects
from cluster.models import AppliedObject
from cluster.reads import cluster_queue
from cluster.reads import queries as mirror
from portal.core.due import DONE, Deadline, Outcome, owner_label
from portal.core.hints import page_hint
from tenants.core import queries
from tenants.lifecycle.closing import schedule
from tenants.models import Namespace
from tenants.provisioning import queries as provisioning_queries
from tenants.provisioning.apply import RETRY_SOON_S, applied_objects, apply_objects, queue_of
from tenants.provisioning.teardown.release import release_namespace

CLAIM = "PersistentVolumeClaim"
RETRY_SOON = Outcome(again_in_s=RETRY_SOON_S, is_applied=False)
Result = AppliedObject.Result


def tear_down(row: Namespace, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Requires that `row.closes_at` has passed and cannot be undone. DONE: nothing is left in the cluster.

    In any other order a deletion blocks: a queue with workloads cannot be deleted, and a workload without a queue
    cannot end.
    """
    now = queries.database_now()
    page_hint(row.name)
    if queue_remains(row, deadline, kube=kube):
        return RETRY_SOON
    if row.volumes_until is not None and row.volumes_until > now and retained_claims(row) != 0:
        return _retain_volumes(row, deadline, kube=kube)
    return RETRY_SOON if _namespace_remains(row, deadline, kube=kube) else DONE


def retained_claims(row: Namespace) -> int | None:
    """Returns how many volumes the namespace keeps. None: unknown, the mirror cannot show volumes that we did not send.

    0 for a namespace that was never created or that the portal does not own. Claims of a cluster that was replaced
    count: until `volumes_until` an operator may restore them.
    """
    ours = applied_objects(row).filter(kind="Namespace")
    if ours.exclude(uid="").exclude(result=Result.FOREIGN).exists():
        return _claims(row)
    if row.origin != Namespace.Origin.PORTAL or ours.filter(result=Result.FOREIGN).exists():
        return 0
    claims = AppliedObject.objects.filter(cluster=row.cluster, kind=CLAIM, namespace=row.name, result=Result.APPLIED)
    return claims.filter(code=PREVIOUS_CLUSTER).count()


def queue_remains(row: Namespace, deadline: Deadline, *, kube: Kube) -> bool:
    """Ends what the queue holds, then deletes it, one step per call."""
    live = queue_of(row, kube)
    if live.is_terminating:
        return True
    # A queue without a record, because a worker died before it wrote one, would not be deleted.
    is_recorded = live is cluster_queue.ABSENT_QUEUE or applied_objects(row).filter(kind="ClusterQueue").exists()
    if live.is_open or not is_recorded:
        spec = provisioning_queries.namespace_spec(row, provisioning_queries.class_shares(row, {}), live, is_held=True)
        apply_objects(row, [manifests.cluster_queue(spec, spec.cells or ())], deadline, kube=kube, is_all=False)
    for job in AppliedObject.objects.filter(cluster=row.cluster, kind="Job", namespace=row.name).exclude(uid=""):
        deadline.check()
        kube.delete("Job", name=job.name, namespace=row.name, uid=job.uid)
    if live is cluster_queue.ABSENT_QUEUE:
        return False
    # A workload that was admitted just before the hold is visible at the next check.
    if not (live.is_open or live.admitted or live.pending):
        for kinds in (["LocalQueue"], ["ClusterQueue", "Cohort"]):
            deadline.check()
            delete_owned(kube=kube, cluster_id=row.cluster_id, owner=owner_label(row), kinds=kinds)
    return True


def _claims(row: Namespace) -> int | None:
    sent = AppliedObject.objects.filter(cluster=row.cluster, kind=CLAIM, namespace=row.name)
    ours = set(sent.filter(result=Result.APPLIED).values_list("name", flat=True))
    if row.origin != Namespace.Origin.PORTAL:
        # Claims of others stay in a namespace that is given back.
        return len(ours)
    if not mirror.is_known(row.cluster_id, CLAIM):
        return len(ours) or None
    return len(ours | {one.name for one in mirror.objects(row.cluster_id, kind=CLAIM, namespace=row.name)})


def _retain_volumes(row: Namespace, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Keeps only the volume claims, in a namespace in which nothing runs."""
    clock = schedule.next_volume_check(row, queries.database_now())
    spec = provisioning_queries.namespace_spec(
        row, provisioning_queries.class_shares(row, {}), cluster_queue.ABSENT_QUEUE, is_held=True
    )
    done = apply_objects(row, retained_objects(spec), deadline, kube=kube)
    apply_reconcile.raise_if_not_applied(row.cluster, owner_label(row), done, clock=clock)
    return Outcome(again_in_s=RETRY_SOON_S if done.terminating else None, clock=clock, is_applied=not done.terminating)


def _namespace_remains(row: Namespace, deadline: Deadline, *, kube: Kube) -> bool:
    """Deletes the namespace, and with it its objects. The records stay until it is gone. The mirror shows what blocks
    the deletion (lifecycle/terminating/queries.py).
    """
    ours = applied_objects(row).filter(kind="Namespace").first()
    if row.origin != Namespace.Origin.PORTAL:
        # Others have objects in it.
        release_namespace(row, deadline, kube=kube)
        return False
    if ours is not None and ours.uid:
        deadline.check()
        kube.delete("Namespace", name=row.name, uid=ours.uid)
        try:
            if kube.get("Namespace", name=row.name).uid == ours.uid:
                return True
        except NotFound:
            pass
    applied_objects(row).delete()
    return False
