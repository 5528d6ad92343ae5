"""Options of a launch besides class, units and image. Omitted options use the defaults of the class. Pure.

Every option is a typed value with bounds. No option reaches a field of the pod that decides its placement, its rights
or its devices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from catalog.classes.validation.run_limits import RUN_HOURS_MOST
from cluster.manifests.run_spec import HOME
from portal.core.errors import Refusal
from workloads.core.environment import env_name_refusal

MINUTES_PER_HOUR = 60


ENV_LIMIT = 50
ENV_VALUE_LIMIT = 4096
SECRETS_LIMIT = 20
PATH_LIMIT = 200
REPOSITORY_LIMIT = 300
REFERENCE_LIMIT = 100

_PATH_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_REFERENCE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*")


@dataclass(frozen=True)
class Options:
    """None and "" mean the default of the class. cpu (cores) and memory are per worker; shared memory is part of the
    worker's memory. `mount_path`: where the volume is mounted, "" for the home directory. `repository`: cloned into the
    home directory before the first start, at `reference` (a branch or tag) or its default branch. `run_hours`: time
    limit of a run from its start; time in the queue does not count. `secrets`: names of the team's secrets, each set as
    a variable. `workers`, `script` and `retries` are for jobs: None means one worker, and no retry after a crash.
    `priority`: "" is the default of its kind. `checkpoints`: the job saves its state, and resumes from it after an
    interruption. `gpu_memory_gib`: the least memory of each device, None for any of the class.
    `accepts_interruption`: the owner of a notebook accepts that its spot node is reclaimed at any time.
    `topology_level`: a node label of the class's topology. All workers of a job run on nodes with the same value of it:
    only so if `topology_required`, otherwise if they fit there.
    """

    cpu: int | None = None
    memory_gib: int | None = None
    shared_memory_gib: int | None = None
    mount_path: str = ""
    env: tuple[tuple[str, str], ...] = ()
    repository: str = ""
    reference: str = ""
    run_hours: int | None = None
    secrets: tuple[str, ...] = ()
    workers: int | None = None
    script: str = ""
    priority: str = ""
    retries: int | None = None
    checkpoints: bool = False
    gpu_memory_gib: int | None = None
    accepts_interruption: bool = False
    topology_level: str = ""
    topology_required: bool = False

    def to_json(self) -> dict[str, Any]:
        """Only options that were set are included: for all others the defaults of a later release apply."""
        said = {name: value for name, value in asdict(self).items() if value and (name, value) != ("workers", 1)}
        if self.env:
            said["env"] = dict(self.env)
        if self.secrets:
            said["secrets"] = list(self.secrets)
        return said

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Options:
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in stored.items() if name in known}
        values["env"] = tuple(sorted(dict(values.get("env", {})).items()))
        values["secrets"] = tuple(sorted(set(values.get("secrets", ()))))
        return cls(**values)


NO_OPTIONS = Options()


@dataclass(frozen=True)
class OptionBounds:
    """The bounds of the class for the requested units. `run_hours` None: no time limit is required."""

    class_name: str
    units: int
    cpu: int
    memory_gib: int
    run_hours: int | None = None


def options_refusal(options: Options, bounds: OptionBounds, *, has_volume: bool) -> Refusal | None:
    return (
        _size("cpu", options.cpu, bounds.cpu, "cores", bounds)
        or _size("memory_gib", options.memory_gib, bounds.memory_gib, "GiB of memory", bounds)
        or _shared_memory(options, bounds)
        or _mount_path(options.mount_path, has_volume=has_volume)
        or _env(options.env)
        or _secrets(options)
        or _repository(options)
        or _run_hours(options.run_hours, bounds)
    )


def _size(field: str, asked: int | None, most: int, what: str, bounds: OptionBounds) -> Refusal | None:
    if asked is None or 1 <= asked <= most:
        return None
    units = f"{bounds.units} unit" if bounds.units == 1 else f"{bounds.units} units"
    allow = "allows" if bounds.units == 1 else "allow"
    text = f"{asked} {what} requested; {units} of {bounds.class_name} {allow} 1 to {most}. Request less, or more units."
    return Refusal("bad_size", text, field)


def _shared_memory(options: Options, bounds: OptionBounds) -> Refusal | None:
    memory = options.memory_gib or bounds.memory_gib
    asked = options.shared_memory_gib
    if asked is None or 1 <= asked <= memory:
        return None
    text = f"{asked} GiB of shared memory requested. It is part of the memory. Enter 1 to {memory} GiB."
    return Refusal("bad_size", text, "shared_memory_gib")


def _mount_path(path: str, *, has_volume: bool) -> Refusal | None:
    if not path:
        return None
    if not has_volume:
        return Refusal(
            "no_volume", "A path needs a volume to mount. Enter a volume, or leave the path empty.", "mount_path"
        )
    below = path.removeprefix(HOME)
    parts = below.split("/")[1:]
    is_possible = path.startswith(HOME) and (not below or below.startswith("/")) and len(path) <= PATH_LIMIT
    if is_possible and all(_PATH_PART.fullmatch(part) for part in parts):
        return None
    text = f"Enter {HOME} or a path below it, for example {HOME}/data; '{path[:PATH_LIMIT]}' is not valid."
    return Refusal("bad_path", text, "mount_path")


def _env(env: tuple[tuple[str, str], ...]) -> Refusal | None:
    if len(env) > ENV_LIMIT:
        return Refusal("too_many_variables", f"{len(env)} variables; the limit is {ENV_LIMIT}.", "env")
    for name, value in env:
        if refusal := env_name_refusal(name, "env"):
            return refusal
        if len(value) > ENV_VALUE_LIMIT or "\0" in value:
            text = f"The value of {name} has {len(value)} characters; the limit is {ENV_VALUE_LIMIT}."
            return Refusal("bad_variable", text, "env")
    return None


def _secrets(options: Options) -> Refusal | None:
    """Checks the shape of the names; the action checks whether the team has these secrets."""
    if len(options.secrets) > SECRETS_LIMIT:
        text = f"{len(options.secrets)} secrets; the limit is {SECRETS_LIMIT}."
        return Refusal("too_many_secrets", text, "secrets")
    taken = {name for name, _value in options.env}
    for name in options.secrets:
        if refusal := env_name_refusal(name, "secrets"):
            return refusal
        if name in taken:
            text = f"{name} is both a variable and a secret. Remove one of them."
            return Refusal("twice", text, "secrets")
    return None


def _repository(options: Options) -> Refusal | None:
    url, reference = options.repository, options.reference
    if not url:
        text = "A branch or tag needs a repository. Enter the address of the repository."
        return Refusal("no_repository", text, "reference") if reference else None
    if reason := _bad_address(url):
        return Refusal("bad_repository", f"{reason} Enter an address like https://github.com/owner/name.", "repository")
    if reference and not (len(reference) <= REFERENCE_LIMIT and _REFERENCE.fullmatch(reference)):
        text = f"Use letters, digits, . _ / and - for a branch or tag, up to {REFERENCE_LIMIT} characters."
        return Refusal("bad_reference", text, "reference")
    return None


def _run_hours(asked: int | None, bounds: OptionBounds) -> Refusal | None:
    most = RUN_HOURS_MOST if bounds.run_hours is None else bounds.run_hours
    if asked is None or 1 <= asked <= most:
        return None
    limit = "the portal" if bounds.run_hours is None else bounds.class_name
    way = "Request less, or no time limit." if bounds.run_hours is None else "Request less."
    return Refusal(
        "bad_run_time", f"Time limit of {asked} h requested; {limit} allows 1 to {most} h. {way}", "run_hours"
    )


def _bad_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, login = parts.hostname, parts.username or parts.password
    except ValueError:
        return "This is not an address."
    if len(url) > REPOSITORY_LIMIT or not url.isascii() or any(char.isspace() for char in url):
        return f"An address has up to {REPOSITORY_LIMIT} ASCII characters and no spaces."
    if parts.scheme not in ("https", "http") or not host or not repository_directory(url):
        return "A repository is cloned over HTTPS."
    if login:
        return "The address has a user name or password in it, which all team members could read."
    return ""


def repository_directory(url: str) -> str:
    """Returns the directory that the repository is cloned into: the last part of the URL without .git; "" if there is
    none.
    """
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return last if _PATH_PART.fullmatch(last) else ""


def level_text(level: str, *, is_required: bool) -> str:
    return f"all workers in one {level}, {'required' if is_required else 'preferred'}"


def run_minutes(asked_hours: int | None, limit_hours: int | None) -> int | None:
    """Returns the time limit of a run; None: none. If the class's limit is now lower than at the declaration, the lower
    limit applies.
    """
    allowed = [hours for hours in (asked_hours, limit_hours) if hours is not None]
    return min(allowed) * MINUTES_PER_HOUR if allowed else None
