"""docs/cli.md: the command line accepts its commands, and its exit codes are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from gpu_cli.api.exit_codes import ExitCode
from gpu_cli.main import app
from gpu_cli.session import Runtime, Session

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
BLOCKS = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
LINES = [part.strip() for part in re.split(r"\n|&&", BLOCKS) if part.strip().startswith("gpu ")]


@pytest.mark.parametrize("line", LINES)
def test_commands_and_options_are_there(line: str) -> None:
    """The commands are parsed to the last option, and not run."""
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        name = words.pop(0)
        assert name in command.commands, f"no command {name}"
        command = command.commands[name]
    command.make_context("gpu", words, obj=Session(Runtime(environment={})))


def test_every_command_is_told_of() -> None:
    told = {line.split()[1] for line in LINES}
    assert set(typer.main.get_command(app).commands) - told == set()  # type: ignore[attr-defined]


def test_exit_codes_are_as_documented() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE)] == [int(code) for code in ExitCode]
