"""Records from when to when each Workload of Kueue was admitted, by its own conditions.

A Workload shows only its last admission. Every state that is seen counts, also one that another replaces in the same
batch, so that who looks later finds all of them. What happens while no watcher runs is found when it lists again: the
admission before ends when the next one began, or now, and is marked as not exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db import connection
from django.db.models.functions import Now

from cluster.mirror.batch import MirrorBatch
from cluster.mirror.records.types import ObservedObject
from cluster.models import AdmissionPeriod

KEPT = timedelta(days=7)
FINISHED, DELETED, UNSEEN = "Finished", "Deleted", "Unseen"


@dataclass
class _Admission:
    """`ended_at` None: admitted. Times are the cluster's text."""

    uid: str
    job_uid: str
    flavors: Mapping[str, str]
    admitted_at: str
    ended_at: str | None = None
    reason: str = ""
    is_exact: bool = True


@dataclass(frozen=True)
class _End:
    """The end of what was admitted at `at` or before; `at` None: now. `is_next`: the end is when it was admitted
    again.
    """

    uid: str
    at: str | None
    reason: str
    is_exact: bool
    is_next: bool = False


def record_admissions(cluster_id: int, batch: MirrorBatch) -> None:
    """At most four statements, whatever the size of the batch; none without Workloads."""
    admissions, ends = _admissions_of(batch.workloads)
    for uid in batch.deletes.get("Workload", ()):
        since = batch.removed[uid].deleting_since if uid in batch.removed else None
        ends.setdefault(uid, _End(uid, since, DELETED, is_exact=since is not None))
        for one in admissions:
            if one.uid == uid and one.ended_at is None:
                one.ended_at, one.reason, one.is_exact = since, DELETED, since is not None
    with connection.cursor() as cursor:
        if ends:
            cursor.execute(_END, [json.dumps([asdict(one) for one in ends.values()]), cluster_id])
            AdmissionPeriod.objects.filter(cluster_id=cluster_id, ended_at__lt=Now() - KEPT).delete()
        if admissions:
            cursor.execute(_ADMIT, [cluster_id, json.dumps([asdict(one) for one in admissions])])
        if batch.listed_workloads is not None:
            cursor.execute(_END_OTHERS, [DELETED, cluster_id, sorted(batch.listed_workloads)])


def _admissions_of(states: Iterable[tuple[ObservedObject, bool]]) -> tuple[list[_Admission], dict[str, _End]]:
    """The admissions in these states, and by uid the first end in them, which is the end of one recorded before."""
    found: dict[tuple[str, str], _Admission] = {}
    last: dict[str, _Admission] = {}
    ends: dict[str, _End] = {}
    for seen, is_listed in states:
        conditions = {one["type"]: one for one in seen.record["conditions"]}
        admitted = conditions.get("Admitted")
        if admitted is None:
            continue
        before = last.get(seen.uid)
        if admitted["status"] != "True":
            evicted = conditions.get("Evicted", {})
            reason = evicted["reason"] if evicted.get("status") == "True" else ""
            # Before a list, it may have been admitted and evicted more than once.
            _end(before, admitted["since"], reason, is_exact=not is_listed)
            ends.setdefault(seen.uid, _End(seen.uid, admitted["since"], reason, is_exact=not is_listed))
            continue
        key = (seen.uid, admitted["since"])
        if key not in found:
            _end(before, admitted["since"], UNSEEN, is_exact=False)
            ends.setdefault(seen.uid, _End(seen.uid, admitted["since"], UNSEEN, is_exact=False, is_next=True))
            found[key] = _Admission(seen.uid, seen.columns["job_uid"], seen.record["flavors"], admitted["since"])
        last[seen.uid] = found[key]
        if conditions.get("Finished", {}).get("status") == "True":
            _end(found[key], conditions["Finished"]["since"], FINISHED, is_exact=True)
            ends.setdefault(seen.uid, _End(seen.uid, conditions["Finished"]["since"], FINISHED, is_exact=True))
    return list(found.values()), ends


def _end(admission: _Admission | None, at: str, reason: str, *, is_exact: bool) -> None:
    if admission is not None and admission.ended_at is None:
        admission.ended_at, admission.reason, admission.is_exact = at, reason, is_exact


def _columns(**types: str) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


_TABLE = AdmissionPeriod._meta.db_table
_ENDS = _columns(uid="text", at="timestamptz", reason="text", is_exact="boolean", is_next="boolean")
_END = f"""
UPDATE {_TABLE} period
   SET ended_at = greatest(coalesce(its.at, now()), period.admitted_at), reason = left(its.reason, 120),
       is_exact = its.is_exact
  FROM jsonb_to_recordset(%s::jsonb) AS its ({_ENDS})
 WHERE period.cluster_id = %s AND period.uid = its.uid AND period.ended_at IS NULL
   AND (its.at IS NULL OR period.admitted_at < its.at OR (period.admitted_at = its.at AND NOT its.is_next))"""
_PERIODS = _columns(
    uid="text",
    job_uid="text",
    flavors="jsonb",
    admitted_at="timestamptz",
    ended_at="timestamptz",
    reason="text",
    is_exact="boolean",
)
_ADMIT = f"""
INSERT INTO {_TABLE} AS known (cluster_id, uid, job_uid, flavors, admitted_at, ended_at, reason, is_exact)
SELECT %s, uid, job_uid, flavors, admitted_at, ended_at, left(reason, 120), is_exact
  FROM jsonb_to_recordset(%s::jsonb) AS its ({_PERIODS})
    ON CONFLICT (cluster_id, uid, admitted_at) DO UPDATE
   SET ended_at = excluded.ended_at, reason = excluded.reason, is_exact = excluded.is_exact
 WHERE known.ended_at IS NULL AND excluded.ended_at IS NOT NULL"""
_END_OTHERS = f"""
UPDATE {_TABLE} SET ended_at = greatest(now(), admitted_at), reason = %s, is_exact = false
 WHERE cluster_id = %s AND ended_at IS NULL AND uid <> ALL(%s)"""
