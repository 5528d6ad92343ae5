"""Files with the rows of one kind, written before the rows are deleted. Knows no database.

A bundle is NAME.jsonl.gz, one row a line, and NAME.json, its manifest. Both are written to the folder `pending` first,
and moved beside the bundles of before when the deletion is committed: a bundle in `pending` says that this is not
known, and `settle` decides.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

ROWS, MANIFEST = ".jsonl.gz", ".json"
PENDING = "pending"


class ArchiveUnclear(Exception):
    """A bundle is neither that of rows that are still there, nor of rows that were deleted. Its text names it."""


class Deletion(Enum):
    """What the database says about the rows of a pending bundle."""

    COMMITTED = "no row is there"
    NOT_COMMITTED = "all rows are there, as in the file"
    UNCLEAR = "some rows are there, or they differ"


@dataclass(frozen=True)
class ArchivedRow:
    """`text`: the row as JSON."""

    key: int
    at: datetime
    text: str


def write(folder: Path, kind: str, table: str, rows: Sequence[ArchivedRow]) -> str:
    """Writes a bundle to `pending` and reads it again. Returns its name. Raises OSError."""
    content = gzip.compress("".join(f"{row.text}\n" for row in rows).encode(), mtime=0)
    digest = hashlib.sha256(content).hexdigest()
    since, until = min(row.at for row in rows), max(row.at for row in rows)
    name = f"{kind}-{since:%Y%m%d}-{until:%Y%m%d}-{digest[:16]}"
    manifest = {
        "kind": kind,
        "table": table,
        "since": since.isoformat(),
        "until": until.isoformat(),
        "rows": len(rows),
        "file": name + ROWS,
        "sha256": digest,
    }
    pending = folder / kind / PENDING
    # Not the folder itself: a volume that is not mounted must not be replaced by the disk below it.
    for made in (pending.parent, pending):
        made.mkdir(exist_ok=True)
    _write(pending / (name + ROWS), content)
    _sync(pending)
    if read_rows(pending / (name + ROWS), digest) != [row.text for row in rows]:
        raise OSError(f"{pending / name}{ROWS} does not contain what was written to it.")
    _write(pending / (name + MANIFEST), json.dumps(manifest, indent=1).encode())
    for changed in (pending, pending.parent, folder):
        _sync(changed)
    return name


def read_rows(path: Path, sha256: str) -> list[str]:
    """Raises OSError if the content has another digest."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise OSError(f"{path} is damaged: its SHA-256 is not that of its manifest.")
    # Not splitlines: texts of people may contain other separators of lines.
    return gzip.decompress(content).decode().split("\n")[:-1]


def complete(folder: Path, kind: str, name: str) -> None:
    """After the deletion is committed. May be repeated, also by two processes at once."""
    for suffix in (ROWS, MANIFEST):
        _move(folder / kind / PENDING / (name + suffix), folder / kind / (name + suffix))
        # The manifest never moves before its rows, not even in a power failure.
        _sync(folder / kind)
        _sync(folder / kind / PENDING)


def settle(folder: Path, kind: str, deletion_of: Callable[[list[str]], Deletion]) -> None:
    """Completes or removes what a process that ended in the middle left. Call it while no other one writes.

    Raises ArchiveUnclear, and OSError for a damaged file.
    """
    pending = folder / kind / PENDING
    for name in _names(pending):
        rows, manifest = pending / (name + ROWS), pending / (name + MANIFEST)
        if not manifest.exists():  # nothing was deleted yet
            rows.unlink()
            continue
        if not rows.exists():  # it was completed up to the manifest
            complete(folder, kind, name)
            continue
        said = deletion_of(read_rows(rows, json.loads(manifest.read_text())["sha256"]))
        if said is Deletion.UNCLEAR:
            raise ArchiveUnclear(f"{rows}: {said.value} in the database. Compare them, and move the two files away.")
        if said is Deletion.COMMITTED:
            complete(folder, kind, name)
        else:
            # The manifest goes last: a file of rows alone is removed without a question.
            manifest.unlink()
            rows.unlink()


def _names(pending: Path) -> Iterator[str]:
    if not pending.is_dir():
        return
    for path in pending.glob("*.part"):
        path.unlink()
    for suffix in (MANIFEST, ROWS):
        yield from sorted(path.name.removesuffix(suffix) for path in pending.glob(f"*{suffix}"))


def _write(path: Path, content: bytes) -> None:
    """As a whole or not at all. Only the owner may read it: rows have addresses and texts of people."""
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _move(source: Path, target: Path) -> None:
    try:
        source.replace(target)
    except FileNotFoundError:
        if not target.exists():
            raise


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
