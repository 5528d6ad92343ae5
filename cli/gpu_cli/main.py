"""The command `gpu`: subcommands and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from gpu_cli.api.errors import CommandError
from gpu_cli.commands import account, logs, lookup, maintenance, quota, watch, workloads
from gpu_cli.commands.operators import group
from gpu_cli.session import Runtime, Session, session_of

# A traceback must not show the values of variables: one of them is the token.
app = typer.Typer(
    name="gpu",
    help="GPU portal: list classes, request quota, launch notebooks and jobs, wait for them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode=None,
)
lookup.add_to(app)
workloads.add_to(app)
maintenance.add_to(app)
logs.add_to(app)
watch.add_to(app)
account.add_to(app)
quota.add_to(app)
group.add_to(app)


@app.callback()
def options(
    context: typer.Context,
    portal: Annotated[
        str, typer.Option(help="Address of the portal. Default: GPU_PORTAL, otherwise the portal of 'gpu login'.")
    ] = "",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each API call to stderr.")] = False,
) -> None:
    session = session_of(context)
    session.portal, session.is_verbose = portal, verbose


def main(arguments: Sequence[str] | None = None, outside: Runtime | None = None) -> int:
    """Runs one command. Returns the exit code, see `api/exit_codes.py`."""
    session = Session(outside or Runtime())
    try:
        typer.main.get_command(app)(args=arguments, prog_name="gpu", obj=session)
    except CommandError as problem:
        session.tell(problem)
        return int(problem.exit)
    except SystemExit as over:
        return over.code if isinstance(over.code, int) else int(over.code is not None)
    return 0


def run() -> None:
    sys.exit(main())
