"""Make the cluster hold a row's manifests: send what changed, is missing or drifted, delete what nobody wants.

First write of an object is POST, so that an object of that name which is not ours is reported and never adopted; later
writes are server-side apply with the uid that we were given, so that an object somebody deleted and made again is not
taken for ours. Every object has an AppliedObject row that says what was sent and what came of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.crypto import salted_hmac

from cluster import words
from cluster.kube import Answer, ClusterRefused, ClusterUnavailable, Conflict, Kube, NotFound
from cluster.models import AppliedObject
from cluster.ownership import additions, leaves_fields
from portal.due import Deadline
from portal.sql import columns

OWNER_LABEL = "gpu-portal/owner"
# A refused manifest is not hammered: sent again when it changes, or after this long.
REFUSED_AGAIN_AFTER = timedelta(seconds=300)
# Code of an object that somebody had changed and that is as it was sent again; `text` says what it was.
REPAIRED = "repaired"
# What is repaired may be sent again by the same look (a queue is made on hold, then opened): it stays a repair.
STILL_REPAIRED = timedelta(seconds=30)
# Everything is sent again about once a day, in case the watcher missed a difference; jittered by the object's name.
SEND_AGAIN_AFTER = timedelta(hours=24)

# Kinds with maps whose keys come and go.
LOSES_KEYS = frozenset({"ResourceQuota", "Secret"})
# Requests for one row at one time.
AT_ONCE = 4

Result = AppliedObject.Result
Manifest = dict[str, Any]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Converged:
    """What one pass did. `sent` and `deleted` name objects as (kind, namespace, name)."""

    sent: tuple[Key, ...]
    deleted: tuple[Key, ...]
    refused: tuple[Key, ...]
    foreign: tuple[Key, ...]
    terminating: tuple[Key, ...]

    @property
    def is_settled(self) -> bool:
        """Everything wanted is there. What was refused is settled too: it waits for people, not for another try."""
        return not self.terminating

    @property
    def is_all_applied(self) -> bool:
        return not (self.refused or self.foreign or self.terminating)


def converge(
    *,
    kube: Kube,
    cluster_id: int,
    owner: str,
    manifests: Sequence[Manifest],
    deadline: Deadline,
    delete_unwanted: bool = True,
    known: dict[Key, AppliedObject] | None = None,
) -> Converged:
    """Send in the given order (the caller puts what lowers a limit first), then delete. Raises ClusterUnavailable.

    Objects that are new in a namespace do not wait for one another. `known`: as `rows_of` said in this look, where
    there is more to send than at once; it is kept up to date.
    """
    known = rows_of(cluster_id, owner) if known is None else known
    sent: list[Key] = []
    for group in _groups(manifests, known):
        deadline.check()
        if len(group) > 1:
            rows = _send_new(group, deadline, kube=kube, cluster_id=cluster_id, owner=owner)
        else:
            row = known.get(key_of(group[0]))
            rows = [send(kube=kube, cluster_id=cluster_id, owner=owner, manifest=group[0], row=row)]
        known |= {_key_of_row(row): row for row in rows}
        sent += [key_of(manifest) for manifest in group]
    deleted: list[Key] = []
    wanted = {key_of(manifest) for manifest in manifests}
    if delete_unwanted:
        for key in [key for key in known if key not in wanted]:
            deadline.check()
            delete_row(kube, known.pop(key))
            deleted.append(key)
    results: dict[str, list[Key]] = {}
    for key, row in known.items():
        results.setdefault(row.result, []).append(key)
    return Converged(
        tuple(sent),
        tuple(deleted),
        *(tuple(results.get(r, ())) for r in (Result.REFUSED, Result.FOREIGN, Result.TERMINATING)),
    )


def rows_of(cluster_id: int, owner: str) -> dict[Key, AppliedObject]:
    """What was sent for the owner and what came of it. One query."""
    return {_key_of_row(row): row for row in AppliedObject.objects.filter(cluster_id=cluster_id, owner=owner)}


def send(*, kube: Kube, cluster_id: int, owner: str, manifest: Manifest, row: AppliedObject | None) -> AppliedObject:
    """One object, one or two requests; the outcome is recorded. Raises ClusterUnavailable, with nothing recorded."""
    found = _tried(kube, cluster_id, owner, manifest, row)
    made = _record([found])[0]
    if found.result != Result.REFUSED and row is not None and row.difference:
        # One that was noted since the row was read is kept, and repaired by the next look, which it has asked for.
        AppliedObject.objects.filter(pk=made.pk, difference=row.difference).update(difference={})
        made.refresh_from_db(fields=["difference"])
    return made


def create_once(*, kube: Kube, cluster_id: int, owner: str, manifest: Manifest) -> AppliedObject:
    """POST and never again: a Job's template is immutable and Kueue writes into it. 409 with our owner label = done.

    Raises ClusterUnavailable, also for a 409 about an object that is not there: it is just going away, or several
    creations at once were counted against the namespace's quota.
    """
    kind, namespace, name = key_of(manifest)
    try:
        answer = kube.create(manifest)
    except Conflict as conflict:
        try:
            answer = kube.get(kind, name=name, namespace=namespace)
        except NotFound as gone:
            raise ClusterUnavailable(conflict.text) from gone
        if answer.labels.get(OWNER_LABEL) != owner:
            text = _foreign_text(manifest)
            return _record([_outcome(cluster_id, owner, manifest, Result.FOREIGN, code="foreign", text=text)])[0]
    except ClusterRefused as refused:
        code, text = refused.reason, refused.text
        return _record([_outcome(cluster_id, owner, manifest, Result.REFUSED, code=code, text=text)])[0]
    result = Result.TERMINATING if answer.is_terminating else Result.APPLIED
    text = " ".join(answer.warnings)
    return _record([_outcome(cluster_id, owner, manifest, result, answer=answer, text=text)])[0]


def delete_owned(*, kube: Kube, cluster_id: int, owner: str, kinds: Iterable[str]) -> int:
    """Delete every object of these kinds that the owner has, each by its uid. Returns how many were there."""
    rows = list(AppliedObject.objects.filter(cluster_id=cluster_id, owner=owner, kind__in=list(kinds)))
    for row in rows:
        delete_row(kube, row)
    return len(rows)


def delete_row(kube: Kube, row: AppliedObject) -> None:
    """Delete the object, unless it is somebody else's, then forget it. An object that is gone is success."""
    if row.result != Result.FOREIGN and row.uid:
        kube.delete(row.kind, name=row.name, namespace=row.namespace, uid=row.uid)
    row.delete()


def manifest_hash(manifest: Manifest) -> str:
    """Keyed: a Secret has values that whoever reads the rows could otherwise find by guessing."""
    return salted_hmac("cluster.apply", json.dumps(manifest, sort_keys=True), algorithm="sha256").hexdigest()


def key_of(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


class _Foreign(Exception):
    """An object of this name is not ours."""


def _groups(manifests: Sequence[Manifest], known: Mapping[Key, AppliedObject]) -> Iterator[list[Manifest]]:
    """What is to be sent, in order. New objects inside a namespace that follow one another are one group."""
    group: list[Manifest] = []
    for manifest in manifests:
        row = known.get(key_of(manifest))
        if row is not None and not _is_to_send(row, manifest):
            continue
        is_new_inside = row is None and "namespace" in manifest["metadata"]
        if group and not is_new_inside:
            yield group
            group = []
        group.append(manifest)
        if not is_new_inside:
            yield group
            group = []
    if group:
        yield group


def _send_new(
    manifests: Sequence[Manifest], deadline: Deadline, *, kube: Kube, cluster_id: int, owner: str
) -> list[AppliedObject]:
    """At once, and recorded together. Once something cannot be sent nothing more is begun; what was sent by then is
    recorded, and the first failure is raised.
    """
    has_failed = threading.Event()

    def tried(manifest: Manifest) -> AppliedObject | None:
        if has_failed.is_set():
            return None
        try:
            deadline.check()
            return _tried(kube, cluster_id, owner, manifest, None)
        except BaseException:
            has_failed.set()
            raise

    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(manifests))) as threads:
        tries = [threads.submit(tried, manifest) for manifest in manifests]
    failures = [error for one in tries if (error := one.exception()) is not None]
    rows = _record([row for one in tries if one.exception() is None and (row := one.result()) is not None])
    if failures:
        raise failures[0]
    return rows


def _tried(kube: Kube, cluster_id: int, owner: str, manifest: Manifest, row: AppliedObject | None) -> AppliedObject:
    """Sent; what came of it, not recorded yet. `row`: as it was before. No query: this runs in threads too."""
    try:
        answer = _write(kube, owner, manifest, row.uid if row is not None else "")
        is_repair = row is not None and bool(row.difference)
        if is_repair and (added := additions(answer.managed_fields)):
            answer = kube.take_out(answer, added)
    except _Foreign as foreign:
        return _outcome(cluster_id, owner, manifest, Result.FOREIGN, code="foreign", text=str(foreign))
    except Conflict as conflict:
        raise ClusterUnavailable(conflict.text) from conflict
    except ClusterRefused as refused:
        return _outcome(cluster_id, owner, manifest, Result.REFUSED, code=refused.reason, text=refused.text)
    result = Result.TERMINATING if answer.is_terminating else Result.APPLIED
    code = text = ""
    if result == Result.APPLIED and row is not None and row.difference:
        code, text = REPAIRED, words.repaired(row.difference)
    elif result == Result.APPLIED and row is not None and row.code == REPAIRED and _age(row) < STILL_REPAIRED:
        code, text = REPAIRED, row.text
    text = " ".join([text, *answer.warnings]).strip()
    return _outcome(cluster_id, owner, manifest, result, answer=answer, code=code, text=text)


def _key_of_row(row: AppliedObject) -> Key:
    return row.kind, row.namespace, row.name


def _is_to_send(row: AppliedObject, manifest: Manifest) -> bool:
    if row.manifest_hash != manifest_hash(manifest):
        return True
    age = _age(row)
    if row.result == Result.APPLIED:
        if row.difference:
            return True
        jitter = int(row.manifest_hash[:4], 16) / 0xFFFF
        return age > SEND_AGAIN_AFTER * (0.9 + 0.2 * jitter)
    return row.result == Result.TERMINATING or age > REFUSED_AGAIN_AFTER


def _age(row: AppliedObject) -> timedelta:
    return timezone.now() - row.sent_at


def _write(kube: Kube, owner: str, manifest: Manifest, uid: str) -> Answer:
    """Raises ClusterUnavailable where the API server is not done with the object: it changed under our hands, it has
    just gone, or several creations at once were counted against the namespace's quota.
    """
    if uid and (answer := _apply(kube, manifest, uid)):
        return answer
    # Gone; or made again by us, in a look that ended before it was written down; or by somebody else.
    found = _find(kube, manifest) if uid else None
    if found is None:
        try:
            return _create(kube, manifest)
        except Conflict as conflict:
            found = _find(kube, manifest)
            if found is None:
                # An apply without a uid would adopt whatever somebody makes in between.
                raise ClusterUnavailable(conflict.text) from conflict
    if found.uid != uid:
        if found.labels.get(OWNER_LABEL) != owner:
            raise _Foreign(_foreign_text(manifest))
        if answer := _apply(kube, manifest, kube.own_fields(found).uid):
            return answer
    raise ClusterUnavailable("The object was being changed by somebody else at this moment.")


def _create(kube: Kube, manifest: Manifest) -> Answer:
    """That the fields were applied is said at once where keys come and go, so that a plan shows what goes. Of other
    kinds every manifest has the same fields; it is said with their first change (see `_apply`), which spares a new
    namespace every second request.
    """
    answer = kube.create(manifest)
    return kube.own_fields(answer) if manifest["kind"] in LOSES_KEYS else answer


def _apply(kube: Kube, manifest: Manifest, uid: str) -> Answer | None:
    """None: not applied, the object of that uid is not there or is being changed."""
    try:
        answer = kube.apply(manifest, uid=uid)
        if leaves_fields(answer.managed_fields):
            kube.own_fields(answer)
            answer = kube.apply(manifest, uid=uid)
        return answer
    except Conflict:
        return None
    except ClusterRefused as refused:
        if refused.status == 422 and "metadata.uid" in refused.text:
            return None
        raise


def _find(kube: Kube, manifest: Manifest) -> Answer | None:
    kind, namespace, name = key_of(manifest)
    try:
        # The worker may not read Secrets; an apply that changes nothing, tried only, answers with the labels.
        found = kube.look(manifest) if kind == "Secret" else kube.get(kind, name=name, namespace=namespace)
    except NotFound:
        return None
    # Without a version it is what a look at an absent object would make.
    return found if found.resource_version else None


def _foreign_text(manifest: Manifest) -> str:
    kind, _namespace, name = key_of(manifest)
    return f"A {kind} named {name} exists that the portal did not make; it is left alone. Remove or rename it."


def _outcome(
    cluster_id: int,
    owner: str,
    manifest: Manifest,
    result: str,
    *,
    answer: Answer | None = None,
    code: str = "",
    text: str = "",
) -> AppliedObject:
    kind, namespace, name = key_of(manifest)
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


def _record(rows: Sequence[AppliedObject]) -> list[AppliedObject]:
    """As they are in the database then. One statement, without a transaction around it.

    A refused change leaves the object that is there as it was, still ours, and ours to delete.
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
