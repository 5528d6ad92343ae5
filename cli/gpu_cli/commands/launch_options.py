"""The options that `gpu launch` and `gpu run` share, and the request body for them."""

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
Units = Annotated[int | None, typer.Option("--units", "-u", help="Units of each worker. Default: 1.")]
Image = Annotated[str, typer.Option("--image", "-i", help="Name in the catalog, or reference.")]
GpuMemory = Annotated[
    int | None, typer.Option("--gpu-memory", help="Least GiB of each device. Default: any device of the class.")
]
TopologyLevel = Annotated[
    str, typer.Option("--topology-level", help="Of a job: a level of the class; all workers in one domain of it.")
]
TopologyRequired = Annotated[
    bool, typer.Option("--topology-required", help="Wait until all workers fit into one domain. Default: preferred.")
]
Volume = Annotated[str, typer.Option(help="Name of a volume. Default: none, files are deleted when the run stops.")]
Env = Annotated[list[str] | None, typer.Option("--env", "-e", help="NAME=VALUE. The whole team can read it.")]
Secret = Annotated[list[str] | None, typer.Option(help="Name of a team secret, set as a variable of that name.")]
Workers = Annotated[int | None, typer.Option(help="Number of workers of a job.")]
RunHours = Annotated[int | None, typer.Option(help="Time limit in hours, from the start of the run.")]
File = Annotated[
    str, typer.Option("--file", "-f", help="File with the request body as JSON, - for stdin. Options override it.")
]
AcceptTerms = Annotated[int | None, typer.Option(help="Version of the class's terms that you accept.")]
Checkpoints = Annotated[
    bool,
    typer.Option("--checkpoints", help="Confirm that the job saves its state and continues from it when interrupted."),
]
AcceptInterruption = Annotated[
    bool,
    typer.Option("--accept-interruption", help="Accept that a notebook loses its memory with its spot node."),
]
Command = Annotated[list[str] | None, typer.Argument(help="Command of a job, after --.")]


def launch_body(
    *,
    gpu_class: GpuClass = "",
    units: Units = None,
    gpu_memory_gib: GpuMemory = None,
    topology_level: TopologyLevel = "",
    topology_required: TopologyRequired = False,
    image: Image = "",
    volume: Volume = "",
    env: Env = None,
    secret: Secret = None,
    workers: Workers = None,
    run_hours: RunHours = None,
    file: File = "",
    accept_terms: AcceptTerms = None,
    checkpoints: Checkpoints = False,
    accept_interruption: AcceptInterruption = False,
    command: Command = None,
) -> Json:
    """Returns a body with only the values that were given; {} if there are none. Required values and defaults are
    checked by the portal.
    """
    said: Json = _read(file) if file else {}
    options = {
        "env": dict(map(_variable, env or ())),
        "secrets": list(secret or ()),
        "workers": workers,
        "run_hours": run_hours,
        "gpu_memory_gib": gpu_memory_gib,
        "topology_level": topology_level,
        "topology_required": topology_required or None,
        "checkpoints": checkpoints or None,
        "accepts_interruption": accept_interruption or None,
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
    """Decorates a command: its parameter `said` is replaced by the options of `launch_body`, and it gets the body."""
    options = inspect.signature(launch_body, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def parsed(**values: Any) -> None:
        command(said=launch_body(**{name: values.pop(name) for name in options}), **values)

    named = [one for its in own.parameters.values() for one in (options.values() if its.name == "said" else [its])]
    # typer reads the signature.
    parsed.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in named]
    )
    return parsed


def _given(values: Json) -> Json:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        # The message does not contain the text, which may be a secret value without its name.
        raise UsageError("Enter --env as NAME=VALUE.")
    return name, value


def _read(file: str) -> Json:
    try:
        found: Any = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text())
    except OSError as error:
        raise UsageError(f"Cannot read {file}: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}.") from None
    if not isinstance(found, dict) or not isinstance(found.get("options", {}), dict):
        raise UsageError(f"{file} is not a JSON object.")
    return found
