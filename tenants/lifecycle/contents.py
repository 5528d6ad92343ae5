"""What runs, is queued and is stored in a namespace, as apps above pass it to pages and API of this one. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ContainedWorkload:
    """A workload with a run that has not ended. `since`: when the run was requested."""

    name: str
    kind: str
    gpu_class: str
    units: int
    who: str
    since: datetime


@dataclass(frozen=True)
class ContainedVolume:
    name: str
    size_gib: int


@dataclass(frozen=True)
class NamespaceContents:
    running: tuple[ContainedWorkload, ...] = ()
    waiting: tuple[ContainedWorkload, ...] = ()
    volumes: tuple[ContainedVolume, ...] = ()

    @property
    def gib(self) -> int:
        return sum(one.size_gib for one in self.volumes)


# By the id of the namespace.
ReadContents = Callable[[int], NamespaceContents]
