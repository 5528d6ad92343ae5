"""NodePools and NodeClaims from the mirror."""

from __future__ import annotations

from cluster.models import MirrorObject
from cluster.reads import queries as mirror
from cluster.reads.autoscaler.pools import NewNode, NodeClaim, NodePool
from cluster.reads.observed import conditions
from portal.core.sql import select

POOL, CLAIM = "NodePool", "NodeClaim"


def pools_and_claims(cluster_id: int) -> tuple[list[NodePool], list[NodeClaim]] | None:
    """The pools that add nodes for pods, and the orders. Returns None while they are not known; two empty lists without
    Karpenter. Two queries.
    """
    if not mirror.is_known(cluster_id, POOL, CLAIM):
        return None
    rows = select(MirrorObject, "cluster_id = %s AND kind IN (%s, %s)", [cluster_id, POOL, CLAIM])
    open_rows = [row for row in rows if row.kind == POOL and row.deleting_since is None]
    pools = [_pool(row) for row in open_rows if not row.record["is_static"]]
    return pools, [_claim(row) for row in rows if row.kind == CLAIM]


def _node(row: MirrorObject) -> NewNode:
    return NewNode(row.record["labels"], tuple(row.record["requirements"]), tuple(row.record["taints"]))


def _pool(row: MirrorObject) -> NodePool:
    record = row.record
    return NodePool(row.name, _node(row), record["limits"], record["resources"], conditions(record))


def _claim(row: MirrorObject) -> NodeClaim:
    record = row.record
    return NodeClaim(
        row.name,
        record["pool"],
        _node(row),
        row.created_at,
        row.deleting_since is not None,
        record["requests"],
        record["capacity"],
        conditions(record),
    )
