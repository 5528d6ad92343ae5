"""Tries device classes and selectors on the cluster, and keeps what it says.

A pass creates the objects of a trial; a later one reads Kueue's answer and removes them. Their names follow from the
row, so that what a worker left behind that died in between is found again.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from catalog.models import DeviceTrial
from catalog.trials import objects
from catalog.trials.types import AGAIN_AFTER, ANSWER_WITHIN, RETRY_AFTER, DeviceRequest
from catalog.trials.verdicts import Answer, answer_of_kueue, words_of_api_server
from cluster.apply.reconcile import converge, raise_if_not_applied
from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.manifests.metadata import TRIALS_OWNER
from cluster.models import Cluster
from portal.core.due import Deadline

Verdict = DeviceTrial.Verdict
_LASTING = {Verdict.COUNTED, Verdict.REFUSED, Verdict.ACCEPTED}


def try_devices(
    cluster: Cluster, wanted: Collection[DeviceRequest], *, kube: Kube, deadline: Deadline, now: datetime
) -> None:
    """One step of every trial that is due. Raises TryLater, also when the namespace or its queue is refused."""
    rows = {row.key: row for row in DeviceTrial.objects.filter(cluster=cluster)}
    asked = {one.key: one for one in wanted}
    for key in rows.keys() - asked.keys():
        if rows[key].began_at is not None:
            _remove(kube, key)
        rows[key].delete()
    due = [one for key, one in sorted(asked.items()) if _is_due(rows.get(key), now)]
    if not due:
        return
    around = objects.surroundings(cluster.site_profile)
    if not cluster.has_kueue:
        around = around[:1]
    done = converge(
        kube=kube,
        cluster_id=cluster.pk,
        owner=TRIALS_OWNER,
        manifests=around,
        deadline=deadline,
        delete_unwanted=False,
    )
    raise_if_not_applied(cluster, TRIALS_OWNER, done, clock=None)
    missing = [one for one in due if one.key not in rows]
    DeviceTrial.objects.bulk_create(
        (
            DeviceTrial(cluster=cluster, key=one.key, device_class=one.device_class, selector=one.selector)
            for one in missing
        ),
        ignore_conflicts=True,
    )
    for one in due:
        deadline.check()
        with transaction.atomic():
            # Another worker that is at it reads the answer too.
            found = DeviceTrial.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
            row = found.select_related("cluster").filter(cluster=cluster, key=one.key).first()
            if row is None or not _is_due(row, now):
                continue
            if row.began_at is None:
                _begin(row, kube=kube, now=now)
            else:
                _read(row, kube=kube, now=now)


def _is_due(row: DeviceTrial | None, now: datetime) -> bool:
    if row is None or row.began_at is not None or row.tried_at is None:
        return True
    return now - row.tried_at >= (AGAIN_AFTER if row.verdict in _LASTING else RETRY_AFTER)


def _begin(row: DeviceTrial, *, kube: Kube, now: datetime) -> None:
    row.began_at = now
    row.save()
    name = _name(row.key)
    template = objects.claim_template(name, device_class=row.device_class, selector=row.selector)
    try:
        # The dry run tells about the selector also where nothing may be created.
        kube.create(template, dry_run=True)
        if not row.cluster.has_kueue:
            _conclude(row, Answer(Verdict.ACCEPTED), now=now)
            return
        kube.create(template)
        kube.create(objects.workload(name))
    except Conflict:
        return  # created by a worker that did not come back; the next pass reads it
    except ClusterRefused as refused:
        # In full: the exception's text is cut before the reason of a long selector.
        text = words_of_api_server(str(refused))
        verdict = Verdict.REFUSED if refused.status == 422 and "cel.expression" in str(refused) else Verdict.UNKNOWN
        _remove(kube, row.key)
        _conclude(row, Answer(verdict, text=text), now=now)


def _read(row: DeviceTrial, *, kube: Kube, now: datetime) -> None:
    assert row.began_at is not None
    answer: Answer | None
    try:
        made = kube.get("Workload", name=_name(row.key), namespace=objects.NAMESPACE)
    except NotFound:
        answer = Answer(Verdict.UNKNOWN, text="Its Workload was removed before Kueue had answered.")
    else:
        answer = answer_of_kueue(made.body.get("status") or {})
    if answer is None and now - row.began_at >= ANSWER_WITHIN:
        # What it counted before stays true until it is restarted.
        answer = Answer(Verdict(row.verdict), row.resource, "Kueue has not answered.")
    if answer is not None:
        _remove(kube, row.key)
        _conclude(row, answer, now=now)


def _conclude(row: DeviceTrial, answer: Answer, *, now: datetime) -> None:
    row.verdict, row.resource, row.text = answer.verdict, answer.resource, answer.text[:300]
    row.began_at, row.tried_at = None, now
    row.save()


def _remove(kube: Kube, key: str) -> None:
    for kind in ("Workload", "ResourceClaimTemplate"):
        kube.delete(kind, name=_name(key), namespace=objects.NAMESPACE)


def _name(key: str) -> str:
    return f"trial-{key[:16]}"
