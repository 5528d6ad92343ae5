"""What a backup says of itself, and whether an installation can restore it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "database.dump"
CATALOG = "catalog.yaml"

Migrations = Mapping[str, list[str]]


@dataclass(frozen=True)
class FileSum:
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """`migrations`: the applied ones by app; they are the version of the portal and of its schema. `keys`: fingerprints
    by name, the current one first. `files`: by name.
    """

    made_at: str
    cluster: str
    migrations: Migrations
    postgresql: int
    pg_dump: str
    keys: Mapping[str, list[str]]
    files: Mapping[str, FileSum]

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Raises ValueError with a sentence if this is no manifest that this release can read."""
        try:
            found = json.loads(text)
            if found.pop("format") != FORMAT:
                raise ValueError("It was made by another release of the portal, whose manifest this one cannot read.")
            files = {name: FileSum(**one) for name, one in found.pop("files").items()}
            return cls(**found, files=files)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{MANIFEST} is damaged ({type(error).__name__}).") from error


@dataclass(frozen=True)
class Finding:
    """`is_problem`: the backup cannot be restored here. `is_loss`: it can, but something is lost. Otherwise a note."""

    sentence: str
    is_problem: bool = False
    is_loss: bool = False


def schema_findings(wanted: Migrations, known: Migrations) -> Iterator[Finding]:
    """`known`: the migrations of this release."""
    unknown = [f"{app}.{name}" for app, names in wanted.items() for name in names if name not in known.get(app, [])]
    if unknown:
        text = f"This release does not know the migration {unknown[-1]} of the backup. Use the release that made it."
        yield Finding(text, is_problem=True)
        return
    newer = sum(name not in wanted.get(app, []) for app, names in known.items() for name in names)
    then = f", and {newer} newer migrations are applied by `manage.py migrate`" if newer else ""
    yield Finding(f"Schema: this release knows all migrations of the backup{then}.")


def server_findings(wanted: int, here: int) -> Iterator[Finding]:
    """Major versions of PostgreSQL."""
    if here < wanted:
        text = f"PostgreSQL: the backup is of version {wanted}, and the server here has version {here}. Use {wanted}."
        yield Finding(text, is_problem=True)
    else:
        yield Finding(f"PostgreSQL: the backup is of version {wanted}, the server here has version {here}.")


def key_findings(
    wanted: Mapping[str, list[str]], here: Mapping[str, list[str]], losses: Mapping[str, str]
) -> Iterator[Finding]:
    for name, loss in losses.items():
        missing = [key for key in wanted.get(name, []) if key not in here.get(name, [])]
        if missing:
            yield Finding(f"{name}: no key here has the fingerprint {', '.join(missing)}. {loss}", is_loss=True)
        elif wanted.get(name):
            yield Finding(f"{name}: the keys of the backup are here ({', '.join(wanted[name])}).")
        else:
            yield Finding(f"{name}: unknown. The process that made the backup had no such key.")
