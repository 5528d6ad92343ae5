"""Takes what a closed namespace has in the cluster away, one step at a look, in an order in which nothing hangs."""

from __future__ import annotations

from cluster import live_queue
from cluster.apply import delete_owned
from cluster.kube import Kube, NotFound
from cluster.manifests import namespace as manifests
from cluster.models import AppliedObject
from portal.due import DONE, Deadline, Outcome, owner_label
from portal.hints import page_hint
from tenants import queries
from tenants.models import Namespace
from tenants.sending import SOON_S, applied, queue_of, send


def close(row: Namespace, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Hold → Jobs → their Workloads → LocalQueue → ClusterQueue → namespace, one step at a look.

    In any other order something hangs: a queue with work cannot go, and work without a queue cannot end.
    """
    soon = Outcome(again_in_s=SOON_S, is_applied=False)
    page_hint(row.name)
    live = queue_of(row, kube)
    if live is not live_queue.ABSENT:
        if live.is_terminating:
            return soon
        if live.is_open:
            spec = queries.namespace_spec(row, queries.shares(row, {}), live, is_held=True)
            send(row, [manifests.cluster_queue(spec, spec.cells or ())], deadline, kube=kube, is_all=False)
        for job in AppliedObject.objects.filter(cluster=row.cluster, kind="Job", namespace=row.name).exclude(uid=""):
            deadline.check()
            kube.delete("Job", name=job.name, namespace=row.name, uid=job.uid)
        # What was admitted a moment before the hold shows with the next look.
        if live.is_open or live.admitted or live.pending:
            return soon
        deadline.check()
        delete_owned(kube=kube, cluster_id=row.cluster_id, owner=owner_label(row), kinds=["LocalQueue"])
        deadline.check()
        delete_owned(kube=kube, cluster_id=row.cluster_id, owner=owner_label(row), kinds=["ClusterQueue", "Cohort"])
        return soon
    return soon if _namespace_remains(row, deadline, kube=kube) else DONE


def _namespace_remains(row: Namespace, deadline: Deadline, *, kube: Kube) -> bool:
    """Its row stays until it is gone, so that the page can show what blocks it; the rest goes with it."""
    ours = applied(row).filter(kind="Namespace").first()
    if ours is not None and ours.uid:
        deadline.check()
        kube.delete("Namespace", name=row.name, uid=ours.uid)
        try:
            if kube.get("Namespace", name=row.name).uid == ours.uid:
                return True
        except NotFound:
            pass
    applied(row).delete()
    return False
