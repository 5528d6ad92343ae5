"""Commands that only read: classes, capacity, quota, the status of a workload and its reason."""

from __future__ import annotations

from typing import Annotated

import typer

from gpu_cli import formatting
from gpu_cli.session import AsJson, Name, Tenant, session_of


def classes(context: typer.Context, json: AsJson = False) -> None:
    """The classes that you may know of, and what is free of each."""
    session = session_of(context)
    session.give(session.client.everything("classes"), formatting.classes)


def capacity(context: typer.Context, json: AsJson = False) -> None:
    """Units of each class: there, promised, used, queued, borrowed, free."""
    session = session_of(context)
    session.give(session.client.get("capacity"), formatting.capacity)


def quota(context: typer.Context, tenant: Tenant = "", json: AsJson = False) -> None:
    """What the team holds of each class, and what it uses of that."""
    session = session_of(context)
    session.give(session.client.get("teams", session.team(tenant), "live"), formatting.quota)


def status(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Left out: everything of the team.")] = "",
    tenant: Tenant = "",
    json: AsJson = False,
) -> None:
    """How it is doing: one notebook or job, or all of the team."""
    session = session_of(context)
    if name:
        session.give(session.client.get("workloads", name, tenant=tenant), formatting.workload)
    else:
        session.give(session.client.everything("workloads", tenant=tenant), formatting.workloads)


def why(context: typer.Context, name: Name, tenant: Tenant = "", json: AsJson = False) -> None:
    """Why it waits, or failed: the sentence, the numbers behind it, when it may start, what would help."""
    session = session_of(context)
    session.give(session.client.get("workloads", name, tenant=tenant), formatting.why)


def open_page(
    context: typer.Context,
    name: Name,
    tenant: Tenant = "",
    is_printed_only: Annotated[bool, typer.Option("--print", help="Only print its address.")] = False,
) -> None:
    """The page of a notebook or job, from where a notebook opens: printed, and shown by the browser."""
    session = session_of(context)
    url = str(session.client.get("workloads", name, tenant=tenant)["url"])
    typer.echo(formatting.plain(url))
    # Whoever reads it from a pipe has no browser to look at.
    if session.is_watched and not is_printed_only:
        session.outside.browse(url)


def add_to(app: typer.Typer) -> None:
    for command in (classes, capacity, quota, status, why):
        app.command()(command)
    app.command("open")(open_page)
