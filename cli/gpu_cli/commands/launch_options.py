"""The options that `gpu launch` and `gpu run` share, and the body of the call that they make."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gpu_cli.api.client import Json
from gpu_cli.api.errors import UsageError

GpuClass = Annotated[str, typer.Option("--class", "-c", help="Slug of a class, see 'gpu classes'.")]
Units = Annotated[int | None, typer.Option("--units", "-u", help="Of each worker. Default: 1.")]
Image = Annotated[str, typer.Option("--image", "-i", help="Of the catalog by name or reference.")]
Volume = Annotated[str, typer.Option(help="Left out: files end with the run.")]
Env = Annotated[list[str] | None, typer.Option("--env", "-e", help="NAME=VALUE, which the whole team can read.")]
Secret = Annotated[list[str] | None, typer.Option(help="Name of a sealed secret of the team; a variable of that name.")]
Workers = Annotated[int | None, typer.Option(help="Of a job, each with these units.")]
RunHours = Annotated[int | None, typer.Option(help="From its start.")]
File = Annotated[str, typer.Option("--file", "-f", help="Body of the call as JSON, - for stdin; options go before.")]
AcceptTerms = Annotated[int | None, typer.Option(help="Version of the class's terms that you have read and accept.")]
Command = Annotated[list[str] | None, typer.Argument(help="After --: what a job runs.")]


def launch_body(
    *,
    gpu_class: GpuClass = "",
    units: Units = None,
    image: Image = "",
    volume: Volume = "",
    env: Env = None,
    secret: Secret = None,
    workers: Workers = None,
    run_hours: RunHours = None,
    file: File = "",
    accept_terms: AcceptTerms = None,
    command: Command = None,
) -> Json:
    """Only what was said; {}: nothing. What may be left out, and with what, is the portal's to know."""
    said: Json = _read(file) if file else {}
    options = {
        "env": dict(map(_variable, env or ())),
        "secrets": list(secret or ()),
        "workers": workers,
        "run_hours": run_hours,
    }
    values = {
        "gpu_class": gpu_class,
        "units": units,
        "image": image,
        "volume": volume,
        "accept_terms": accept_terms,
        "command": list(command or ()),
        "options": {**said.get("options", {}), **_given(options)},
    }
    return {**said, **_given(values)}


def with_launch_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of `body` in place of its parameter `said`, which gets what they say."""
    options = inspect.signature(launch_body, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def parsed(**values: Any) -> None:
        command(said=launch_body(**{name: values.pop(name) for name in options}), **values)

    named = [one for its in own.parameters.values() for one in (options.values() if its.name == "said" else [its])]
    # What typer reads.
    parsed.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in named]
    )
    return parsed


def _given(values: Json) -> Json:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        # Not quoted: who forgets the name has written the value.
        raise UsageError("--env takes NAME=VALUE.")
    return name, value


def _read(file: str) -> Json:
    try:
        found: Any = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}.") from None
    if not isinstance(found, dict) or not isinstance(found.get("options", {}), dict):
        raise UsageError(f"{file} has to be one JSON object.")
    return found
