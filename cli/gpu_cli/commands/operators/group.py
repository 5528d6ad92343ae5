"""The group `gpu ops`, with the commands of all subjects."""

from __future__ import annotations

import typer

from gpu_cli.commands.operators import adoption, announce, maintenance, nodes, overview

operators = typer.Typer(
    help="For operators: health, nodes, queue, teams, maintenance, MIG layouts, measurements, adoptions, "
    "announcements, observe-only.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def add_to(app: typer.Typer) -> None:
    for subject in (overview, maintenance, nodes, adoption, announce):
        subject.add_to(operators)
    app.add_typer(operators, name="ops")
