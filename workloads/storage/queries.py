"""The volumes of a team: the run that uses each, its state in the cluster, and what this user may do with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes.capacity.queries import GIB
from catalog.models import GpuClass
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.manifests.site import DEFAULT_STORAGE, OfferedStorage
from cluster.models import AppliedObject
from cluster.reads import queries as mirror
from cluster.reads import queries as read_queries
from cluster.reads.labelled_nodes import labels_by_node
from cluster.reads.observed import AsOf, GenericObject
from cluster.reads.volume_place import VolumePlace
from portal.core.due import owner_label
from portal.core.errors import Refusal
from tenants.grants.queries import units_in_force
from tenants.models import Namespace
from workloads.core import policy
from workloads.models import Run, Volume, Workload
from workloads.storage import policy as storage_policy
from workloads.storage.claim_states import CLAIM, claim_states
from workloads.storage.policy import GRACE, StorageFacts, VolumeFacts, VolumeHolder


@dataclass(frozen=True)
class VolumeRow:
    """`state`: bound, pending, lost, terminating, missing, refused, unmade or unknown; `said`: an explanation, or "".
    `deletes_at`: None if not marked for deletion.
    """

    pk: int
    name: str
    size_gib: int
    storage: OfferedStorage
    created_at: datetime
    state: str
    said: str
    holder: VolumeHolder | None
    deletes_at: datetime | None
    may_delete: Refusal | None
    may_keep: Refusal | None
    may_take: Refusal | None


def deletes_at(volume: Volume) -> datetime | None:
    asked = volume.delete_requested_at
    return asked + GRACE if asked is not None else None


def undeleted(namespace: Namespace) -> QuerySet[Volume]:
    return Volume.objects.filter(namespace=namespace, gone_at=None).order_by("name")


def holders(namespace_id: int, *, name: str = "") -> dict[str, VolumeHolder]:
    """By name of the volume; for the given one, or for all. One query."""
    alive = Run.objects.filter(workload__namespace_id=namespace_id, ended_at=None).exclude(spec__claim="")
    if name:
        alive = alive.filter(spec__claim=name)
    rows = alive.select_related("workload", "requested_by").order_by("requested_at")
    found: dict[str, VolumeHolder] = {}
    for run in rows:
        first = found.get(run.spec["claim"])
        found[run.spec["claim"]] = (
            VolumeHolder(run.workload.name, run.requested_by.name, run.requested_at)
            if first is None
            else replace(first, others=first.others + 1)
        )
    return found


def volume_facts(volume: Volume, namespace: Namespace, gpu_class: GpuClass) -> VolumeFacts:
    """Facts about one volume for a run on the class, without those that depend on a user. Two queries, two more if the
    volume can be mounted on some nodes only.
    """
    holder = holders(namespace.pk, name=volume.name).get(volume.name)
    is_gone, is_shared = volume.gone_at is not None, volume.storage.is_shared
    found = VolumeFacts(volume.name, deletes_at(volume), is_gone, holder, is_shared=is_shared)
    claim = claim_states(namespace.cluster_id, namespace.name, [volume.name]).get(volume.name)
    if claim is None:
        return found
    is_away = _is_out_of_reach(namespace.cluster_id, claim.place, gpu_class)
    return replace(found, phase=claim.phase, out_of_reach=gpu_class.name if is_away else "", where=claim.place.words)


def _is_out_of_reach(cluster_id: int, place: VolumePlace, gpu_class: GpuClass) -> bool:
    """Whether the class has nodes, none of them can mount the volume, and no autoscaler adds others."""
    if not place.terms or gpu_class.max_units is not None or not mirror.is_known(cluster_id, "Node"):
        return False
    nodes = labels_by_node(cluster_id, [gpu_class.node_labels], place.keys)
    return bool(nodes) and not any(place.admits(name, labels) for name, labels in nodes.items())


def attach_refusal(volume: Volume | None, namespace: Namespace, gpu_class: GpuClass) -> Refusal | None:
    """For a run on the class that would start now. No query without a volume."""
    return None if volume is None else storage_policy.may_mount(volume_facts(volume, namespace, gpu_class))


def new_volume(namespace: Namespace, name: str, *, size_gib: int, storage_class: str) -> Volume:
    """Not saved. The worker creates its claim with the first run; until then the row is not due."""
    offered = namespace.cluster.site_profile.storage_classes
    storage = storage_policy.offered_storage(offered, storage_class) or DEFAULT_STORAGE
    return Volume(
        namespace=namespace,
        name=name,
        size_gib=size_gib,
        storage_class=storage.name,
        access_mode=storage.access_mode,
        due_at=None,
        observed_generation=1,
    )


def storage_refusal(
    volume: Volume | None, namespace: Namespace, name: str, *, storage_class: str, workers: int
) -> Refusal | None:
    """Whether this volume, or a new one of the class, is of a kind that so many workers can use."""
    offered = namespace.cluster.site_profile.storage_classes
    storage = storage_policy.offered_storage(offered, storage_class) if volume is None else volume.storage
    if storage is None:
        return storage_policy.may_choose_storage(offered, storage_class)
    return storage_policy.may_use_on_workers(name, storage, workers)


def volume_refusal(
    namespace: Namespace,
    name: str,
    size_gib: int,
    gpu_class: GpuClass,
    *,
    instead_of: str = "",
    storage_class: str = "",
    workers: int = 1,
) -> Refusal | None:
    """For a run that would start now, with a volume of that name or a new one of that size and class; `instead_of`: the
    workload whose own run ends first. One query besides those of `volume_facts`, three for a new volume.
    """
    known = undeleted(namespace).filter(name=name).first()
    if refusal := storage_refusal(known, namespace, name, storage_class=storage_class, workers=workers):
        return refusal
    if known is None:
        return storage_policy.may_create(storage_facts(namespace), size_gib)
    found = volume_facts(known, namespace, gpu_class)
    is_own = found.holder is not None and found.holder.workload == instead_of
    return storage_policy.may_mount(replace(found, holder=None) if is_own else found)


def with_ownership(rows: QuerySet[Volume], by: Actor) -> QuerySet[Volume]:
    """With `is_own`: only the actor has ever launched workloads with it."""
    uses = Workload.objects.filter(volume=OuterRef("pk"))
    mine = uses.filter(created_by_id=by.user_id or 0)
    others = uses.exclude(created_by_id=by.user_id or 0)
    return rows.annotate(is_own=Exists(mine) & ~Exists(others))


def is_own(volume: Volume, by: Actor) -> bool:
    row: Any = with_ownership(Volume.objects.filter(pk=volume.pk), by).get()
    return bool(row.is_own)


def volume_rows(
    by: Actor, namespace: Namespace, team: policy.TeamFacts, wanted: QuerySet[Volume] | None = None
) -> tuple[list[VolumeRow], AsOf]:
    """Returns the volumes by name: all of the team, or those given. Five queries, whatever their number."""
    rows: list[Any] = list(with_ownership(undeleted(namespace) if wanted is None else wanted, by))
    as_of = mirror.as_of(namespace.cluster_id, CLAIM)
    seen = {one.name: one for one in mirror.objects(namespace.cluster_id, kind=CLAIM, namespace=namespace.name)}
    sent = _sent(namespace, rows)
    users, now = holders(namespace.pk), timezone.now()
    found = []
    for row in rows:
        state, said = _state(row, seen.get(row.name), sent.get(owner_label(row)), as_of)
        one = VolumeFacts(
            row.name,
            deletes_at(row),
            holder=users.get(row.name),
            is_own=row.is_own,
            is_shared=row.storage.is_shared,
            phase=state,
        )
        found.append(
            VolumeRow(
                pk=row.pk,
                name=row.name,
                size_gib=row.size_gib,
                storage=row.storage,
                created_at=row.created_at,
                state=state,
                said=said,
                holder=one.holder,
                deletes_at=one.deletes_at,
                may_delete=storage_policy.may_delete(by, team, one),
                may_keep=storage_policy.may_keep(by, team, one, now),
                may_take=storage_policy.may_mount(one),
            )
        )
    return found, as_of


def _sent(namespace: Namespace, rows: Iterable[Volume]) -> dict[str, AppliedObject]:
    owners = [owner_label(row) for row in rows]
    found = AppliedObject.objects.filter(cluster_id=namespace.cluster_id, kind=CLAIM, owner__in=owners)
    return {one.owner: one for one in found}


def _state(volume: Volume, claim: GenericObject | None, sent: AppliedObject | None, as_of: AsOf) -> tuple[str, str]:
    if sent is not None and sent.result in (AppliedObject.Result.REFUSED, AppliedObject.Result.FOREIGN):
        return "refused", f"The cluster rejected it: {sent.text}"
    if as_of.at is None:
        return "unknown", "The cluster has not been read yet."
    if claim is not None:
        phase = "terminating" if claim.deleting_since is not None else str(claim.record["phase"]).lower()
        said = {
            "pending": "It is not provisioned yet. Some storage is provisioned when the first pod uses it.",
            "lost": "The storage behind it and all its data are lost. Contact an operator.",
            "terminating": "It is being deleted in the cluster. Runs with it cannot start.",
        }
        foreign = ""
        if sent is not None and sent.code == PREVIOUS_CLUSTER and claim.owner != owner_label(volume):
            foreign = (
                "It was restored after the cluster was replaced, and is not marked as the portal's: if you delete the "
                "volume here, its files stay in the cluster until an operator deletes them."
            )
        state = phase if phase in ("bound", *said) else "pending"
        return state, " ".join(filter(None, (said.get(phase, ""), foreign)))
    if sent is None:
        return "unmade", "It is created when its first run starts."
    if sent.sent_at >= as_of.at:
        return "pending", "It was just requested."
    if sent.code == PREVIOUS_CLUSTER:
        return "missing", (
            "The cluster was replaced by another one, and its files were not moved. Runs with it cannot start until an "
            "operator restores it. If that is not possible, delete it here to use its name again."
        )
    return "missing", (
        "Its claim was deleted in the cluster, not by the portal, and its data is lost. Runs with it cannot start. "
        "Delete it here to use its name again."
    )


def volume_of_run(workload: Workload, claim: str) -> Volume | None:
    """The volume of the run: the workload may have been declared with another volume since. One query in that case."""
    if workload.volume is not None and workload.volume.name == claim:
        return workload.volume
    rows = Volume.objects.filter(namespace=workload.namespace, name=claim, delete_requested_at=None)
    return rows.first()


def storage_facts(namespace: Namespace) -> StorageFacts | None:
    """Returns None if the cluster offers no storage class. One query in that case, otherwise five."""
    classes = GpuClass.objects.filter(cluster_id=namespace.cluster_id, interface=GpuClass.Interface.STORAGE)
    # The ResourceQuota also counts a retired class; no quota is granted for it any more.
    found = list(classes.exclude(life_cycle=GpuClass.LifeCycle.DRAFT))
    if not found:
        return None
    in_force = units_in_force(namespace.tenant_id, timezone.now())
    open_one = next((one for one in found if one.life_cycle != GpuClass.LifeCycle.RETIRED), found[0])
    granted = sum(in_force.get(one.pk, 0) for one in found)
    return StorageFacts(open_one.slug, open_one.name, granted, _used(namespace))


def _used(namespace: Namespace) -> int | None:
    """Sums claims in the cluster, whoever created them, and requested volumes that do not exist yet."""
    if not read_queries.is_known(namespace.cluster_id, "PersistentVolumeClaim"):
        return None
    claims = read_queries.objects(namespace.cluster_id, kind="PersistentVolumeClaim", namespace=namespace.name)
    there = {one.name for one in claims}
    volumes = Volume.objects.filter(namespace=namespace, delete_requested_at=None).values_list("name", "size_gib")
    coming = sum(size for name, size in volumes if name not in there)
    return -(-sum(int(one.record["asked_bytes"]) for one in claims) // GIB) + coming
