"""Keeps what was last seen of our pods that the cluster removed, when their rows go."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models.functions import Now

from cluster.mirror.records.types import ObservedObject
from cluster.models import MirrorPod, PodRemoval

KEPT = timedelta(days=1)


def keep(cluster_id: int, uids: Collection[str], removed: Mapping[str, ObservedObject]) -> None:
    """`removed`: pods whose deletion was reported, as they were then. The others went while nobody watched: their rows
    have what was seen before. No statement for pods that were not disrupted, one for those that nobody watched.
    """
    found = [
        _removal(cluster_id, seen, seen.columns, seen.record)
        for uid in uids
        if (seen := removed.get(uid)) is not None and _disruption(seen.record) is not None
    ]
    if unwatched := [uid for uid in uids if uid not in removed]:
        rows = MirrorPod.objects.filter(cluster_id=cluster_id, uid__in=unwatched).exclude(owner="")
        found += [
            _removal(cluster_id, row, vars(row), row.record) for row in rows if _disruption(row.record) is not None
        ]
    if found:
        PodRemoval.objects.filter(cluster_id=cluster_id, removed_at__lt=Now() - KEPT).delete()
        PodRemoval.objects.bulk_create(found, ignore_conflicts=True)


def _disruption(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Only the records of our pods have conditions."""
    conditions = record.get("conditions", ())
    return next((one for one in conditions if one["type"] == "DisruptionTarget" and one["status"] == "True"), None)


def _removal(
    cluster_id: int, pod: ObservedObject | MirrorPod, columns: Mapping[str, Any], record: Mapping[str, Any]
) -> PodRemoval:
    target = _disruption(record) or {}
    main = record["containers"][0] if record["containers"] else {}
    return PodRemoval(
        cluster_id=cluster_id,
        namespace=pod.namespace,
        uid=pod.uid,
        owner=pod.owner,
        run=columns["run"],
        node=columns["node"],
        phase=columns["phase"],
        reason=record["reason"][:1024],
        message=record["message"],
        disruption=target["reason"][:1024],
        disruption_message=target["message"],
        disrupted_at=_time(target["since"]),
        ran_since=_time(main.get("since")),
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
