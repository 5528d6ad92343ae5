"""The volumes that pods wait for, as the mirror shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.db import connection

from cluster.models import AppliedObject, MirrorNode, MirrorObject, MirrorWarning
from workloads.core.observation import ClaimState, Observation
from workloads.models import Run

ZONE = "topology.kubernetes.io/zone"


def with_claims(
    cluster_id: int, namespace: str, seen: Mapping[int, Observation], runs: Mapping[int, Run]
) -> dict[int, Observation]:
    """Returns the observations, with the volume of those whose pod waits for it. One query if one does."""
    wanted = {
        pk: str(runs[pk].spec["claim"])
        for pk, one in seen.items()
        if pk in runs and runs[pk].spec["claim"] and _waits_for_volume(one)
    }
    if not wanted:
        return dict(seen)
    with connection.cursor() as cursor:
        names = sorted(set(wanted.values()))
        cursor.execute(_CLAIMS, [ZONE, names, cluster_id, namespace, cluster_id, namespace])
        found = {name: ClaimState(name, *rest) for name, *rest in cursor.fetchall()}
    return {pk: replace(one, claim=found.get(wanted.get(pk, ""))) for pk, one in seen.items()}


def _waits_for_volume(seen: Observation) -> bool:
    pod = seen.pod
    placed = pod.condition("PodScheduled") if pod is not None and not pod.node else None
    return placed is not None and placed.reason == "Unschedulable" and "olume" in placed.message


_CLAIMS = f"""
SELECT wanted.name, coalesce(claim.record ->> 'storage_class', ''), coalesce(claim.record ->> 'node', ''),
       coalesce(node.record -> 'labels' ->> %s, ''),
       coalesce((SELECT message FROM {MirrorWarning._meta.db_table} warning
                  WHERE warning.cluster_id = claim.cluster_id AND warning.object_uid = claim.uid
                  ORDER BY last_at DESC LIMIT 1), ''),
       coalesce(sent.text, '')
  FROM unnest(%s::text[]) wanted (name)
  LEFT JOIN {MirrorObject._meta.db_table} claim
    ON claim.cluster_id = %s AND claim.kind = 'PersistentVolumeClaim' AND claim.namespace = %s
   AND claim.name = wanted.name
  LEFT JOIN {MirrorNode._meta.db_table} node
    ON node.cluster_id = claim.cluster_id AND node.name = claim.record ->> 'node'
  LEFT JOIN {AppliedObject._meta.db_table} sent
    ON sent.cluster_id = %s AND sent.kind = 'PersistentVolumeClaim' AND sent.namespace = %s AND sent.name = wanted.name
   AND sent.result = '{AppliedObject.Result.REFUSED}'
 WHERE claim.name IS NOT NULL OR sent.name IS NOT NULL"""
