"""Sign-in, notices and API tokens: `gpu login`, `gpu logout`, `gpu notices`, `gpu token`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gpu_cli import formatting
from gpu_cli.api import config
from gpu_cli.api.errors import Refused
from gpu_cli.session import AsJson, session_of

# The scopes that a person at a terminal needs. Other scopes must be named.
SCOPES = ["read", "launch", "request"]
UNAUTHORIZED = 401
# The API marks at most this many notices in one call.
IDS_AT_ONCE = 200
tokens = typer.Typer(help="Your tokens: list, create, revoke.", no_args_is_help=True, rich_markup_mode=None)


def login(
    context: typer.Context,
    address: Annotated[str, typer.Argument(help="Address of the portal. Default: prompt for it.")] = "",
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read the token from stdin. Other users could see an argument.")
    ] = False,
) -> None:
    """Save address and token for later calls. Only you can read the file."""
    session = session_of(context)
    environment = session.outside.environment
    named = address or session.portal or environment.get("GPU_PORTAL", "")
    if not named and not token_stdin:
        named = typer.prompt("Address of the portal", err=True)
    portal = config.validate_address(named)
    text = (
        sys.stdin.readline() if token_stdin else typer.prompt(f"Token, from {portal}/tokens", hide_input=True, err=True)
    )
    found = config.Portal(portal, config.validate_token(text))
    # The token is tested before it is saved, so that an invalid token does not replace a valid one.
    me = session.client_of(found).get("me")
    file = config.path(environment)
    config.save(file, found)
    session.say(f"{portal}: {formatting.me(me)} Saved in {file}.")


def logout(
    context: typer.Context,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Also revoke the saved token: it stops working everywhere, at once.")
    ] = False,
) -> None:
    """Delete the saved address and token from this machine."""
    session = session_of(context)
    file = config.path(session.outside.environment)
    kept = config.load(file)
    if kept is None:
        session.say("No token is saved on this machine.")
        return
    if revoke:
        # Before the file is deleted, so that a token that could not be revoked is not lost.
        try:
            session.client_of(kept).call("DELETE", "me", "token")
        except Refused as refused:
            if refused.status != UNAUTHORIZED:  # it does not work any more
                raise
    file.unlink(missing_ok=True)
    done = "The token is revoked." if revoke else "The token still works; 'gpu logout --revoke' revokes it as well."
    session.say(f"{kept.address}: signed out, {file} deleted. {done}")


@tokens.command("list")
def list_tokens(context: typer.Context, json: AsJson = False) -> None:
    """List your tokens, without their secrets."""
    session = session_of(context)
    session.give(session.client.everything("tokens"), formatting.tokens)


@tokens.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the token: its purpose.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, launch, request, decide or admin. Repeatable. Default: read, launch and request."),
    ] = None,
    days: Annotated[int, typer.Option(help="Days until it expires, 1 to 365.")] = 90,
    json: AsJson = False,
) -> None:
    """Create a token. stdout has only the new token, which is shown once."""
    session = session_of(context)
    asked = {"name": name, "scopes": scope or SCOPES, "expires_in_days": days}
    made = session.client.call("POST", "tokens", body=asked).body
    scopes, ends = ", ".join(made["scopes"]), formatting.when(made["expires_at"])
    session.say(f"Token {made['name']} ({made['prefix']}) with scopes {scopes} expires on {ends}.")
    session.give(made, lambda body: formatting.plain(body["token"]))


@tokens.command()
def revoke(
    context: typer.Context, prefix: Annotated[str, typer.Argument(help="Prefix as in 'gpu token list'.")]
) -> None:
    """Revoke a token. It stops working at once."""
    session = session_of(context)
    session.client.call("DELETE", "tokens", prefix)
    session.say(f"Token {prefix} is revoked.")


def notices(
    context: typer.Context,
    is_all: Annotated[bool, typer.Option("--all", help="Also notices that were read.")] = False,
    read: Annotated[bool, typer.Option("--read", help="Mark the listed notices as read.")] = False,
    json: AsJson = False,
) -> None:
    """List your unread notices, newest first."""
    session = session_of(context)
    found = session.client.everything("me", "notices", show="" if is_all else "unread")
    session.give(found, formatting.notices)
    unread = [one["id"] for one in found["items"] if one["read_at"] is None]
    for start in range(0, len(unread) if read else 0, IDS_AT_ONCE):
        session.client.call("POST", "me", "notices", "read", body={"ids": unread[start : start + IDS_AT_ONCE]})


def add_to(app: typer.Typer) -> None:
    app.command()(login)
    app.command()(logout)
    app.command()(notices)
    app.add_typer(tokens, name="token")
