"""The log of a run: `gpu logs`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpu_cli.api.errors import UsageError
from gpu_cli.log_stream import follow_log, print_log
from gpu_cli.session import Name, Team, session_of

Worker = Annotated[
    int | None, typer.Option(help="Number of the worker. Default: the worker that failed, otherwise the first.")
]


def logs(
    context: typer.Context,
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the run ends.")] = False,
    worker: Worker = None,
    run: Annotated[int | None, typer.Option(help="Number of an ended run. Default: the last run.")] = None,
    team: Team = "",
) -> None:
    """Print the log of a run, also after it has ended. Exits with 6 if there is none."""
    if follow and run is not None:
        raise UsageError("--follow follows the last run. Leave out --run.")
    session = session_of(context)
    found = session.client.get("workloads", name, team=team)
    if follow:
        follow_log(session, found, worker)
    else:
        print_log(session, found["team"], name, worker, run)


def add_to(app: typer.Typer) -> None:
    app.command()(logs)
