"""The errors of commands, each with its exit code."""

from __future__ import annotations

from typing import Any

from gpu_cli.api.exit_codes import ExitCode

UNAUTHORIZED = 401
# The code of a call that needs --team: an argument is missing, as where this command finds that out by itself.
WHICH_TEAM = "which_team"


class CommandError(Exception):
    """An error whose text is a sentence for people."""

    exit = ExitCode.USAGE


class UsageError(CommandError):
    """The call cannot be made: no address, or an invalid value."""


class NoToken(CommandError):
    """The call cannot be made: there is no token, or none that could be one."""

    exit = ExitCode.NOT_SIGNED_IN


class NotPossible(CommandError):
    """What was read of the portal does not allow the call, so it was not made."""

    exit = ExitCode.REFUSED


class Refused(CommandError):
    """The portal refused the call and changed nothing. `body`: the response, {} if there was none."""

    def __init__(self, message: str, *, status: int, body: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        if status == UNAUTHORIZED:
            self.exit = ExitCode.NOT_SIGNED_IN
        else:
            self.exit = ExitCode.USAGE if self.code == WHICH_TEAM else ExitCode.REFUSED

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
