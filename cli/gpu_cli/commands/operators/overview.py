"""What operators look at: `gpu ops health`, `nodes`, `queue`, `teams`, and `gpu ops observe-only`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpu_cli import operators
from gpu_cli.api.client import Json
from gpu_cli.session import AsJson, session_of

GpuClass = Annotated[str, typer.Option("--class", help="Slug of a class.")]
of_observe_only = typer.Typer(
    help="Whether the portal only observes the cluster: show, begin, end.", no_args_is_help=True, rich_markup_mode=None
)
PATH = ("cluster", "observe-only")


def health(context: typer.Context, json: AsJson = False) -> None:
    """Show the state of the installation: what is wrong, and what to do."""
    session = session_of(context)
    session.give(session.client.get("operators", "health"), operators.health)


def nodes(
    context: typer.Context,
    words: Annotated[str, typer.Option("--search", help="A part of its name or of a label.")] = "",
    state: Annotated[str, typer.Option(help="not-ready, cordoned, gpu-fault or changing.")] = "",
    json: AsJson = False,
) -> None:
    """List nodes with their devices, their use, cordons and faults."""
    session = session_of(context)
    session.give(session.client.everything("operators", "nodes", q=words, state=state), operators.nodes)


def queue(
    context: typer.Context,
    gpu_class: GpuClass = "",
    team: Annotated[str, typer.Option(help="Slug of a team. Default: all teams.")] = "",
    reason: Annotated[str, typer.Option(help="A code, as `gpu why` prints it.")] = "",
    json: AsJson = False,
) -> None:
    """List all queued runs by class and team, in the order of the queue, with the reason."""
    session = session_of(context)
    found = session.client.everything("queue", gpu_class=gpu_class, team=team, reason=reason)
    session.give(found, operators.queue)


def teams(
    context: typer.Context,
    state: Annotated[str, typer.Option(help="State of the team, for example stuck.")] = "",
    gpu_class: GpuClass = "",
    idle_days: Annotated[int | None, typer.Option(help="No activity for at least so many days.")] = None,
    words: Annotated[str, typer.Option("--search", help="Words of the name or the slug.")] = "",
    sort: Annotated[str, typer.Option(help="team, created, activity or expiry.")] = "",
    json: AsJson = False,
) -> None:
    """List teams with state, what they hold and use of each class, and last activity."""
    session = session_of(context)
    query = {"q": words, "state": state, "gpu_class": gpu_class, "idle_days": idle_days, "sort": sort}
    session.give(session.client.everything("operators", "teams", **query), operators.teams)


@of_observe_only.command("show")
def show_observe_only(context: typer.Context, json: AsJson = False) -> None:
    """Show whether the portal only observes the cluster, what waits, and who else uses devices."""
    session = session_of(context)
    session.give(session.client.get(*PATH), operators.observe_only)


@of_observe_only.command()
def begin(context: typer.Context, json: AsJson = False) -> None:
    """From now on the portal writes nothing to the cluster."""
    _set(context, wanted=True)


@of_observe_only.command()
def end(context: typer.Context, json: AsJson = False) -> None:
    """The portal writes to the cluster again. What waited is due at once."""
    _set(context, wanted=False)


def _set(context: typer.Context, *, wanted: bool) -> None:
    session = session_of(context)
    body: Json = {"wanted": wanted}
    session.give(session.client.call("PUT", *PATH, body=body).body, operators.observe_only)


def add_to(app: typer.Typer) -> None:
    for command in (health, nodes, queue, teams):
        app.command()(command)
    app.add_typer(of_observe_only, name="observe-only")
