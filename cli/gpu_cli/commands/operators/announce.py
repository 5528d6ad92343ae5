"""Announcements: `gpu ops announce`."""

from __future__ import annotations

from datetime import time
from typing import Annotated

import typer

from gpu_cli.api.client import Json, new_idempotency_key
from gpu_cli.moments import parse_moment
from gpu_cli.operators import announcement, announcements
from gpu_cli.session import AsJson, session_of

of_announcements = typer.Typer(
    help="Announcements on the pages of users: list, show, publish, change, withdraw.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Number = Annotated[int, typer.Argument(help="Number of the announcement.")]
Until = Annotated[str, typer.Option(help="Pages show it until then. Time or last day (UTC).")]
PATH = ("operators", "announcements")


@of_announcements.command("list")
def list_announcements(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    json: AsJson = False,
) -> None:
    """List announcements that are not over, newest first."""
    session = session_of(context)
    session.give(session.client.everything(*PATH, open="" if everything else "true"), announcements)


@of_announcements.command("show")
def show_announcement(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Show one announcement, and how many people acknowledged it."""
    session = session_of(context)
    session.give(session.client.get(*PATH, str(number)), announcement)


@of_announcements.command()
def publish(
    context: typer.Context,
    title: Annotated[str, typer.Argument(help="In one line.")],
    text: Annotated[str, typer.Option(help="The text itself. It cannot be changed afterwards.")],
    until: Until,
    since: Annotated[str, typer.Option("--from", help="Pages show it from then. Default: now.")] = "",
    severity: Annotated[str, typer.Option(help="information, warning or outage.")] = "information",
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="Only for users of this class. Repeatable.")
    ] = None,
    teams: Annotated[list[str] | None, typer.Option("--for-team", help="Only for this team. Repeatable.")] = None,
    wants_acknowledgement: Annotated[
        bool, typer.Option("--acknowledge", help="Ask each person to acknowledge it.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Publish an announcement to everybody, to users of classes, or to teams. They are notified when it begins."""
    session = session_of(context)
    body: Json = {
        "title": title,
        "body": text,
        "severity": severity,
        "audience": "classes" if classes else "teams" if teams else "everybody",
        "classes": classes or [],
        "teams": teams or [],
        "ends_at": parse_moment(until, at=time.max),
        "wants_acknowledgement": wants_acknowledgement,
    }
    if since:
        body["starts_at"] = parse_moment(since, at=time.min)
    made = session.client.call("POST", *PATH, body=body, key=new_idempotency_key()).body
    session.give(made, announcement)


@of_announcements.command()
def change(context: typer.Context, number: Number, until: Until, json: AsJson = False) -> None:
    """Change until when pages show it."""
    session = session_of(context)
    body: Json = {"ends_at": parse_moment(until, at=time.max)}
    # To say it again changes nothing.
    answer = session.client.call("PATCH", *PATH, str(number), body=body, is_repeatable=True)
    session.give(answer.body, announcement)


@of_announcements.command()
def withdraw(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Remove it from all pages at once."""
    session = session_of(context)
    session.give(session.client.call("POST", *PATH, str(number), "withdraw").body, announcement)


def add_to(app: typer.Typer) -> None:
    app.add_typer(of_announcements, name="announce")
