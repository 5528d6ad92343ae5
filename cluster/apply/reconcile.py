"""Reconciles a row's manifests with the cluster: sends what changed, is missing or drifted, and deletes what is
unwanted.

`server_side_apply` sends one object. Every object has an AppliedObject row that records what was sent and the outcome
(`applied_objects`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError
from django.utils import timezone

from cluster.apply import messages
from cluster.apply.applied_objects import Result, manifest_hash, outcome_row, record_outcomes, row_key, rows_of_owner
from cluster.apply.drift import record_drift
from cluster.apply.server_side_apply import ForeignObject, foreign_text, write_object
from cluster.apply.types import FAILED, NOT_REPAIRED, REPAIRED, ConvergeResult, ObjectKey, object_key
from cluster.client.errors import ClusterRefused, ClusterUnavailable, Conflict, NotFound
from cluster.client.foreign_fields import content, disowning_patch, removal_patch, unknown_fields_patch
from cluster.client.kube import Kube
from cluster.client.managed_fields import UNTRACKED, field_ownership
from cluster.client.types import ApiObject
from cluster.manifests.metadata import IDENTITY_LABEL, OWNER_LABEL, Manifest
from cluster.models import AppliedObject, Cluster
from cluster.observe_only.checked_writes import writes_are_checked
from portal.core.due import Deadline, TryLater

log = structlog.get_logger(__name__)
# A refused manifest is sent again only when it changes, or after this time.
REFUSED_AGAIN_AFTER = timedelta(seconds=300)
# A repaired object may be sent again in the same pass (a queue is created on hold, then opened): it stays `repaired`.
STILL_REPAIRED = timedelta(seconds=30)
# Every object is sent again about once a day, in case the watcher missed drift. The object's name sets the jitter.
SEND_AGAIN_AFTER = timedelta(hours=24)

# Parallel requests for one row.
PARALLEL_REQUESTS = 4


def converge(
    *,
    kube: Kube,
    cluster_id: int,
    owner: str,
    manifests: Sequence[Manifest],
    deadline: Deadline,
    delete_unwanted: bool = True,
    known: dict[ObjectKey, AppliedObject] | None = None,
) -> ConvergeResult:
    """Sends in the given order (the caller puts what lowers a limit first), then deletes. Raises ClusterUnavailable.

    New objects of one namespace are sent in parallel. `known`: the result of `rows_of_owner` in this pass, for a caller
    that sends in several calls; it is updated in place.
    """
    known = rows_of_owner(cluster_id, owner) if known is None else known
    sent: list[ObjectKey] = []
    for group in _groups(manifests, known):
        deadline.check()
        if len(group) > 1:
            rows = _send_new(group, deadline, kube=kube, cluster_id=cluster_id, owner=owner)
        else:
            row = known.get(object_key(group[0]))
            rows = [send(kube=kube, cluster_id=cluster_id, owner=owner, manifest=group[0], row=row)]
        known |= {row_key(row): row for row in rows}
        sent += [object_key(manifest) for manifest in group]
    deleted: list[ObjectKey] = []
    wanted = {object_key(manifest) for manifest in manifests}
    if delete_unwanted:
        for key in [key for key in known if key not in wanted]:
            deadline.check()
            delete_row(kube, known.pop(key))
            deleted.append(key)
    results: dict[str, list[ObjectKey]] = {}
    for key, row in known.items():
        results.setdefault(row.result, []).append(key)
    return ConvergeResult(
        tuple(sent),
        tuple(deleted),
        *(tuple(results.get(r, ())) for r in (Result.REFUSED, Result.FOREIGN, Result.TERMINATING)),
    )


def send(*, kube: Kube, cluster_id: int, owner: str, manifest: Manifest, row: AppliedObject | None) -> AppliedObject:
    """Sends one object in one or two requests and records the outcome. On ClusterUnavailable nothing is recorded."""
    found = _tried(kube, cluster_id, owner, manifest, row)
    made = record_outcomes([found])[0]
    if row is not None and row.difference and (made.result != Result.APPLIED or made.code == REPAIRED):
        record_drift(made, row.difference)
    if found.result != Result.REFUSED and row is not None and row.difference:
        # Drift that the watcher noted after the row was read is kept: the next pass, already requested, repairs it.
        AppliedObject.objects.filter(pk=made.pk, difference=row.difference).update(difference={})
        made.refresh_from_db(fields=["difference"])
    return made


def create_once(*, kube: Kube, cluster_id: int, owner: str, manifest: Manifest) -> AppliedObject:
    """Sends a POST and never an update: a Job's template is immutable and Kueue writes into it. A 409 for an object
    with our owner label and identity is success.

    Raises ClusterUnavailable, also for a 409 about an object that does not exist: it is being deleted, or several
    creations at once were counted against the namespace's quota.
    """
    kind, namespace, name = object_key(manifest)
    try:
        answer = kube.create(manifest)
    except Conflict as conflict:
        try:
            answer = kube.get(kind, name=name, namespace=namespace)
        except NotFound as gone:
            raise ClusterUnavailable(conflict.text) from gone
        wanted = {OWNER_LABEL: owner, IDENTITY_LABEL: manifest["metadata"]["labels"].get(IDENTITY_LABEL)}
        if any(answer.labels.get(label) != value for label, value in wanted.items()):
            text = foreign_text(manifest)
            return record_outcomes(
                [outcome_row(cluster_id, owner, manifest, Result.FOREIGN, code="foreign", text=text)]
            )[0]
    except ClusterRefused as refused:
        code, text = refused.reason, refused.text
        return record_outcomes([outcome_row(cluster_id, owner, manifest, Result.REFUSED, code=code, text=text)])[0]
    result = Result.TERMINATING if answer.is_terminating else Result.APPLIED
    text = " ".join(answer.warnings)
    return record_outcomes([outcome_row(cluster_id, owner, manifest, result, answer=answer, text=text)])[0]


def delete_owned(*, kube: Kube, cluster_id: int, owner: str, kinds: Iterable[str]) -> int:
    """Deletes every object of these kinds that the owner has, each by its uid. Returns their number."""
    rows = list(AppliedObject.objects.filter(cluster_id=cluster_id, owner=owner, kind__in=list(kinds)))
    for row in rows:
        delete_row(kube, row)
    return len(rows)


def delete_row(kube: Kube, row: AppliedObject) -> None:
    """Deletes the object, unless the portal did not create it, then the row. A missing object counts as deleted."""
    if row.result != Result.FOREIGN and row.uid:
        kube.delete(row.kind, name=row.name, namespace=row.namespace, uid=row.uid)
    row.delete()


def _groups(manifests: Sequence[Manifest], known: Mapping[ObjectKey, AppliedObject]) -> Iterator[list[Manifest]]:
    """Returns the manifests to send, in order. Consecutive new objects inside one namespace form one group."""
    group: list[Manifest] = []
    for manifest in manifests:
        row = known.get(object_key(manifest))
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
    """Sends a group in parallel and records all outcomes together. After the first failure no new request starts; what
    was sent until then is recorded, and the first failure is raised.
    """

    def tried(manifest: Manifest) -> AppliedObject:
        with writes_are_checked():
            return _tried(kube, cluster_id, owner, manifest, None)

    tries: list[Future[AppliedObject]] = []
    failures: list[BaseException] = []
    with ThreadPoolExecutor(max_workers=PARALLEL_REQUESTS) as threads:
        try:
            for manifest in manifests:
                running = [one for one in tries if not one.done()]
                if len(running) == PARALLEL_REQUESTS:
                    wait(running, return_when=FIRST_COMPLETED)
                if any(one.done() and one.exception() for one in tries):
                    break
                deadline.check()
                # Asked here, just before the request: a connection of each thread would take longer than what it sends.
                kube.check_write(manifest)
                tries.append(threads.submit(tried, manifest))
        except Exception as error:
            failures.append(error)
    failures = [found for one in tries if (found := one.exception()) is not None] + failures
    rows = record_outcomes([one.result() for one in tries if one.exception() is None])
    if failures:
        raise failures[0]
    return rows


def _tried(kube: Kube, cluster_id: int, owner: str, manifest: Manifest, row: AppliedObject | None) -> AppliedObject:
    """Sends the object; returns its unrecorded outcome. `row`: its state before. No query of its own: this also runs
    in threads.
    """
    try:
        if row is not None and row.difference.get("fields") == [UNTRACKED]:
            _remove_unknown_fields(kube, manifest)
        before = _live_content(kube, manifest, row)
        answer = _written(kube, owner, manifest, row)
    except ForeignObject as foreign:
        return outcome_row(cluster_id, owner, manifest, Result.FOREIGN, code="foreign", text=str(foreign))
    except Conflict as conflict:
        raise ClusterUnavailable(conflict.text) from conflict
    except ClusterRefused as refused:
        return outcome_row(cluster_id, owner, manifest, Result.REFUSED, code=refused.reason, text=refused.text)
    except (ClusterUnavailable, DatabaseError):
        # The database says whether the portal may write to the cluster.
        raise
    except Exception as error:
        # One object must not keep the others of its owner from being sent.
        log.exception("object_failed", kind=manifest["kind"], name=manifest["metadata"]["name"], owner=owner)
        text = messages.failure_sentence(error)
        return outcome_row(cluster_id, owner, manifest, Result.REFUSED, code=FAILED, text=text)
    result = Result.TERMINATING if answer.is_terminating else Result.APPLIED
    code = text = ""
    if result == Result.APPLIED and row is not None and row.difference:
        left = field_ownership(answer.managed_fields)
        fields = (UNTRACKED,) if left is None else left.fields
        if fields:
            text = messages.not_repaired_sentence(fields, left.manager if left else "")
            return outcome_row(cluster_id, owner, manifest, Result.REFUSED, answer=answer, code=NOT_REPAIRED, text=text)
        if content(answer.body) != before:
            code, text = REPAIRED, messages.repair_sentence(row.difference)
    elif result == Result.APPLIED and row is not None and row.code == REPAIRED and _age(row) < STILL_REPAIRED:
        code, text = REPAIRED, row.text
    text = " ".join([text, *answer.warnings]).strip()
    return outcome_row(cluster_id, owner, manifest, result, answer=answer, code=code, text=text)


def _written(kube: Kube, owner: str, manifest: Manifest, row: AppliedObject | None) -> ApiObject:
    """After a change of a quota its controller writes the status at once, often between our two requests: then both are
    sent again.
    """
    uid = row.uid if row is not None else ""
    answer = write_object(kube, owner, manifest, uid)
    if row is None or not row.difference:
        return answer
    try:
        return _without_additions(kube, answer)
    except Conflict:
        return _without_additions(kube, write_object(kube, owner, manifest, uid))


def _live_content(kube: Kube, manifest: Manifest, row: AppliedObject | None) -> dict[str, Any] | None:
    """Returns what the object is before a repair of fields that nobody owns any more, else None.

    Managed fields are dated to the second, so a second write of ours in one second, with fewer fields, looks like a
    removal by others. It was none if the apply then changes nothing. The worker may not read Secrets.
    """
    found = row.difference if row is not None else {}
    is_removal = found.get("fields", []) not in ([], [UNTRACKED]) and not found.get("manager")
    if not is_removal or manifest["kind"] == "Secret":
        return None
    kind, namespace, name = object_key(manifest)
    try:
        return content(kube.get(kind, name=name, namespace=namespace).body)
    except NotFound:
        return None


def _remove_unknown_fields(kube: Kube, manifest: Manifest) -> None:
    """For an object without managedFields. If the API server has dropped them, because it cannot track a list with the
    same key twice, it answers an apply with 500 until that list is gone.
    """
    kind, namespace, name = object_key(manifest)
    with suppress(NotFound):
        found = kube.get(kind, name=name, namespace=namespace)
        if patch := unknown_fields_patch(found.body, manifest):
            kube.take_out(found, patch)


def _without_additions(kube: Kube, answer: ApiObject) -> ApiObject:
    """Removes what others added. No request if they added nothing.

    The API server sets its defaults again when they are removed, and stores no empty list. A writer who sends a copy of
    the whole object owns both in managedFields, so they would count as drift for ever: then only their record is
    removed.
    """
    for _ in range(2):  # additions together with defaults, then only the defaults that are there again
        before = answer
        if patch := removal_patch(answer.body):
            answer = kube.take_out(answer, patch)
        if content(answer.body) == content(before.body):
            left = field_ownership(answer.managed_fields)
            return kube.take_out(answer, disowning_patch(answer.body)) if left and left.fields else answer
    return answer


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


def raise_if_not_applied(cluster: Cluster, owner: str, done: ConvergeResult, *, clock: datetime | None) -> None:
    """A row with a refused object, or a foreign one, is not in sync: the row says so, and is retried."""
    if not (done.refused or done.foreign):
        return
    results = [AppliedObject.Result.REFUSED, AppliedObject.Result.FOREIGN]
    rows = AppliedObject.objects.filter(cluster=cluster, owner=owner, result__in=results).order_by("kind", "name")
    told = "; ".join(f"{row.kind} {row.name}: {row.text}" for row in rows)
    raise TryLater(str(rows[0].result) if rows else "refused", told, clock=clock)
