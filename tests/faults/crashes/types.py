"""An operation, the place where it happens, and one crash point of it. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from cluster.client.kube import Kube
from devcluster.client.kube import Api

Part = Literal["call", "work"]
Moment = Literal["before", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "after")


@dataclass(frozen=True)
class Place:
    """One case: `name` is in the names of all its objects. `known`: what its preparation made, as JSON."""

    name: str
    kubeconfig: str
    directory: str
    known: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Ground:
    """What a test prepares and observes with. `call` and `work` run undisturbed: the call of the named operation, and
    one pass of the workers.
    """

    admin: Api
    kube: Kube
    call: Callable[[str, Place], None]
    work: Callable[[Place], None]


@dataclass(frozen=True)
class Operation:
    """`prepare`: rows and objects of before. `call`: what a person does, or a task that is not of a due row; it runs in
    the process that is killed, and is repeated by whoever got no answer. `world`: what happens between two passes of
    the workers, done by others. `more`: state besides rows and the team's objects.
    """

    prepare: Callable[[Ground, Place], dict[str, Any]]
    call: Callable[[Place], None]
    is_done: Callable[[Ground, Place], bool]
    world: Callable[[Ground, Place], None]
    more: Callable[[Ground, Place], Any] = lambda ground, place: None
    end: Callable[[Ground, Place], None] = lambda ground, place: None


@dataclass(frozen=True, order=True)
class Write:
    """The `nth` write with this label in one operation, in the order of the recording."""

    part: Part
    label: str
    nth: int

    def __str__(self) -> str:
        return f"{self.part}: {self.label} #{self.nth}"
