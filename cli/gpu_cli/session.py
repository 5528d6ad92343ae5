"""One call of `gpu`: console, configuration, API client, and output for people or programs."""

from __future__ import annotations

import json
import os
import sys
import time
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TextIO

import httpx
import typer
from rich.console import Console, RenderableType
from rich.status import Status

from gpu_cli import formatting
from gpu_cli.api import config
from gpu_cli.api.client import Client
from gpu_cli.api.errors import WHICH_TEAM, CommandError, NotPossible, Refused, UsageError

Name = Annotated[str, typer.Argument(help="Name of a notebook or job.")]


# Width of tables if the output is not a terminal.
UNBOUNDED = 10_000
# What to add to a command, by the code of the refusal.
OPTIONS_THAT_ANSWER = {
    WHICH_TEAM: "Use --team or set GPU_TEAM.",
    "checkpoints_not_confirmed": "Use --checkpoints to confirm it.",
    "interruption_not_accepted": "Use --accept-interruption to accept it.",
}


@dataclass(frozen=True)
class Runtime:
    """What tests replace. `transport`: None means the network."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    transport: httpx.BaseTransport | None = None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    browse: Callable[[str], object] = webbrowser.open


class Session:
    """Prints results to stdout, as a table or as the API's own JSON. Prints everything else to stderr."""

    def __init__(self, outside: Runtime) -> None:
        self.outside = outside
        self.portal = ""
        self.wants_json = False
        self.is_verbose = False
        self._client: Client | None = None
        # All messages use one console, so that a new message appears above the line that is being updated.
        self._told = console(sys.stderr)

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = self.client_of(config.resolve(self.outside.environment, portal=self.portal))
        return self._client

    def client_of(self, portal: config.Portal) -> Client:
        outside = self.outside
        return Client(
            portal,
            transport=outside.transport,
            now=outside.now,
            sleep=outside.sleep,
            say=self.say,
            trace=self.say if self.is_verbose else lambda _text: None,
        )

    def team(self, team: str) -> str:
        """Returns the team for a path that contains it. Calls for workloads need no team, because the portal finds
        it.
        """
        if team:
            return team
        teams = self.client.get("me")["teams"]
        if not teams:
            raise NotPossible("You are in no team. Ask for one on the page of the portal.")
        if len(teams) > 1:
            raise UsageError(f"Select a team with --team or GPU_TEAM. Your teams: {', '.join(teams[:9])}.")
        return str(teams[0])

    # ---- output --------------------------------------------------------------------------------------------------

    @property
    def is_watched(self) -> bool:
        """Whether a person sees the output in a terminal, so that a line may be updated."""
        return sys.stdout.isatty() and sys.stderr.isatty()

    def give(self, body: Any, shown: Callable[[Any], RenderableType]) -> None:
        if self.wants_json:
            typer.echo(json.dumps(body, indent=2))
        else:
            console(sys.stdout).print(shown(body))

    def say(self, text: str) -> None:
        self._told.print(formatting.plain(text))

    def spinner(self, text: str) -> Status:
        return self._told.status(formatting.plain(text))

    def tell(self, problem: CommandError) -> None:
        if self.wants_json and isinstance(problem, Refused):
            typer.echo(json.dumps(problem.body, indent=2))
        self.say(str(problem))
        if isinstance(problem, Refused) and (option := OPTIONS_THAT_ANSWER.get(problem.code)):
            self.say(option)


def console(stream: TextIO) -> Console:
    """Returns a new console for the stream at each call, because tests replace the streams. Texts of other people are
    never interpreted as markup.
    """
    width = None if stream.isatty() else UNBOUNDED
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


# ---- options of several commands -----------------------------------------------------------------------------------


def session_of(context: typer.Context) -> Session:
    session: Session = context.find_root().obj
    return session


def _wants_json(context: typer.Context, given: bool) -> bool:
    # Stored in the session, because an error may occur before the command has any output.
    if given:
        session_of(context).wants_json = True
    return given


AsJson = Annotated[bool, typer.Option("--json", callback=_wants_json, help="Print the API response as JSON to stdout.")]
Team = Annotated[
    str, typer.Option("--team", "-t", envvar="GPU_TEAM", help="Slug of the team. Required if you have several.")
]
Timeout = Annotated[str, typer.Option(help="Longest time to wait, like 90s, 30m or 2h.")]
