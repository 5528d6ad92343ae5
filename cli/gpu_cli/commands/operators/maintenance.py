"""Maintenance of nodes: `gpu ops maintenance`."""

from __future__ import annotations

import re
from datetime import time
from typing import Annotated

import typer

from gpu_cli.api.client import Json
from gpu_cli.api.errors import UsageError
from gpu_cli.maintenances import maintenance, maintenances, preview
from gpu_cli.moments import parse_moment
from gpu_cli.session import AsJson, session_of

DEVICES = re.compile(r"(?P<resource>[^=]+)=(?P<number>\d{1,9})")
of_nodes = typer.Typer(
    help="Maintenance of nodes: list, show, plan, confirm, cancel, release.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Number = Annotated[int, typer.Argument(help="Number of the maintenance.")]


@of_nodes.command("list")
def list_maintenances(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    json: AsJson = False,
) -> None:
    """List maintenance of nodes that is not over, newest first."""
    session = session_of(context)
    found = session.client.everything("maintenances", open="" if everything else "true")
    session.give(found, maintenances)


@of_nodes.command("show")
def show_maintenance(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Show one maintenance with the step of each node, who was told, and what it affects now."""
    session = session_of(context)
    session.give(session.client.get("maintenances", str(number)), maintenance)


@of_nodes.command()
def plan(
    context: typer.Context,
    nodes: Annotated[list[str], typer.Argument(help="Names of the nodes.")],
    kind: Annotated[str, typer.Option(help="repartition, driver, hardware or other.")],
    reason: Annotated[str, typer.Option(help="Everybody who runs on the nodes reads it.")],
    start: Annotated[str, typer.Option(help="The nodes are drained from then. Time or day (UTC).")],
    end: Annotated[str, typer.Option(help="When users expect the nodes back. Time or last day (UTC).")],
    hold: Annotated[str, typer.Option(help="Nothing new starts on the nodes from then. Default: now.")] = "",
    mig_config: Annotated[str, typer.Option(help="repartition: value of the label nvidia.com/mig.config.")] = "",
    plugin_config: Annotated[
        str, typer.Option(help="repartition: value of the label nvidia.com/device-plugin.config.")
    ] = "",
    expect: Annotated[
        list[str] | None, typer.Option(help="repartition: RESOURCE=NUMBER of each node afterwards. Repeatable.")
    ] = None,
    stuck_minutes: Annotated[int, typer.Option(help="Report a step as stuck after this time.")] = 30,
    is_dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say whether it can be planned, and what it would affect.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Plan a maintenance. Everybody who runs on the nodes is told."""
    session = session_of(context)
    body: Json = {
        "nodes": nodes,
        "kind": kind,
        "reason": reason,
        "starts_at": parse_moment(start, at=time.min),
        "ends_at": parse_moment(end, at=time.max),
        "mig_config": mig_config,
        "plugin_config": plugin_config,
        "expected": dict(map(parse_devices, expect or ())),
        "stuck_minutes": stuck_minutes,
    }
    if hold:
        body["holds_from"] = parse_moment(hold, at=time.min)
    if is_dry_run:
        found = session.client.call("POST", "maintenances", "preview", body=body, is_repeatable=True).body
        session.give(found, preview)
    else:
        session.give(session.client.call("POST", "maintenances", body=body).body, maintenance)


@of_nodes.command()
def confirm(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Say that the work by hand is done. The nodes are verified and opened."""
    _control(context, number, "confirm")


@of_nodes.command()
def cancel(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Cancel a maintenance. Changed nodes get their configuration of before, and are verified and opened."""
    _control(context, number, "cancel")


@of_nodes.command()
def release(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Open the nodes as they are, without verification."""
    _control(context, number, "release")


def _control(context: typer.Context, number: int, control: str) -> None:
    session = session_of(context)
    # To say it again changes nothing.
    answer = session.client.call("POST", "maintenances", str(number), control, is_repeatable=True)
    session.give(answer.body, maintenance)


def parse_devices(text: str) -> tuple[str, int]:
    found = DEVICES.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' is not RESOURCE=NUMBER, for example nvidia.com/mig-1g.10gb=28.")
    return found["resource"], int(found["number"])


def add_to(app: typer.Typer) -> None:
    app.add_typer(of_nodes, name="maintenance")
