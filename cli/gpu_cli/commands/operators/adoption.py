"""Adoptions of existing namespaces: `gpu ops adoption`. Owners accept them on the page of their team."""

from __future__ import annotations

from typing import Annotated

import typer

from gpu_cli.api.client import Json
from gpu_cli.operators import adoption, adoptions
from gpu_cli.session import AsJson, session_of

of_adoptions = typer.Typer(
    help="Namespaces that existed before the portal: list, show, propose, undo.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
TeamName = Annotated[str, typer.Argument(help="Slug of the team of the adoption.")]


@of_adoptions.command("list")
def list_adoptions(context: typer.Context, json: AsJson = False) -> None:
    """List adoptions, newest first."""
    session = session_of(context)
    session.give(session.client.everything("adoptions"), adoptions)


@of_adoptions.command("show")
def show_adoption(context: typer.Context, team: TeamName, json: AsJson = False) -> None:
    """Show what the namespace contains, what becomes of it, and what its owner has to accept."""
    session = session_of(context)
    session.give(session.client.get("adoptions", team), adoption)


@of_adoptions.command()
def propose(
    context: typer.Context,
    namespace: Annotated[str, typer.Argument(help="Name of the namespace in the cluster.")],
    slug: Annotated[str, typer.Option(help="Short name of the new team.")],
    name: Annotated[str, typer.Option(help="Name of the new team.")],
    owner: Annotated[str, typer.Option(help="Email address of an account: the owner, who accepts the adoption.")],
    purpose: Annotated[str, typer.Option(help="Purpose of the team.")] = "",
    json: AsJson = False,
) -> None:
    """Create the team and ask its owner. Nothing changes in the cluster."""
    session = session_of(context)
    body: Json = {"namespace": namespace, "slug": slug, "name": name, "owner": owner, "purpose": purpose}
    session.give(session.client.call("POST", "adoptions", body=body).body, adoption)


@of_adoptions.command()
def undo(context: typer.Context, team: TeamName, json: AsJson = False) -> None:
    """Give the namespace back as it was."""
    session = session_of(context)
    session.give(session.client.call("POST", "adoptions", team, "undo").body, adoption)


def add_to(app: typer.Typer) -> None:
    app.add_typer(of_adoptions, name="adoption")
