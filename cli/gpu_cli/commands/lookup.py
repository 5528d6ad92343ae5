"""Commands that only read: classes, capacity, quota, usage, budget, idle runs, faults, a workload and its reason."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gpu_cli import formatting, operators
from gpu_cli.api.errors import UsageError
from gpu_cli.session import AsJson, Name, Team, session_of


def classes(context: typer.Context, json: AsJson = False) -> None:
    """List the classes that you may see, with their free units."""
    session = session_of(context)
    session.give(session.client.everything("classes"), formatting.classes)


def capacity(context: typer.Context, json: AsJson = False) -> None:
    """Show the units of each class. Allocatable, allocated to teams, used, queued, borrowed and free."""
    session = session_of(context)
    session.give(session.client.get("capacity"), formatting.capacity)


def quota(context: typer.Context, team: Team = "", json: AsJson = False) -> None:
    """Show the team's quota of each class and its use."""
    session = session_of(context)
    session.give(session.client.get("teams", session.team(team), "live"), formatting.quota)


def usage(
    context: typer.Context,
    team: Team = "",
    month: Annotated[str, typer.Option(help="Month like 2026-11. Default: the current month.")] = "",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the lines of the report as CSV.")] = False,
    json: AsJson = False,
) -> None:
    """Show who held which units of the team in a month, and what it cost."""
    session = session_of(context)
    if as_csv and json:
        raise UsageError("Use --csv or --json, not both.")
    if as_csv:
        text = session.client.get("teams", session.team(team), "usage-report.csv", month=month)
        # A file or a pipe gets it unchanged, a terminal no control characters.
        typer.echo(formatting.plain(text.replace("\r\n", "\n")) if sys.stdout.isatty() else text, nl=False)
    else:
        session.give(session.client.get("teams", session.team(team), "usage-report", month=month), formatting.usage)


def budget(context: typer.Context, team: Team = "", json: AsJson = False) -> None:
    """Show the team's budget of this month, what is used of it, and a forecast."""
    session = session_of(context)
    session.give(session.client.get("teams", session.team(team), "budget"), formatting.budget)


def idle(context: typer.Context, team: Team = "", json: AsJson = False) -> None:
    """List runs whose GPUs are idle now, longest first. Of your teams; of all teams for staff."""
    session = session_of(context)
    session.give(session.client.everything("idle-holders", team=team), formatting.idle)


def faults(
    context: typer.Context,
    team: Team = "",
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    json: AsJson = False,
) -> None:
    """List faults of GPUs, newest first. Of your teams' runs; of all GPUs for staff."""
    session = session_of(context)
    is_open = "" if everything else "true"
    session.give(session.client.everything("gpu-faults", team=team, open=is_open), formatting.faults)


def announcements(
    context: typer.Context,
    acknowledged: Annotated[
        int,
        typer.Option("--acknowledge", help="First acknowledge this number: your pages do not show it any more."),
    ] = 0,
    json: AsJson = False,
) -> None:
    """List the operators' announcements that are in force for you, newest first."""
    session = session_of(context)
    if acknowledged:
        # To say it again changes nothing.
        session.client.call("POST", "announcements", str(acknowledged), "acknowledge", is_repeatable=True)
    session.give(session.client.everything("announcements"), operators.own_announcements)


def status(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a notebook or job. Default: all of the team.")] = "",
    team: Team = "",
    json: AsJson = False,
) -> None:
    """Show one workload, or all of the team."""
    session = session_of(context)
    if name:
        session.give(session.client.get("workloads", name, team=team), formatting.workload)
    else:
        session.give(session.client.everything("workloads", team=team), formatting.workloads)


def why(context: typer.Context, name: Name, team: Team = "", json: AsJson = False) -> None:
    """Explain why a workload is queued or failed. Prints reason, numbers, start estimate and suggested actions."""
    session = session_of(context)
    session.give(session.client.get("workloads", name, team=team), formatting.why)


def open_page(
    context: typer.Context,
    name: Name,
    team: Team = "",
    is_printed_only: Annotated[bool, typer.Option("--print", help="Only print the address.")] = False,
) -> None:
    """Print and open the page of a workload. A notebook is opened from there."""
    session = session_of(context)
    url = str(session.client.get("workloads", name, team=team)["url"])
    typer.echo(formatting.plain(url))
    # No browser is opened if the output is not a terminal.
    if session.is_watched and not is_printed_only:
        session.outside.browse(url)


def add_to(app: typer.Typer) -> None:
    for command in (classes, capacity, quota, usage, budget, idle, faults, announcements, status, why):
        app.command()(command)
    app.command("open")(open_page)
