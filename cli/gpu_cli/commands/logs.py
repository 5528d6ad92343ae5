"""The log of a run: `gpu logs`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpu_cli.log_stream import follow_log, print_log
from gpu_cli.session import Name, Tenant, session_of

Worker = Annotated[int | None, typer.Option(help="Of a job with several. Default: the one that failed, or the first.")]


def logs(
    context: typer.Context,
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    worker: Worker = None,
    tenant: Tenant = "",
) -> None:
    """The log of its last run."""
    session = session_of(context)
    found = session.client.get("workloads", name, tenant=tenant)
    if follow:
        follow_log(session, found, worker)
    else:
        print_log(session, found["tenant"], name, worker)


def add_to(app: typer.Typer) -> None:
    app.command()(logs)
