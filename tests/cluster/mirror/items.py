"""Objects of the API server as the mirror receives them."""

from __future__ import annotations

from typing import Any

from cluster.mirror.records.kinds import KINDS
from cluster.mirror.records.types import ObservedObject
from cluster.mirror.watch import NoteType, WatchNote

Raw = dict[str, Any]

Item = tuple[WatchNote, ObservedObject | None]


def item(what: NoteType, raw: Raw, kind: str = "Pod") -> Item:
    seen = KINDS[kind].seen(raw)
    return WatchNote(KINDS[kind], what, str(seen.resource_version)), seen


def seen(*raws: Raw, kind: str = "Pod") -> list[Item]:
    return [item(NoteType.SEEN, raw, kind) for raw in raws]


def removed(*raws: Raw, kind: str = "Pod") -> list[Item]:
    return [item(NoteType.REMOVED, raw, kind) for raw in raws]


def listed(version: int, *raws: Raw, kind: str = "Pod") -> list[Item]:
    begin = (WatchNote(KINDS[kind], NoteType.LISTING, str(version)), None)
    return [begin, *seen(*raws, kind=kind), (WatchNote(KINDS[kind], NoteType.LISTED, str(version)), None)]
