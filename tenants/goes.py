"""What runs, waits and is stored in a namespace, as the apps above tell it to pages and API of this one. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Work:
    """A workload with a run that has not ended. `since`: when it was asked for."""

    name: str
    kind: str
    gpu_class: str
    units: int
    who: str
    since: datetime


@dataclass(frozen=True)
class Volume:
    name: str
    size_gib: int


@dataclass(frozen=True)
class Inside:
    running: tuple[Work, ...] = ()
    waiting: tuple[Work, ...] = ()
    volumes: tuple[Volume, ...] = ()

    @property
    def gib(self) -> int:
        return sum(one.size_gib for one in self.volumes)


# By the id of the namespace.
LookInside = Callable[[int], Inside]
