"""Whether a new volume fits into the team's storage quota, and who may use or delete a volume, and when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from cluster.manifests.site import DEFAULT_STORAGE, READ_WRITE_MANY, OfferedStorage
from portal.core.errors import Refusal
from portal.ui.text import date_and_time
from workloads.core.observation import UNUSABLE_PHASES
from workloads.core.policy import LAUNCHERS, MANAGER, MEMBER, OWNER, TeamFacts

# From the request to delete a volume until its claim is deleted; the request can be cancelled until then.
GRACE = timedelta(hours=24)
SHOWN = 60


@dataclass(frozen=True)
class StorageFacts:
    """In GiB. `granted`: in effect now; `used`: what the team's volumes request, None if unknown. `slug`, `name`: of
    the class.
    """

    slug: str
    name: str
    granted: int
    used: int | None

    @property
    def left(self) -> int:
        return max(0, self.granted - (self.used or 0))


def may_create(storage: StorageFacts | None, gib: int) -> Refusal | None:
    """`storage` None: the cluster offers no storage class, and volumes are not limited. The cluster refuses a volume
    that does not fit; it does not queue the volume until another one is deleted.
    """
    if storage is None or gib <= storage.left:
        return None
    used = "unknown how much is used" if storage.used is None else f"{storage.used} GiB used"
    why = f"A volume of {gib} GiB does not fit"
    if gib <= storage.granted and storage.used is not None:
        why += ", and volumes are not queued until another one is deleted"
    text = (
        f"Your team has {storage.granted} GiB of storage quota ({used}). {why}. Request more, choose a smaller size, "
        "or attach an existing volume."
    )
    return Refusal("exceeds_storage", text, "volume_gib")


def offered_storage(offered: Sequence[OfferedStorage], name: str) -> OfferedStorage | None:
    """What a new volume gets; None if the site does not offer it. `offered`: of the site profile."""
    if not name:
        return offered[0] if offered else DEFAULT_STORAGE
    return next((one for one in offered if one.name == name), None)


def may_choose_storage(offered: Sequence[OfferedStorage], name: str) -> Refusal | None:
    if offered_storage(offered, name) is not None:
        return None
    names = [one.name for one in offered]
    way_out = f"Choose {' or '.join(names)}, or none for {names[0]}." if names else "Leave it empty."
    text = f"No storage class {name[:SHOWN]} is offered for volumes. {way_out}"
    return Refusal("unknown_storage_class", text, "volume_class")


def may_use_on_workers(name: str, storage: OfferedStorage, workers: int) -> Refusal | None:
    if workers == 1 or storage.is_shared:
        return None
    text = (
        f"The volume {name} can be attached to one node only, and {workers} workers can be on several nodes. Use 1 "
        f"worker, a volume of a storage class with {READ_WRITE_MANY}, or an object store instead of a volume."
    )
    return Refusal("volume_on_one_node", text, "volume")


@dataclass(frozen=True)
class VolumeHolder:
    """The first run that uses a volume, queued runs included, and how many others do."""

    workload: str
    person: str
    since: datetime
    others: int = 0

    @property
    def words(self) -> str:
        more = f", and {self.others} more run{'s' if self.others > 1 else ''}" if self.others else ""
        return f"{self.workload}, started by {self.person} on {date_and_time(self.since)}{more}"


@dataclass(frozen=True)
class VolumeFacts:
    """`deletes_at`: None if not marked for deletion. `is_own`: only the actor has ever launched workloads with it.

    `is_shared`: several runs may use it. `phase`: of its claim in the cluster, "" if unknown. `out_of_reach`: the class
    of the run, if none of its nodes can mount the volume, which is `where`.
    """

    name: str
    deletes_at: datetime | None = None
    is_gone: bool = False
    holder: VolumeHolder | None = None
    is_own: bool = False
    is_shared: bool = False
    phase: str = ""
    out_of_reach: str = ""
    where: str = ""


def may_attach(name: str, deletes_at: datetime | None, *, is_gone: bool = False) -> Refusal | None:
    """May it be attached to a workload? Allowed if another run uses it now: a declaration is for a later run."""
    if is_gone:
        text = f"The volume {name} was deleted. Choose another volume; use Change for an existing workload."
        return Refusal("volume_gone", text, "volume", 409)
    if deletes_at is not None:
        text = (
            f"The volume {name} is marked for deletion on {date_and_time(deletes_at)}. Cancel the deletion on your "
            "team's Volumes page, or choose another volume."
        )
        return Refusal("volume_going", text, "volume", 409)
    return None


def may_mount(volume: VolumeFacts) -> Refusal | None:
    """May a run that starts now mount it?"""
    if refusal := may_attach(volume.name, volume.deletes_at, is_gone=volume.is_gone):
        return refusal
    if volume.holder is not None and not volume.is_shared:
        text = (
            f"The volume {volume.name} is used by {volume.holder.words}. Only one run at a time can use it. Stop "
            f"{volume.holder.workload}, or choose another volume."
        )
        return Refusal("volume_in_use", text, "volume", 409)
    if why := UNUSABLE_PHASES.get(volume.phase):
        text = f"The volume {volume.name} {why}, so a run with it cannot start. Choose another volume, or none."
        return Refusal("volume_missing", text, "volume", 409)
    if volume.out_of_reach:
        text = (
            f"The volume {volume.name} can be mounted only {volume.where}, and no node of {volume.out_of_reach} is "
            "there, so the run could never start. Choose another volume, or a class with nodes there."
        )
        return Refusal("volume_elsewhere", text, "volume")
    return None


def may_delete(by: Actor, team: TeamFacts, volume: VolumeFacts) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    is_theirs = team.role == MEMBER and volume.is_own
    if not (by.operates or team.role in (OWNER, MANAGER) or is_theirs):
        text = f"Only owners and managers of {team.team}, operators, and a member who is its only user may delete it."
        return Refusal("not_allowed", text, status=403)
    if volume.holder is not None:
        text = f"The volume {volume.name} is used by {volume.holder.words}. Stop {volume.holder.workload} first."
        return Refusal("volume_in_use", text, status=409)
    return None


def may_keep(by: Actor, team: TeamFacts, volume: VolumeFacts, now: datetime) -> Refusal | None:
    """May the actor cancel its deletion? Every user who may launch in the team may."""
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    if not by.operates and team.role not in LAUNCHERS:
        return Refusal("not_allowed", f"Only members of {team.team} may cancel this deletion.", status=403)
    if volume.deletes_at is None:
        return Refusal("not_deleting", f"{volume.name} is not marked for deletion.", status=409)
    if volume.deletes_at <= now:
        text = f"The deletion of {volume.name} started on {date_and_time(volume.deletes_at)} and cannot be canceled."
        return Refusal("volume_going", text, status=409)
    return None
