"""MIG layouts of sets of nodes, and measurements of nodes: `gpu ops mig-sets`, `gpu ops measurements`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpu_cli.api.client import Json
from gpu_cli.api.errors import UsageError
from gpu_cli.commands.operators.maintenance import parse_devices
from gpu_cli.node_reports import measurement, measurements, mig_plan, mig_sets
from gpu_cli.session import AsJson, session_of

of_sets = typer.Typer(
    help="MIG layouts of nodes with the same GPUs: list, plan.", no_args_is_help=True, rich_markup_mode=None
)
of_measurements = typer.Typer(
    help="Measurements of the interconnect of a node: list, record, withdraw.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Node = Annotated[str, typer.Argument(help="Name of the node.")]


@of_sets.command("list")
def list_sets(context: typer.Context, json: AsJson = False) -> None:
    """List nodes with the same GPUs and MIG strategy, and what they offer now."""
    session = session_of(context)
    session.give(session.client.get("mig-sets"), mig_sets)


@of_sets.command("plan")
def plan_set(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="SET", help="Name of the set, as `list` prints it.")],
    nodes: Annotated[list[str] | None, typer.Option("--node", help="Only this node. Repeatable.")] = None,
    want: Annotated[
        list[str] | None, typer.Option(help="PROFILE=NUMBER of instances. Repeatable. Default: as proposed.")
    ] = None,
    breaks_grants: Annotated[
        bool, typer.Option("--break-grants", help="Plan only for what is wanted, and say which grants are broken.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Plan layouts: what they serve and break, and the maintenances for them. Nothing is changed."""
    session = session_of(context)
    body: Json = {"set": name, "keeps_grants": not breaks_grants}
    if nodes:
        body["nodes"] = nodes
    if want:
        body["wanted"] = dict(map(parse_devices, want))
    session.give(session.client.call("POST", "mig-sets", "plan", body=body, is_repeatable=True).body, mig_plan)


@of_measurements.command("list")
def list_measurements(context: typer.Context, node: Node, json: AsJson = False) -> None:
    """List what was measured on a node, the latest first, also what was withdrawn."""
    session = session_of(context)
    session.give(session.client.everything("nodes", node, "measurements"), measurements)


@of_measurements.command("record")
def record_output(
    context: typer.Context,
    node: Node,
    file: Annotated[str, typer.Argument(help="Output of nvidia-smi topo -m, of all_reduce_perf, or both. -: stdin.")],
    day: Annotated[str, typer.Option("--on", help="Day of the measurement, YYYY-MM-DD. Default: today.")] = "",
    json: AsJson = False,
) -> None:
    """Record an output that was measured on the node."""
    session = session_of(context)
    body: Json = {"output": _read(file), "measured_on": day or None}
    session.give(session.client.call("POST", "nodes", node, "measurements", body=body).body, measurements)


@of_measurements.command("withdraw")
def withdraw_one(
    context: typer.Context,
    node: Node,
    number: Annotated[int, typer.Argument(help="Number of the measurement.")],
    reason: Annotated[str, typer.Option(help="It stays on the page of the node.")],
    json: AsJson = False,
) -> None:
    """Withdraw a wrong measurement. The one before it counts again."""
    session = session_of(context)
    path = ("nodes", node, "measurements", str(number), "withdraw")
    # To say it again changes nothing.
    answer = session.client.call("POST", *path, body={"because": reason}, is_repeatable=True)
    session.give(answer.body, measurement)


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise UsageError(f"Cannot read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not text.") from None


def add_to(app: typer.Typer) -> None:
    app.add_typer(of_sets, name="mig-sets")
    app.add_typer(of_measurements, name="measurements")
