"""Errors, each with its exit code."""

from __future__ import annotations

from typing import Any

from gpu_cli.api.exit_codes import ExitCode


class CommandError(Exception):
    """One sentence for people."""

    exit = ExitCode.REFUSED


class UsageError(CommandError):
    """It cannot even be asked: no address, no token, a value of another form."""


class Refused(CommandError):
    """The portal said no. Nothing was changed. `body` is its own, {} where it gave none."""

    def __init__(self, message: str, *, status: int, body: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.body = body

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class Unreachable(CommandError):
    """No answer of the portal: no connection, none of its JSON, or one that says that it cannot answer now."""

    exit = ExitCode.UNREACHABLE


class StreamTimeout(Unreachable):
    """A stream of which nothing came for long: it is quiet there, or the connection was lost without a word."""
