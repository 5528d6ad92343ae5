"""The watcher's part of the fault matrix, done in the test: what is in the cluster now goes through the real mirror."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.kinds import KINDS
from cluster.mirror import Mirror
from cluster.records import Seen
from cluster.watch import Note, What
from tests import mirrored
from tests.faults.scenes import PATHS, Scene, Stage


@dataclass(frozen=True)
class Eyes:
    mirror: Mirror
    stage: Stage
    scene: Scene

    def look(self) -> None:
        """Everything of the scene is listed once, and what has changed is told."""
        version = self.stage.admin.list_page("v1/namespaces")["metadata"]["resourceVersion"]
        found = self.stage.raw(self.scene)
        notes: list[tuple[Note, Seen | None]] = []
        for kind in (KINDS[name] for name in ("Namespace", *PATHS)):
            items = [raw for (name, _), raw in found.items() if name == kind.name]
            notes.append((Note(kind, What.LISTING, version), None))
            notes += [(Note(kind, What.SEEN, version), kind.seen(raw)) for raw in items]
            notes.append((Note(kind, What.LISTED, version), None))
        self.mirror.write(notes)
        self.mirror.tell()


def eyes_on(stage: Stage, scene: Scene) -> Eyes:
    """The nodes are seen, too, so that what can be lent is known."""
    found = Eyes(mirrored.hardware_seen(scene.row.cluster), stage, scene)
    found.look()
    return found
