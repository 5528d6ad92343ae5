"""Prints the log of a run: what exists now, what was kept when the run ended, or all until it ends, also if the
connection is lost in between.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import httpx

from gpu_cli.api.client import Json, pauses, retry_after_s
from gpu_cli.api.errors import NotPossible, Refused, StreamTimeout, Unreachable
from gpu_cli.run_watch import Progress
from gpu_cli.session import Session

# How many printed lines are kept: a new connection starts with up to this many earlier lines.
REPEATED = 2000
# How many connections may fail in a row without a new line in between.
ATTEMPTS = 8
NO_LOG = "no_log"
# Colours are kept. Other control sequences are removed: they could move the cursor, rename the window or write to the
# clipboard.
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
CONTROL = re.compile(r"\x1b\[[0-9;:]*m|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def print_log(session: Session, team: str, name: str, worker: int | None = None, run: int | None = None) -> None:
    """Raises NotPossible or Refused with the reason if there is no log."""
    with session.client.stream(address(team, name), follow=0, worker=worker, run=run) as response:
        if retry_after_s(response) is not None:
            raise NotPossible(response.read().decode(errors="replace"))
        if is_kept(response):
            session.say(response.headers.get("X-Log-Note", ""))
        for line in lines(response.iter_bytes(), is_all=True):
            write(session, line)


def is_kept(response: httpx.Response) -> bool:
    """True for the text that was kept when a run, or an earlier attempt of it, ended."""
    return bool(response.headers.get("X-Log-Source") == "kept")


def follow_log(session: Session, found: Json, worker: int | None) -> None:
    """Follow the log of a workload until its run has ended and all lines are read."""
    team, name = found["team"], found["name"]
    printed: deque[str] = deque(maxlen=REPEATED)
    waits, failures = pauses(), 0
    with Progress(session) as progress:
        while True:
            # Read before the log: if the run ends after this, the log is read once more.
            is_over = found["run"] is None or found["run"]["ended_at"] is not None
            try:
                with session.client.stream(address(team, name), follow=int(not is_over), worker=worker) as response:
                    is_there = retry_after_s(response) is None and (is_over or not is_kept(response))
                    if is_there:
                        progress.end()
                        found_lines = lines(response.iter_bytes(), is_all=is_over)
                        for line in without_repeats(list(printed), found_lines):
                            failures, waits = 0, pauses()
                            printed.append(line)
                            write(session, line)
                    elif is_over and not printed:
                        raise NotPossible(response.read().decode(errors="replace"))
                if is_over:
                    return
                if not is_there:
                    progress.tell(found)
            except StreamTimeout:
                waits = pauses()
            except Unreachable as lost:
                failures += 1
                if failures >= ATTEMPTS:
                    raise
                session.say(f"{lost} Reconnecting.")
            except Refused as refused:
                # The run has ended and its pods are gone. What was printed is its log.
                if refused.code != NO_LOG or not printed:
                    raise
                return
            session.outside.sleep(next(waits))
            found = session.client.get("workloads", name, team=team)


def address(team: str, name: str) -> str:
    """The path of a log in the process `doors`, which keeps connections open. Slugs and names need no escaping."""
    return f"/live/logs/{team}/{name}"


def lines(parts: Iterable[bytes], *, is_all: bool) -> Iterator[str]:
    """Yields lines with their line ends. `is_all`: also yields a last line without a line end; otherwise a new
    connection repeats it.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for part in parts:
        *whole, rest = (rest + decoder.decode(part)).split("\n")
        yield from (f"{line}\n" for line in whole)
    if rest and is_all:
        yield rest


def without_repeats(printed: Sequence[str], found: Iterable[str]) -> Iterator[str]:
    """Yields the lines of `found` that were not printed yet. A new connection repeats earlier lines, and lines have no
    numbers.

    Skips the longest end of `printed` with which `found` starts. If there is none, yields all lines.
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
    """Writes the line unchanged, or to a terminal without control sequences other than colours."""
    if sys.stdout.isatty():
        line = CONTROL.sub(lambda found: found[0] if COLOUR.fullmatch(found[0]) else "", line)
    stream = sys.stderr if session.wants_json else sys.stdout
    stream.write(line)
    stream.flush()
