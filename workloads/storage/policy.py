"""Whether a new volume fits into the team's storage quota, and who may use or delete a volume, and when. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from portal.ui.text import date_and_time
from workloads.core.policy import LAUNCHERS, MANAGER, MEMBER, OWNER, TeamFacts

# From the wish to delete a volume until its claim is deleted; as long it can be kept after all.
GRACE = timedelta(hours=24)


@dataclass(frozen=True)
class StorageFacts:
    """In GiB. `granted`: in force now; `used`: what the team's volumes ask for, None when nobody knows. `slug`, `name`:
    of the class.
    """

    slug: str
    name: str
    granted: int
    used: int | None

    @property
    def left(self) -> int:
        return max(0, self.granted - (self.used or 0))


def may_create(storage: StorageFacts | None, gib: int) -> Refusal | None:
    """`storage` None: the cluster offers none, and volumes are not bounded. The cluster refuses at once a volume that
    has no room: it would not wait for another one to go.
    """
    if storage is None or gib <= storage.left:
        return None
    used = "how much of it is used is not known" if storage.used is None else f"{storage.used} of them used"
    if gib > storage.granted or storage.used is None:
        why = f"a volume of {gib} GiB has no room in it"
    else:
        why = f"a volume of {gib} GiB is refused at once, it does not wait until another one is deleted"
    text = (
        f"Your team holds {storage.granted} GiB of storage, {used}: {why}. Ask for more, choose a smaller size, or "
        "attach a volume that is there."
    )
    return Refusal("exceeds_storage", text, "volume_gib")


@dataclass(frozen=True)
class VolumeHolder:
    """The run that has a volume: a ReadWriteOnce claim is for one at a time, waiting ones included."""

    workload: str
    person: str
    since: datetime

    @property
    def words(self) -> str:
        return f"{self.workload}, which {self.person} started on {date_and_time(self.since)}"


@dataclass(frozen=True)
class VolumeFacts:
    """`deletes_at`: None while nobody asked for it. `is_own`: the actor alone ever launched something with it."""

    name: str
    deletes_at: datetime | None = None
    is_gone: bool = False
    holder: VolumeHolder | None = None
    is_own: bool = False


def may_attach(name: str, deletes_at: datetime | None, *, is_gone: bool = False) -> Refusal | None:
    """To a workload, whoever uses it now: what is declared is for a later run."""
    if is_gone:
        text = f"The volume {name} was deleted. Choose another one; what is there is changed under Change."
        return Refusal("volume_gone", text, "volume", 409)
    if deletes_at is not None:
        text = (
            f"The volume {name} is deleted on {date_and_time(deletes_at)}. Keep it on your team's page of volumes, or "
            "choose another one."
        )
        return Refusal("volume_going", text, "volume", 409)
    return None


def may_mount(volume: VolumeFacts) -> Refusal | None:
    """For a run that begins now."""
    if refusal := may_attach(volume.name, volume.deletes_at, is_gone=volume.is_gone):
        return refusal
    if volume.holder is not None:
        text = (
            f"The volume {volume.name} is used by {volume.holder.words}; one run at a time can have it. Stop "
            f"{volume.holder.workload}, or choose another volume."
        )
        return Refusal("volume_in_use", text, "volume", 409)
    return None


def may_delete(by: Actor, team: TeamFacts, volume: VolumeFacts) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    is_theirs = team.role == MEMBER and volume.is_own
    if not (by.operates or team.role in (OWNER, MANAGER) or is_theirs):
        text = (
            f"Only owners and managers of {team.team}, operators, and a member who alone has used it may delete a "
            "volume."
        )
        return Refusal("not_allowed", text, status=403)
    if volume.holder is not None:
        text = f"The volume {volume.name} is used by {volume.holder.words}. Stop {volume.holder.workload} first."
        return Refusal("volume_in_use", text, status=409)
    return None


def may_keep(by: Actor, team: TeamFacts, volume: VolumeFacts, now: datetime) -> Refusal | None:
    """After all: whoever may launch in the team."""
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    if not by.operates and team.role not in LAUNCHERS:
        return Refusal("not_allowed", f"Only members of {team.team} may keep its volumes.", status=403)
    if volume.deletes_at is None:
        return Refusal("not_deleting", f"Nobody asked to delete {volume.name}; it is kept anyway.", status=409)
    if volume.deletes_at <= now:
        text = f"It is too late: {volume.name} is being deleted since {date_and_time(volume.deletes_at)}."
        return Refusal("volume_going", text, status=409)
    return None
