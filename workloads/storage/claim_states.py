"""The claims of volumes as the mirror shows them: their state, where each can be mounted, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Collection

from django.db import connection

from cluster.models import AppliedObject, MirrorEpoch, MirrorKind, MirrorNode, MirrorObject, MirrorWarning
from cluster.reads.volume_place import VolumePlace
from workloads.core.observation import ClaimState

CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"
_ZONE = "topology.kubernetes.io/zone"


def claim_states(cluster_id: int, namespace: str, names: Collection[str]) -> dict[str, ClaimState]:
    """By name; those that the mirror does not show and that the worker never sent are left out. One query."""
    if not names:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIMS, [_ZONE, sorted(names), cluster_id, namespace, cluster_id, namespace, cluster_id])
        return {name: _state(name, *row) for name, *row in cursor.fetchall()}


def _state(name: str, phase: str, storage_class: str, node: str, zone: str, nodes: str, *texts: str) -> ClaimState:
    problem, refusal = texts
    place = VolumePlace(tuple(json.loads(nodes)))
    return ClaimState(name, storage_class, node, zone, problem, refusal, phase, place)


# A claim is missing if the API server had accepted it and the watcher heard of claims since, but not of this one.
_CLAIMS = f"""
SELECT wanted.name,
       CASE WHEN claim.deleting_since IS NOT NULL THEN 'terminating'
            WHEN claim.name IS NOT NULL THEN lower(claim.record ->> 'phase')
            WHEN sent.result = '{AppliedObject.Result.APPLIED}' AND sent.sent_at + interval '2 s' < kind.heard_at
            THEN 'missing' ELSE '' END,
       coalesce(claim.record ->> 'storage_class', ''), coalesce(claim.record ->> 'node', ''),
       coalesce(node.record -> 'labels' ->> %s, ''), coalesce(volume.record ->> 'nodes', '[]'),
       coalesce((SELECT message FROM {MirrorWarning._meta.db_table} warning
                  WHERE warning.cluster_id = claim.cluster_id AND warning.object_uid = claim.uid
                  ORDER BY last_at DESC LIMIT 1), ''),
       CASE WHEN sent.result = '{AppliedObject.Result.REFUSED}' THEN sent.text ELSE '' END
  FROM unnest(%s::text[]) wanted (name)
  LEFT JOIN {MirrorObject._meta.db_table} claim
    ON claim.cluster_id = %s AND claim.kind = '{CLAIM}' AND claim.namespace = %s AND claim.name = wanted.name
  LEFT JOIN {MirrorObject._meta.db_table} volume
    ON volume.cluster_id = claim.cluster_id AND volume.kind = '{VOLUME}' AND volume.namespace = ''
   AND volume.name = claim.record ->> 'volume'
  LEFT JOIN {MirrorNode._meta.db_table} node
    ON node.cluster_id = claim.cluster_id AND node.name = claim.record ->> 'node'
  LEFT JOIN {AppliedObject._meta.db_table} sent
    ON sent.cluster_id = %s AND sent.kind = '{CLAIM}' AND sent.namespace = %s AND sent.name = wanted.name
  LEFT JOIN ({MirrorKind._meta.db_table} kind JOIN {MirrorEpoch._meta.db_table} epoch
       ON epoch.cluster_id = kind.cluster_id AND epoch.epoch = kind.epoch AND kind.listed_at IS NOT NULL)
    ON kind.cluster_id = %s AND kind.kind = '{CLAIM}'
 WHERE claim.name IS NOT NULL OR sent.name IS NOT NULL"""
