"""Compares the nodes in the mirror with the rows of cordons, and tells the people of the runs there.

A pass that dies repeats nothing: every row and its mail are one transaction.
"""

from __future__ import annotations

from django.utils import timezone

from cluster.manifests.node_removal.notices import removal_notice
from cluster.models import Cluster
from cluster.reads import queries as mirror
from cluster.reads.observed import Node
from operations.cordons.notifications import tell_cordoned, tell_over
from operations.maintenance.affected import on_nodes
from operations.models import CordonNotice, NodeCordon


def follow_cordons(cluster: Cluster) -> None:
    """Without a current mirror nothing is concluded. Four queries while no node is cordoned, three more while one is,
    whatever the number of nodes and runs; more for each run that is told.
    """
    if not mirror.as_of(cluster.pk, "Node", "Pod").is_current:
        return
    closed = {node.name: node for node in mirror.cordoned_nodes(cluster.pk)}
    rows = {row.node: row for row in NodeCordon.objects.filter(cluster=cluster, ended_at=None)}
    _end(cluster, [row for row in rows.values() if not _is_still(row, closed.get(row.node))])
    rows = {name: row for name, row in rows.items() if row.ended_at is None}
    new = [node for name, node in closed.items() if name not in rows and not _is_held(node)]
    NodeCordon.objects.bulk_create([_row(cluster, node) for node in new], ignore_conflicts=True)
    _tell_new(cluster, closed)
    _tell_over(cluster)


def _is_still(row: NodeCordon, node: Node | None) -> bool:
    return node is not None and node.uid == row.node_uid


def _is_held(node: Node) -> bool:
    return node.cordon is not None and node.cordon.is_maintenance


def _row(cluster: Cluster, node: Node) -> NodeCordon:
    manager, at = (node.cordon.manager, node.cordon.at) if node.cordon is not None else ("", None)
    return NodeCordon(cluster=cluster, node=node.name, node_uid=node.uid, manager=manager, since=at)


def _end(cluster: Cluster, over: list[NodeCordon]) -> None:
    if not over:
        return
    uids = mirror.node_uids(cluster.pk, [row.node for row in over])
    for row in over:
        row.ended_at, row.is_node_gone = timezone.now(), uids.get(row.node) != row.node_uid
    NodeCordon.objects.bulk_update(over, ["ended_at", "is_node_gone"])


def _tell_new(cluster: Cluster, closed: dict[str, Node]) -> None:
    """Maintenance and the removal of a node have notices of their own."""
    told = {
        name: node
        for name, node in closed.items()
        if not _is_held(node) and removal_notice(taint.key for taint in node.taints) is None
    }
    if not told:
        return
    rows = NodeCordon.objects.filter(cluster=cluster, node__in=told, ended_at=None)
    found = on_nodes(cluster.pk, list(told)).runs
    known = set(CordonNotice.objects.filter(cordon__in=rows).values_list("cordon", "run"))
    for row in rows:
        for run in found[row.node]:
            if (row.pk, run.pk) not in known and run.stop_requested_at is None:
                tell_cordoned(row, run)


def _tell_over(cluster: Cluster) -> None:
    waiting = CordonNotice.objects.filter(
        cordon__cluster=cluster, cordon__ended_at__isnull=False, cordon__is_node_gone=False, over_told_at=None,
        run__ended_at=None,
    )  # fmt: skip
    for notice in waiting.select_related("cordon", "run__workload__tenant", "run__workload__namespace"):
        tell_over(notice)
