"""Many teams, or pools: in each round one object of each is edited, then watcher and worker do their part.

An edit is right if the object is afterwards as before, or if its row says that it is not; in both cases without an
unexpected exception, and nothing else in the cluster changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from cluster.apply.types import FAILED
from cluster.client.managed_fields import is_drift
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.records.types import ObservedObject
from cluster.mirror.watch import NoteType, WatchNote
from cluster.mirror.writer import MirrorWriter
from cluster.models import AppliedObject
from devcluster.client.kube import Api, ApiError
from portal.core.due import owner_label
from tests.faults.random_edits.edits import Edit
from tests.faults.random_edits.schemas import Json
from tests.faults.scenes import PATHS, Key, Scene, Stage, let_time_pass, worded
from tests.support.rows import mirrored

# Turns of worker and watcher that one edit may cost: a queue is created on hold and opened later, and an object that
# is deleted may be there for a moment.
TURNS = 4
# The API server's status is 500 for an apply with lists that have elements without keys, or twice the same.
NOT_TYPED = (
    "failed to create typed patch object",
    "associative list with keys has an element that omits all key fields",
)


@dataclass
class Member:
    """A team or a pool. `key`, `edit`: its object that is edited in this round; `last`: also after the round."""

    scene: Scene
    mirror: MirrorWriter
    settled: dict[Key, Json]
    key: Key = ("", "")
    edit: Edit | None = None
    last: Edit | None = None


@dataclass
class Crowd:
    """`told`: how many edits were refused by the API server, changed nothing that counts, were repaired, or reported.
    `problems`: what went wrong, in words.
    """

    stage: Stage
    sort: str
    members: list[Member] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    made: int = 0

    @property
    def accepted(self) -> int:
        return sum(self.told.values()) - self.told["refused by the API server"]

    def grow(self, number: int) -> None:
        """Adds settled ones until there are so many. Reports who has changed since the end of the last round."""
        if self.members:
            found = self._objects()
            for member in list(self.members):
                if changed := _changed(member.settled, found[member.scene.row.pk]):
                    self.problems.append(f"{' '.join(member.key)} {member.last}: changed later: {changed}")
                    self.members.remove(member)
        while len(self.members) < number:
            self.made += 1
            scene = self.stage.scene(self.sort, f"edits{self.made}")
            mirror = next((one.mirror for one in self.members if self.sort == "namespace"), None)
            mirror = mirror or mirrored.hardware_seen(scene.row.cluster)
            self.stage.look(scene)
            self.stage.settle(scene)
            self.members.append(Member(scene, mirror, {}))
        self.watch()
        found = self._objects()
        for member in self.members:
            member.settled = member.settled or found[member.scene.row.pk]

    def example(self) -> dict[Key, Json]:
        """The objects of one of them, by kind and word; those of the others differ only in names and uids."""
        first = self.members[0].scene
        return {(kind, worded(first, name)): body for (kind, name), body in self._live()[first.row.pk].items()}

    def round(self, chosen: Sequence[tuple[Key, Edit]]) -> None:
        """Makes one edit of each. `chosen`: keys as in the example."""
        self._edit(chosen)
        self.watch()
        edited = [member for member in self.members if member.edit]
        noted = {member.scene.row.pk: self._row(member) for member in edited}
        for _ in range(TURNS):
            # All of them, before the first is worked on: the stage lets only one row be due.
            awake = [member for member in self.members if _is_due_or_failed(member.scene)]
            for member in awake:
                let_time_pass(member.scene)
                self.stage.look(member.scene)
            self.watch()
        found = self._objects()
        for member in list(self.members):
            for problem in self._judged(member, found[member.scene.row.pk], noted):
                self.problems.append(f"{' '.join(member.key)} {member.edit}: {problem}")
                if member in self.members:
                    self.members.remove(member)
            member.edit = None

    def watch(self) -> None:
        """The watcher lists every object of the crowd."""
        version = self._admin.list_page("v1/namespaces")["metadata"]["resourceVersion"]
        live = self._live()
        for mirror in {id(member.mirror): member.mirror for member in self.members}.values():
            seen = [
                one for member in self.members if member.mirror is mirror for one in live[member.scene.row.pk].items()
            ]
            notes: list[tuple[WatchNote, ObservedObject | None]] = []
            for kind in (KINDS[name] for name in PATHS):
                notes.append((WatchNote(kind, NoteType.LISTING, version), None))
                of_kind = [kind.seen(body) for (name, _), body in seen if name == kind.name]
                notes += [(WatchNote(kind, NoteType.SEEN, version), one) for one in of_kind]
                notes.append((WatchNote(kind, NoteType.LISTED, version), None))
            mirror.write(notes)
            mirror.tell()

    # ---- parts of a round -----------------------------------------------------------------------------------------

    @property
    def _admin(self) -> Api:
        return self.stage.admin

    def _edit(self, chosen: Sequence[tuple[Key, Edit]]) -> None:
        live = self._live()
        for member, (key, edit) in zip(self.members, chosen, strict=True):
            member.key = (key[0], next((name for name, word in member.scene.words if word == key[1]), key[1]))
            body = live[member.scene.row.pk][member.key]
            try:
                edit.send(self._admin, PATHS[member.key[0]], body)
            except ApiError as refused:
                if refused.status >= 500 and not any(words in str(refused) for words in NOT_TYPED):
                    raise
                self.told["refused by the API server"] += 1
                continue
            member.edit = member.last = edit

    def _judged(self, member: Member, found: dict[Key, Json], noted: dict[int, AppliedObject | None]) -> Iterator[str]:
        changed = _changed(member.settled, found)
        row = self._row(member)
        if failed := AppliedObject.objects.filter(owner=owner_label(member.scene.row), code=FAILED).first():
            yield f"unexpected: {failed.text}"
        elif member.edit is None:
            if changed:
                yield f"changed although nobody edited it: {changed}"
        elif changed and changed != [member.key]:
            yield f"others changed: {changed}"
        elif changed:
            if row is None or row.result == AppliedObject.Result.APPLIED or not member.scene.again().error_code:
                where = _differing(member.settled.get(member.key), found.get(member.key))
                yield f"neither repaired nor told ({row and (row.result, row.code, row.difference)}): {where}"
            else:
                self.told["reported"] += 1
                self.members.remove(member)
        else:
            before = noted[member.scene.row.pk]
            was_drift = before is None or bool(before.difference)
            self.told["repaired" if was_drift else "nothing that counts"] += 1
            if row is None or row.difference or row.result != AppliedObject.Result.APPLIED:
                yield f"repaired, but the row says {row and (row.result, row.code, row.text, row.difference)}"

    def _row(self, member: Member) -> AppliedObject | None:
        kind, name = member.key
        return AppliedObject.objects.filter(owner=owner_label(member.scene.row), kind=kind, name=name).first()

    # ---- state of the cluster -------------------------------------------------------------------------------------

    def _live(self) -> dict[int, dict[Key, Json]]:
        """Every object of these kinds with a name of the crowd or in a namespace of it."""
        of_name = {name: member.scene.row.pk for member in self.members for name in member.scene.names}
        found: dict[int, dict[Key, Json]] = {pk: {} for pk in of_name.values()}
        for kind, path in PATHS.items():
            for one in self._admin.list(path):
                name, place = one["metadata"]["name"], one["metadata"].get("namespace")
                # Kubernetes creates the account some time after the namespace.
                if (pk := of_name.get(place or name)) and (kind, name) != ("ServiceAccount", "default"):
                    version, _, _ = path.rpartition("/")
                    found[pk][(kind, name)] = {"apiVersion": version, "kind": kind, **one}
        return found

    def _objects(self) -> dict[int, dict[Key, Json]]:
        return {pk: {key: _meant(one) for key, one in objects.items()} for pk, objects in self._live().items()}


def _changed(was: dict[Key, Json], now: dict[Key, Json]) -> list[Key]:
    return sorted(key for key in {*was, *now} if was.get(key) != now.get(key))


def _is_due_or_failed(scene: Scene) -> bool:
    """What failed is tried again later, and `let_time_pass` is that."""
    row = scene.again()
    return bool(row.error_code) or (row.due_at is not None and row.due_at <= timezone.now())


def _differing(was: Any, now: Any, path: str = "") -> str:
    """The first place where they differ."""
    if isinstance(was, dict) and isinstance(now, dict):
        return next(
            (_differing(was.get(k), now.get(k), f"{path}/{k}") for k in {*was, *now} if was.get(k) != now.get(k)), ""
        )
    return f"{path} {was!r} is {now!r}"


def _meant(item: Json) -> Json:
    """The object without what only the API server writes, and without labels and annotations that do not count."""
    metadata = item["metadata"]
    kept = {"name": metadata["name"], "ownerReferences": metadata.get("ownerReferences") or []}
    for holder in ("labels", "annotations"):
        marks = metadata.get(holder) or {}
        kept[holder] = {key: value for key, value in marks.items() if is_drift(f"metadata.{holder}.{key}")}
    return {**{key: value for key, value in item.items() if key not in ("metadata", "status")}, "metadata": kept}
