"""Which applied objects are missing in the cluster, which objects in it have no row, and which drift was met."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.apps import apps
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.expressions import RawSQL
from django.utils import timezone

from accounts.models import Event
from cluster.apply.messages import drift_record_sentence
from cluster.apply.status import Result
from cluster.apply.types import PREVIOUS_CLUSTER, LeftClaims
from cluster.manifests.metadata import TRIALS_OWNER
from cluster.mirror.records.kinds import KINDS
from cluster.models import AppliedObject, Cluster, MirrorJob, MirrorObject, MirrorPod, ObjectDrift
from cluster.reads import queries as mirror
from portal.core.sql import is_key

# An object sent just now is not in the mirror yet.
SEEN_WITHIN = timedelta(seconds=30)
DRIFT_SHOWN = timedelta(days=30)
# Rejected, in conflict with an object of another client, or changed by one. A Job has the result "terminating" only
# when the portal itself deletes it.
_ENDING_JOB = Q(kind="Job", result=Result.TERMINATING)
OUT_OF_SYNC = (~Q(difference={}) & ~_ENDING_JOB) | Q(result__in=[Result.REFUSED, Result.FOREIGN])
_WATCHED = [kind.name for kind in KINDS.values() if kind.table == "object" and kind.is_applied]


def missing_objects(cluster_id: int, *, owner: str = "") -> set[int]:
    """Returns primary keys of rows that count as applied but have no object in the cluster. Returns an empty set while
    the mirror is not current, because unknown is not missing. Two queries.
    """
    as_of = mirror.as_of(cluster_id)
    if not as_of.is_current or as_of.at is None:
        return set()
    seen = MirrorObject.objects.filter(
        cluster_id=cluster_id,
        kind=OuterRef("kind"),
        namespace=OuterRef("namespace"),
        name=OuterRef("name"),
        uid=OuterRef("uid"),
    )
    rows = AppliedObject.objects.filter(cluster_id=cluster_id, result=Result.APPLIED, kind__in=_WATCHED)
    rows = rows.filter(~Exists(seen), sent_at__lt=as_of.at - SEEN_WITHIN)
    return set((rows.filter(owner=owner) if owner else rows).values_list("pk", flat=True))


def out_of_sync_counts(cluster_id: int, owners: Collection[str]) -> dict[str, int]:
    """Objects out of sync of the rows with these labels, missing ones not counted. One query."""
    rows = AppliedObject.objects.filter(OUT_OF_SYNC, cluster_id=cluster_id, owner__in=list(owners))
    return dict(rows.values_list("owner").annotate(Count("pk")).order_by())


@dataclass(frozen=True)
class DriftRecord:
    """Changes of one kind that another writer made to one object. `is_repaired`: after the last of them."""

    kind: str
    namespace: str
    name: str
    sentence: str
    times: int
    first_at: datetime
    last_at: datetime
    is_repaired: bool


def drift_records(*, limit: int, cluster_id: int | None = None, owners: Collection[str] = ()) -> list[DriftRecord]:
    """Those of the last days, newest first: of one cluster, or of the rows with these labels. One query."""
    rows = ObjectDrift.objects.filter(last_at__gte=timezone.now() - DRIFT_SHOWN)
    rows = rows.filter(cluster_id=cluster_id) if cluster_id is not None else rows.filter(owner__in=owners)
    return [
        DriftRecord(
            kind=row.kind,
            namespace=row.namespace,
            name=row.name,
            sentence=drift_record_sentence(row.fields, row.manager, is_deletion=row.is_deletion),
            times=row.times,
            first_at=row.first_at,
            last_at=row.last_at,
            is_repaired=row.outcome == ObjectDrift.Outcome.REPAIRED,
        )
        for row in rows.order_by("-last_at", "pk")[:limit]
    ]


def repaired_count(cluster_id: int, *, since: datetime) -> int:
    """One query."""
    rows = ObjectDrift.objects.filter(cluster_id=cluster_id, last_at__gte=since)
    return rows.filter(outcome=ObjectDrift.Outcome.REPAIRED).count()


def orphaned_objects(cluster_id: int, *, limit: int) -> list[tuple[str, str, str]]:
    """Returns (kind, namespace, name) of objects whose owner label names no live row. Never deleted automatically."""
    gone = _without_row(mirror.owners_seen(cluster_id))
    if not gone:
        return []
    found: list[tuple[str, str, str]] = []
    for kind, model in (("Pod", MirrorPod), ("Job", MirrorJob)):
        rows = model.objects.filter(cluster_id=cluster_id, owner__in=gone).order_by("namespace", "name")
        found += [(kind, row.namespace, row.name) for row in rows[:limit]]
    others = MirrorObject.objects.filter(cluster_id=cluster_id, owner__in=gone).order_by("kind", "namespace", "name")
    found += [(row.kind, row.namespace, row.name) for row in others[:limit]]
    return found[:limit]


def _without_row(owners: Iterable[str]) -> list[str]:
    by_model: dict[str, dict[int, str]] = {}
    gone = []
    for owner in owners:
        model, _, pk = owner.rpartition(".")
        if owner == TRIALS_OWNER:
            continue
        if is_key(pk):
            by_model.setdefault(model, {})[int(pk)] = owner
        else:
            gone.append(owner)
    for name, labels in by_model.items():
        try:
            model_class = apps.get_model(name)
        except (LookupError, ValueError):
            gone += labels.values()
            continue
        # One parameter: Django and PostgreSQL would need longer for thousands of them than for the rows.
        known = RawSQL("SELECT unnest(%s::bigint[])", [list(labels)])
        # A model whose rows outlive the thing they represent defines IS_LIVE: the filter for rows that still count.
        rows = model_class._base_manager.filter(getattr(model_class, "IS_LIVE", Q()), pk__in=known)
        # Of thousands nearly always all are alive, and a number is read sooner than their keys.
        if rows.count() == len(labels):
            continue
        alive = set(rows.values_list("pk", flat=True))
        gone += [label for pk, label in labels.items() if pk not in alive]
    return gone


def left_claims(cluster_id: int, namespace: str) -> LeftClaims | None:
    """Of the namespace; None if there are none. Also those that were restored here: the others are still there. One
    query, four if there are some.
    """
    rows = AppliedObject.objects.filter(cluster_id=cluster_id, kind="PersistentVolumeClaim", namespace=namespace)
    found = list(rows.filter(code=PREVIOUS_CLUSTER).order_by("name").values_list("name", "sent_at"))
    if not found:
        return None
    label = f"{Cluster._meta.label_lower}.{cluster_id}"
    moves = list(Event.objects.filter(verb="cluster.replaced", row=label).order_by("pk").values_list("at", "before"))
    uids = [next((before.get("uid", "") for at, before in moves if at >= sent), "") for _name, sent in found]
    names = tuple(name for name, _sent in found)
    return LeftClaims(names, tuple(sorted({*uids} - {""})), _shown_claims(cluster_id, namespace, names))


def _shown_claims(cluster_id: int, namespace: str, names: Collection[str]) -> int | None:
    kind = "PersistentVolumeClaim"
    if not mirror.is_known(cluster_id, kind):
        return None
    return sum(one.name in names for one in mirror.objects(cluster_id, kind=kind, namespace=namespace))
