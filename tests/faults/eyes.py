"""Does the watcher's part of the fault matrix in the test: the cluster's current objects go through the real mirror."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.mirror.records.kinds import KINDS
from cluster.mirror.records.types import ObservedObject
from cluster.mirror.watch import NoteType, WatchNote
from cluster.mirror.writer import MirrorWriter
from tests.faults.scenes import PATHS, Scene, Stage
from tests.support.rows import mirrored


@dataclass(frozen=True)
class Eyes:
    mirror: MirrorWriter
    stage: Stage
    scene: Scene

    def look(self) -> None:
        """Lists every object of the scene once and sends hints for what changed."""
        version = self.stage.admin.list_page("v1/namespaces")["metadata"]["resourceVersion"]
        found = self.stage.raw(self.scene)
        notes: list[tuple[WatchNote, ObservedObject | None]] = []
        for kind in (KINDS[name] for name in ("Namespace", *PATHS)):
            items = [raw for (name, _), raw in found.items() if name == kind.name]
            notes.append((WatchNote(kind, NoteType.LISTING, version), None))
            notes += [(WatchNote(kind, NoteType.SEEN, version), kind.seen(raw)) for raw in items]
            notes.append((WatchNote(kind, NoteType.LISTED, version), None))
        self.mirror.write(notes)
        self.mirror.tell()


def eyes_on(stage: Stage, scene: Scene) -> Eyes:
    """Also mirrors the nodes, so that the lendable capacity is known."""
    found = Eyes(mirrored.hardware_seen(scene.row.cluster), stage, scene)
    found.look()
    return found
