"""Errors, each with its exit code."""

from __future__ import annotations

from typing import Any

from gpu_cli.api.exit_codes import ExitCode


class CommandError(Exception):
    """One sentence for people."""

    exit = ExitCode.REFUSED


class UsageError(CommandError):
    """The call cannot be made: no address, no token, or an invalid value."""


class Refused(CommandError):
    """The portal refused. Nothing was changed. `body` is the response, {} if there was none."""

    def __init__(self, message: str, *, status: int, body: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.body = body

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class Unreachable(CommandError):
    """No usable response: no connection, no JSON, or a status that says that the portal cannot answer now."""

    exit = ExitCode.UNREACHABLE


class StreamTimeout(Unreachable):
    """A stream without data for long: there is no output, or the connection was lost without notice."""
