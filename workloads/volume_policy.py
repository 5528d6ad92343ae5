"""Whether a new volume has room in what the team holds of storage. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from portal.errors import Refusal


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


def may_make(storage: StorageFacts | None, gib: int) -> Refusal | None:
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
