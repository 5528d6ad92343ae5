"""Rows that record what was sent for an owner, and the outcome."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q
from django.utils.crypto import salted_hmac

from cluster.apply.types import PREVIOUS_CLUSTER, ObjectKey, object_key
from cluster.client.types import ApiObject
from cluster.manifests.metadata import Manifest
from cluster.models import AppliedObject
from portal.core.sql import columns

Result = AppliedObject.Result
CREATED_ONCE = ("Job", "PersistentVolumeClaim", "ResourceClaimTemplate")


def rows_of_owner(cluster_id: int, owner: str) -> dict[ObjectKey, AppliedObject]:
    """Returns the AppliedObject rows of the owner: what was sent and the outcome. One query."""
    return {row_key(row): row for row in AppliedObject.objects.filter(cluster_id=cluster_id, owner=owner)}


def manifest_hash(manifest: Manifest) -> str:
    """Returns a keyed hash: a Secret's values could be guessed from a plain hash by anyone who reads the rows."""
    return salted_hmac("cluster.apply", json.dumps(manifest, sort_keys=True), algorithm="sha256").hexdigest()


def send_all_again(cluster_id: int) -> int:
    """After a restore the rows are older than the cluster: the next pass of each owner sends its objects, whatever was
    recorded. Jobs and volumes are never sent again. Returns the number of objects.
    """
    rows = AppliedObject.objects.filter(cluster_id=cluster_id).exclude(kind__in=CREATED_ONCE)
    return rows.update(manifest_hash="")


def leave_previous_cluster(cluster_id: int, *, runs: str) -> int:
    """Nothing that was sent exists in the cluster that has replaced the previous one: each owner sends its objects as
    new ones. Jobs and volumes stay, marked, since nothing creates them again; so does what belongs to a Job that was
    sent. `runs`: the label of the table whose rows own Jobs. Returns the number of objects that will be sent again.
    """
    rows = AppliedObject.objects.filter(cluster_id=cluster_id)
    there = rows.filter(result__in=(Result.APPLIED, Result.TERMINATING))
    there.filter(kind__in=("Job", "PersistentVolumeClaim")).update(code=PREVIOUS_CLUSTER)
    marked = rows.filter(owner=OuterRef("owner"), kind="Job", code=PREVIOUS_CLUSTER)
    left = rows.exclude(code=PREVIOUS_CLUSTER).exclude(Q(owner__startswith=f"{runs}.") & Exists(marked))
    return left.delete()[0]


def forget_left_claims(cluster_id: int, namespace: str) -> None:
    """Of a team that ends here: nobody can restore them for it any more."""
    rows = AppliedObject.objects.filter(cluster_id=cluster_id, kind="PersistentVolumeClaim", namespace=namespace)
    rows.filter(code=PREVIOUS_CLUSTER).delete()


def row_key(row: AppliedObject) -> ObjectKey:
    return row.kind, row.namespace, row.name


def outcome_row(
    cluster_id: int,
    owner: str,
    manifest: Manifest,
    result: str,
    *,
    answer: ApiObject | None = None,
    code: str = "",
    text: str = "",
) -> AppliedObject:
    kind, namespace, name = object_key(manifest)
    return AppliedObject(
        cluster_id=cluster_id,
        kind=kind,
        namespace=namespace,
        name=name,
        owner=owner,
        manifest_hash=manifest_hash(manifest),
        result=result,
        code=code[:60],
        text=text[:300],
        uid=answer.uid if answer else "",
        resource_version=answer.resource_version if answer else "",
    )


def record_outcomes(rows: Sequence[AppliedObject]) -> list[AppliedObject]:
    """Writes the rows and returns them as stored. One statement, without a transaction around it.

    A refused change leaves the existing object unchanged; the portal still owns it and may delete it.
    """
    if not rows:
        return []
    fields = ("cluster_id", "owner", "kind", "namespace", "name", "uid", "manifest_hash", "resource_version")
    statement = f"""
        INSERT INTO {AppliedObject._meta.db_table} AS old
               ({", ".join(fields)}, result, code, text, sent_at, difference)
        SELECT {", ".join(fields)}, result, code, text, statement_timestamp(), '{{}}'
          FROM jsonb_populate_recordset(NULL::{AppliedObject._meta.db_table}, %s::jsonb)
        ON CONFLICT (cluster_id, kind, namespace, name) DO UPDATE SET
               owner = excluded.owner, manifest_hash = excluded.manifest_hash, sent_at = excluded.sent_at,
               result = excluded.result, code = excluded.code, text = excluded.text,
               uid = CASE WHEN excluded.result = '{Result.REFUSED}' THEN old.uid ELSE excluded.uid END,
               resource_version = CASE WHEN excluded.result = '{Result.REFUSED}' THEN old.resource_version
                                       ELSE excluded.resource_version END
        RETURNING {columns(AppliedObject, of="old")}"""
    sent = [{name: getattr(row, name) for name in (*fields, "result", "code", "text")} for row in rows]
    return list(AppliedObject.objects.raw(statement, [json.dumps(sent)]))
