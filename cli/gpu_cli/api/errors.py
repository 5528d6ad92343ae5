"""The errors of commands, each with its exit code."""

from __future__ import annotations

from typing import Any

from gpu_cli.api.exit_codes import ExitCode


class CommandError(Exception):
    """An error whose text is a sentence for people."""

    exit = ExitCode.REFUSED


class UsageError(CommandError):
    """The call cannot be made: no address, no token, or an invalid value."""


class Refused(CommandError):
    """The portal refused the call and changed nothing. `body`: the response, {} if there was none."""

    def __init__(self, message: str, *, status: int, body: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.body = body

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class Unreachable(CommandError):
    """There is no usable response: no connection, no JSON, or a status of 500 or more, or one without the portal's
    message.
    """

    exit = ExitCode.UNREACHABLE


class StreamTimeout(Unreachable):
    """A stream had no data for too long: there was no output, or the connection was lost without notice."""
