"""Events as they happen: `gpu watch`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from gpu_cli.api.client import address, pauses
from gpu_cli.api.errors import StreamTimeout, Unreachable
from gpu_cli.session import Session, Team, session_of

# How many connections may fail in a row without a sign of life in between.
ATTEMPTS = 8
After = Annotated[int | None, typer.Option(min=0, help="Id of the last event that you have. Default: begin now.")]


@dataclass(frozen=True)
class Item:
    """One item of the stream. Without `data` it only says up to which id the stream has come."""

    last: int
    data: str


def watch(context: typer.Context, team: Team = "", after: After = None) -> None:
    """Print events as they happen, each as one line of JSON, until you stop it. Reconnects after the last event."""
    follow_events(session_of(context), team, after)


def follow_events(session: Session, team: str, after: int | None) -> None:
    """Never returns. Raises Refused, or Unreachable after several attempts."""
    waits, failures = pauses(), 0
    while True:
        try:
            with session.client.stream(address("watch"), team=team or None, after=after) as response:
                for item in items(response.iter_lines()):
                    waits, failures = pauses(), 0
                    # Printed before it counts as seen: nothing is lost if the output is closed.
                    if item.data and (after is None or item.last > after):
                        typer.echo(item.data)
                    after = item.last
        except StreamTimeout:
            waits = pauses()
        except Unreachable as lost:
            failures += 1
            if failures >= ATTEMPTS:
                raise
            session.say(f"{lost} Reconnecting.")
        session.outside.sleep(next(waits))


def items(lines: Iterable[str]) -> Iterator[Item]:
    """The items of a stream of server-sent events. One that was cut off is left out."""
    last, data = "", ""
    for line in lines:
        name, _, value = line.partition(":")
        if name == "id":
            last = value.strip()
        elif name == "data":
            data = value.strip()
        elif not line and last.isdigit():
            yield Item(int(last), data)
            last, data = "", ""
        elif not line:
            data = ""


def add_to(app: typer.Typer) -> None:
    app.command()(watch)
