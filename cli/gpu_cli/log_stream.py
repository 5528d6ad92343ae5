"""A run's log as text: what exists now, or followed until the end, also when connections are lost."""

from __future__ import annotations

import codecs
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from gpu_cli.api.client import Json, pauses, retry_after_s
from gpu_cli.api.errors import StreamTimeout, Unreachable
from gpu_cli.run_watch import Progress
from gpu_cli.session import Session

# A new connection begins with so many lines from before.
REPEATED = 2000
# Tries without a line in between.
TRIES = 8
# Colours may pass; what moves the cursor, renames the window or writes to the clipboard may not.
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
CONTROL = re.compile(r"\x1b\[[0-9;:]*m|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def print_log(session: Session, tenant: str, name: str, worker: int | None = None) -> None:
    with session.client.stream(address(tenant, name), follow=0, worker=worker) as response:
        if retry_after_s(response) is not None:
            session.say(response.read().decode(errors="replace"))
            return
        for line in lines(response.iter_bytes(), is_all=True):
            write(session, line)


def follow_log(session: Session, found: Json, worker: int | None) -> None:
    """Of a workload, until its run has ended and nothing more comes."""
    tenant, name = found["tenant"], found["name"]
    printed: deque[str] = deque(maxlen=REPEATED)
    waits, failures = pauses(), 0
    with Progress(session) as progress:
        while True:
            # Known before the log is read: what ends meanwhile is read once more.
            is_over = found["run"] is None or found["run"]["ended_at"] is not None
            try:
                with session.client.stream(address(tenant, name), follow=int(not is_over), worker=worker) as response:
                    is_there = retry_after_s(response) is None
                    if is_there:
                        progress.end()
                        found_lines = lines(response.iter_bytes(), is_all=is_over)
                        for line in without_repeats(list(printed), found_lines):
                            failures, waits = 0, pauses()
                            printed.append(line)
                            write(session, line)
                    elif is_over and not printed:
                        session.say(response.read().decode(errors="replace"))
                if is_over:
                    return
                if not is_there:
                    progress.tell(found)
            except StreamTimeout:
                waits = pauses()
            except Unreachable as lost:
                failures += 1
                if failures >= TRIES:
                    raise
                session.say(f"{lost} Going on where it was.")
            session.outside.sleep(next(waits))
            found = session.client.get("workloads", name, tenant=tenant)


def address(tenant: str, name: str) -> str:
    """Doors' own, since a log stays open: names are plain words there."""
    return f"/live/logs/{tenant}/{name}"


def lines(parts: Iterable[bytes], *, is_all: bool) -> Iterator[str]:
    """With their ends. `is_all`: the last one is whole even if nothing ends it; else a new connection repeats it."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for part in parts:
        *whole, rest = (rest + decoder.decode(part)).split("\n")
        yield from (f"{line}\n" for line in whole)
    if rest and is_all:
        yield rest


def without_repeats(printed: Sequence[str], found: Iterable[str]) -> Iterator[str]:
    """What of `found` was not printed yet: a new connection begins with lines from before, of which none has a number.

    The longest end of `printed` that `found` begins with. All of it, where they have nothing in common.
    """
    starts = list(range(len(printed)))
    held: list[str] = []
    known = 0
    for line in found:
        if not starts:
            yield line
            continue
        held.append(line)
        count = len(held)
        starts = [start for start in starts if printed[start + count - 1] == line]
        if any(start + count == len(printed) for start in starts):
            known = count
        starts = [start for start in starts if start + count < len(printed)]
        if not starts:
            yield from held[known:]
    if starts:
        yield from held[known:]


def write(session: Session, line: str) -> None:
    """To a program as it is; to a terminal without what would do more than colour it."""
    if sys.stdout.isatty():
        line = CONTROL.sub(lambda found: found[0] if COLOUR.fullmatch(found[0]) else "", line)
    stream = sys.stderr if session.wants_json else sys.stdout
    stream.write(line)
    stream.flush()
