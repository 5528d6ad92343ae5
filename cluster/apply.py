"""Make the cluster hold a row's manifests: send what changed, is missing or drifted, delete what nobody wants.

First write of an object is POST, so that an object of that name which is not ours is reported and never adopted; later
writes are server-side apply with the uid that we were given, so that an object somebody deleted and made again is not
taken for ours. Every object has an AppliedObject row that says what was sent and what came of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now
from django.utils import timezone

from cluster import words
from cluster.kube import Answer, ClusterRefused, ClusterUnavailable, Conflict, Kube, NotFound
from cluster.models import AppliedObject
from cluster.ownership import additions
from portal.due import Deadline

OWNER_LABEL = "gpu-portal/owner"
# A refused manifest is not hammered: sent again when it changes, or after this long.
REFUSED_AGAIN_AFTER = timedelta(seconds=300)
# Code of an object that somebody had changed and that is as it was sent again; `text` says what it was.
REPAIRED = "repaired"
# What is repaired may be sent again by the same look (a queue is made on hold, then opened): it stays a repair.
STILL_REPAIRED = timedelta(seconds=30)
# Everything is sent again about once a day, in case the watcher missed a difference; jittered by the object's name.
SEND_AGAIN_AFTER = timedelta(hours=24)

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


def converge(
    *,
    kube: Kube,
    cluster_id: int,
    owner: str,
    manifests: Sequence[Manifest],
    deadline: Deadline,
    delete_unwanted: bool = True,
) -> Converged:
    """Send in the given order (the caller puts what lowers a limit first), then delete. Raises ClusterUnavailable."""
    known = {_key_of_row(row): row for row in AppliedObject.objects.filter(cluster_id=cluster_id, owner=owner)}
    sent: list[Key] = []
    for manifest in manifests:
        row = known.get(key_of(manifest))
        if row is not None and not _is_to_send(row, manifest):
            continue
        deadline.check()
        known[key_of(manifest)] = send(kube=kube, cluster_id=cluster_id, owner=owner, manifest=manifest, row=row)
        sent.append(key_of(manifest))
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


def send(*, kube: Kube, cluster_id: int, owner: str, manifest: Manifest, row: AppliedObject | None) -> AppliedObject:
    """One object, one or two requests; the outcome is recorded. Raises ClusterUnavailable, with nothing recorded."""
    try:
        answer = _write(kube, owner, manifest, row.uid if row is not None else "")
        is_repair = row is not None and bool(row.difference)
        if is_repair and (added := additions(answer.body["metadata"].get("managedFields") or [])):
            answer = kube.take_out(answer, added)
    except _Foreign as foreign:
        return _record(cluster_id, owner, manifest, Result.FOREIGN, code="foreign", text=str(foreign), row=row)
    except Conflict as conflict:
        raise ClusterUnavailable(conflict.text) from conflict
    except ClusterRefused as refused:
        return _record(cluster_id, owner, manifest, Result.REFUSED, code=refused.reason, text=refused.text, row=row)
    result = Result.TERMINATING if answer.is_terminating else Result.APPLIED
    code = text = ""
    if result == Result.APPLIED and row is not None and row.difference:
        code, text = REPAIRED, words.repaired(row.difference)
    elif result == Result.APPLIED and row is not None and row.code == REPAIRED and _age(row) < STILL_REPAIRED:
        code, text = REPAIRED, row.text
    text = " ".join([text, *answer.warnings]).strip()
    return _record(cluster_id, owner, manifest, result, answer=answer, code=code, text=text, row=row)


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
            return _record(cluster_id, owner, manifest, Result.FOREIGN, code="foreign", text=_foreign_text(manifest))
    except ClusterRefused as refused:
        return _record(cluster_id, owner, manifest, Result.REFUSED, code=refused.reason, text=refused.text)
    result = Result.TERMINATING if answer.is_terminating else Result.APPLIED
    return _record(cluster_id, owner, manifest, result, answer=answer, text=" ".join(answer.warnings))


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
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def key_of(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


class _Foreign(Exception):
    """An object of this name is not ours."""


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
            return kube.own_fields(kube.create(manifest))
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


def _apply(kube: Kube, manifest: Manifest, uid: str) -> Answer | None:
    """None: not applied, the object of that uid is not there or is being changed."""
    try:
        return kube.apply(manifest, uid=uid)
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


def _record(
    cluster_id: int,
    owner: str,
    manifest: Manifest,
    result: str,
    *,
    answer: Answer | None = None,
    code: str = "",
    text: str = "",
    row: AppliedObject | None = None,
) -> AppliedObject:
    """`row`: as it was read before the object was sent. A difference that was noted since then is kept, and repaired by
    the next look, which it has asked for.
    """
    kind, namespace, name = key_of(manifest)
    values: dict[str, Any] = {
        "owner": owner,
        "manifest_hash": manifest_hash(manifest),
        "sent_at": Now(),
        "result": result,
        "code": code[:60],
        "text": text[:300],
    }
    if result != Result.REFUSED:
        # A refused change leaves the object that is there as it was: still ours, and ours to delete.
        values["uid"] = answer.uid if answer else ""
        values["resource_version"] = answer.resource_version if answer else ""
    made, _created = AppliedObject.objects.update_or_create(
        cluster_id=cluster_id, kind=kind, namespace=namespace, name=name, defaults=values
    )
    if result != Result.REFUSED and row is not None and row.difference:
        AppliedObject.objects.filter(pk=made.pk, difference=row.difference).update(difference={})
        made.refresh_from_db(fields=["difference"])
    return made
