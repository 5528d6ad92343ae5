"""Maintenance of the nodes of a run, for its people: `gpu maintenance`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpu_cli.api.client import Json
from gpu_cli.api.errors import NotPossible, UsageError
from gpu_cli.maintenances import of_run
from gpu_cli.session import AsJson, Name, Team, session_of

CHOICES = ("restart", "stop")


def maintenance(
    context: typer.Context,
    name: Name,
    at_drain: Annotated[
        str,
        typer.Option(
            "--at-drain", help="restart: it starts elsewhere (default). stop: it ends and does not start again."
        ),
    ] = "",
    number: Annotated[
        int | None, typer.Option("--maintenance", help="Number of the maintenance, if its nodes are in several.")
    ] = None,
    team: Team = "",
    json: AsJson = False,
) -> None:
    """Show maintenance of the nodes of a notebook or job, or choose with --at-drain what happens to it then."""
    session = session_of(context)
    if at_drain and at_drain not in CHOICES:
        raise UsageError(f"Enter for --at-drain one of {', '.join(CHOICES)}.")
    if number is not None and not at_drain:
        raise UsageError("--maintenance requires --at-drain.")
    found: Json = {}
    if number is None:
        found = session.client.get("workloads", name, "maintenance", team=team)
    if at_drain:
        chosen = number if number is not None else _only(found)
        path = ("workloads", name, "maintenance", str(chosen))
        found = session.client.call("PUT", *path, query={"team": team}, body={"at_drain": at_drain}).body
    session.give(found, of_run)


def _only(found: Json) -> int:
    numbers = [int(one["id"]) for one in found["maintenances"]]
    if not numbers:
        raise NotPossible("Its nodes are in no maintenance: there is nothing to choose.")
    if len(numbers) > 1:
        raise UsageError(f"Its nodes are in several maintenances: choose one of {', '.join(map(str, numbers))}.")
    return numbers[0]


def add_to(app: typer.Typer) -> None:
    app.command()(maintenance)
