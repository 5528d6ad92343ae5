"""The volumes of a team: who uses each now, what the cluster shows of it, and what this person may do with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts.actor import Actor
from cluster import queries as mirror
from cluster.models import AppliedObject
from cluster.observed import AsOf, Object
from portal.due import owner_label
from portal.errors import Refusal
from tenants.models import Namespace
from workloads import policy, volume_policy
from workloads.models import Run, Volume, Workload
from workloads.queries.storage import storage_facts
from workloads.volume_policy import GRACE, Holder, VolumeFacts

CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True)
class VolumeRow:
    """`state`: bound, pending, lost, missing, refused, unmade or unknown; `said`: what that means, "" where the word
    says it all. `deletes_at`: None while nobody asked for it.
    """

    pk: int
    name: str
    size_gib: int
    created_at: datetime
    state: str
    said: str
    holder: Holder | None
    deletes_at: datetime | None
    may_delete: Refusal | None
    may_keep: Refusal | None
    may_take: Refusal | None


def deletes_at(volume: Volume) -> datetime | None:
    asked = volume.delete_requested_at
    return asked + GRACE if asked is not None else None


def there(namespace: Namespace) -> QuerySet[Volume]:
    return Volume.objects.filter(namespace=namespace, gone_at=None).order_by("name")


def holders(namespace_id: int, *, name: str = "") -> dict[str, Holder]:
    """By the volume's name; of that one, or of all. One query."""
    alive = Run.objects.filter(workload__namespace_id=namespace_id, ended_at=None).exclude(spec__claim="")
    if name:
        alive = alive.filter(spec__claim=name)
    rows = alive.select_related("workload", "requested_by").order_by("requested_at")
    found: dict[str, Holder] = {}
    for run in rows:
        holder = Holder(run.workload.name, run.requested_by.name, run.requested_at)
        found.setdefault(run.spec["claim"], holder)
    return found


def facts(volume: Volume) -> VolumeFacts:
    """Of one, without what depends on a person. One query."""
    holder = holders(volume.namespace_id, name=volume.name).get(volume.name)
    return VolumeFacts(volume.name, deletes_at(volume), volume.gone_at is not None, holder)


def may_take(volume: Volume | None) -> Refusal | None:
    """For a run that would begin now. No query without a volume, else one."""
    return None if volume is None else volume_policy.may_take(facts(volume))


def may_have(namespace: Namespace, name: str, size_gib: int, *, instead_of: str = "") -> Refusal | None:
    """For a run that would begin now, with a volume of that name, or a new one of that size; `instead_of`: the workload
    whose own run ends before. Two queries, three for a new one.
    """
    known = there(namespace).filter(name=name).first()
    if known is None:
        return volume_policy.may_make(storage_facts(namespace), size_gib)
    found = facts(known)
    is_own = found.holder is not None and found.holder.workload == instead_of
    return volume_policy.may_take(replace(found, holder=None) if is_own else found)


def used_by(rows: QuerySet[Volume], by: Actor) -> QuerySet[Volume]:
    """With `is_own`: the actor alone ever launched something with it."""
    uses = Workload.objects.filter(volume=OuterRef("pk"))
    mine = uses.filter(created_by_id=by.user_id or 0)
    others = uses.exclude(created_by_id=by.user_id or 0)
    return rows.annotate(is_own=Exists(mine) & ~Exists(others))


def is_own(volume: Volume, by: Actor) -> bool:
    row: Any = used_by(Volume.objects.filter(pk=volume.pk), by).get()
    return bool(row.is_own)


def volume_rows(
    by: Actor, namespace: Namespace, team: policy.TeamFacts, wanted: QuerySet[Volume] | None = None
) -> tuple[list[VolumeRow], AsOf]:
    """By name; all that are there, or those. Five queries, however many."""
    rows: list[Any] = list(used_by(there(namespace) if wanted is None else wanted, by))
    as_of = mirror.as_of(namespace.cluster_id, CLAIM)
    seen = {one.name: one for one in mirror.objects(namespace.cluster_id, kind=CLAIM, namespace=namespace.name)}
    sent = _sent(namespace, rows)
    users, now = holders(namespace.pk), timezone.now()
    found = []
    for row in rows:
        one = VolumeFacts(row.name, deletes_at(row), False, users.get(row.name), row.is_own)
        state, said = _state(row, seen.get(row.name), sent.get(owner_label(row)), as_of)
        found.append(
            VolumeRow(
                pk=row.pk,
                name=row.name,
                size_gib=row.size_gib,
                created_at=row.created_at,
                state=state,
                said=said,
                holder=one.holder,
                deletes_at=one.deletes_at,
                may_delete=volume_policy.may_delete(by, team, one),
                may_keep=volume_policy.may_keep(by, team, one, now),
                may_take=volume_policy.may_take(one),
            )
        )
    return found, as_of


def _sent(namespace: Namespace, rows: Iterable[Volume]) -> dict[str, AppliedObject]:
    owners = [owner_label(row) for row in rows]
    found = AppliedObject.objects.filter(cluster_id=namespace.cluster_id, kind=CLAIM, owner__in=owners)
    return {one.owner: one for one in found}


def _state(volume: Volume, claim: Object | None, sent: AppliedObject | None, as_of: AsOf) -> tuple[str, str]:
    if sent is not None and sent.result in (AppliedObject.Result.REFUSED, AppliedObject.Result.FOREIGN):
        return "refused", f"The cluster refused it: {sent.text}"
    if as_of.at is None:
        return "unknown", "The cluster was not read yet."
    if claim is not None:
        phase = str(claim.record["phase"]).lower()
        said = {
            "pending": "The storage has not provided it yet; some storage waits for the first pod.",
            "lost": "The storage behind it is gone, and what was on it. Tell the operators.",
        }
        return (phase, said.get(phase, "")) if phase in ("bound", "pending", "lost") else ("pending", "")
    if sent is None:
        return "unmade", "It is made when the first run with it begins."
    if sent.sent_at >= as_of.at:
        return "pending", "It was just asked for."
    return "missing", (
        "Its claim was deleted in the cluster, not by the portal, and what was on it with it. What starts with it "
        "waits in vain; delete it here to use its name again."
    )


def volume_of_run(workload: Workload, claim: str) -> Volume | None:
    """What the run was started with: the workload may have been declared with another volume since. A query where it
    was.
    """
    if workload.volume is not None and workload.volume.name == claim:
        return workload.volume
    rows = Volume.objects.filter(namespace=workload.namespace, name=claim, delete_requested_at=None)
    return rows.first()
