"""Tells people once that the node of their run is being removed, and names that as the cause of what follows.

The portal evicts nothing: the handler that set the taint drains the node, and the pod gets SIGTERM as at any eviction.
An event per run and node is the memory: the node may be gone when the worker looks at the end of the pod.
"""

from __future__ import annotations

from django.db import models, transaction

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import Event
from cluster.manifests.node_removal.cordons import cordon_of
from cluster.manifests.node_removal.notices import removal_notice
from cluster.models import MirrorNode
from portal.core.due import table_label
from workloads.core.notifications import page_url, recipients_of
from workloads.core.observation import LeavingNode, Observation
from workloads.interruption.loss import interruption_loss_of
from workloads.interruption.preemption import DRAIN
from workloads.models import Run, Workload

NODE_LEAVING = "workload.node_leaving"
# Recorded by operations.cordons.
NODE_CORDONED = "workload.node_cordoned"
REMOVAL_RULE = system_actor("rule interruptions")
# What the removal of a node does to its pods. Whatever else ends a pod there has its own cause.
_BY_REMOVAL = frozenset({"pod_removed", "drained", "node_shutdown", "node_lost", "disrupted"})


def record_removal_notice(run: Run, seen: Observation) -> bool:
    """Returns whether it was new. No query while no node of the run is being removed."""
    if seen.leaving is None or run.ended_at is not None or run.stop_requested_at is not None:
        return False
    return _tell(run, seen.leaving)


@transaction.atomic
def _tell(run: Run, leaving: LeavingNode) -> bool:
    # The lock lets only one worker tell it.
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    workload = run.workload
    known = _told(run).filter(after__node_uid=leaving.uid, after__reason=leaving.notice.code)
    if locked.ended_at is not None or known.exists():
        return False
    after = {"run": run.number, "node": leaving.name, "node_uid": leaving.uid, "reason": leaving.notice.code}
    event = record(REMOVAL_RULE, NODE_LEAVING, workload, tenant=workload.tenant.slug, after=after)
    deliver(
        event,
        recipients_of(run),
        subject=f"The node of {workload.name} of {workload.tenant.name} is being removed",
        body=(
            f"{workload.name}: {leaving.sentence} When its pod is removed, its programs get SIGTERM and up to 30 s to "
            f"save their state. {interruption_loss_of(run)}\n\n{page_url(workload)}"
        ),
    )
    return True


def cause_of(run: Run, node: str, cause: str, *, is_evicted: bool = False) -> str:
    """Returns the reason of the node's removal or the drain for a pod that ended by it, otherwise the cause as the pod
    shows it. A node that is there speaks for itself; of one that is gone, the last notice counts. `is_evicted`: through
    the Eviction API, which drains use, and others too: only the cordon makes it a drain.
    """
    if not node or cause not in _BY_REMOVAL:
        return cause
    row = MirrorNode.objects.filter(cluster_id=run.workload.namespace.cluster_id, name=node).first()
    if row is not None:
        notice = removal_notice(taint["key"] for taint in row.record["taints"])
        if notice is not None:
            return notice.code
        found = cordon_of(schedulable=row.schedulable, record=row.record)
        return DRAIN if is_evicted and found is not None and not found.is_maintenance else cause
    told = _told(run).filter(after__node=node).order_by("-pk").first()
    if told is not None:
        return str(told.after["reason"])
    was_cordoned = is_evicted and _told(run, NODE_CORDONED).filter(after__node=node).exists()
    return DRAIN if was_cordoned else cause


def _told(run: Run, verb: str = NODE_LEAVING) -> models.QuerySet[Event]:
    rows = Event.objects.filter(row=f"{table_label(Workload)}.{run.workload_id}", verb=verb)
    return rows.filter(after__run=run.number)
