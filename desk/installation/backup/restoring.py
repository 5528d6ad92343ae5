"""Says whether this installation can restore a backup, and restores it into an empty database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from desk.installation.backup import keys, programs
from desk.installation.backup.making import file_sum
from desk.installation.backup.manifest import (
    DATABASE,
    MANIFEST,
    Finding,
    Manifest,
    key_findings,
    schema_findings,
    server_findings,
)

_RELATIONS = """
SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
 WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"""


class NotRestored(Exception):
    """Nothing was written. The message is a sentence for operators."""


def read_manifest(folder: Path) -> Manifest:
    """Raises NotRestored."""
    try:
        return Manifest.from_json((folder / MANIFEST).read_text())
    except FileNotFoundError as error:
        raise NotRestored(f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise NotRestored(f"{folder / MANIFEST} cannot be read ({type(error).__name__}).") from error
    except ValueError as error:
        raise NotRestored(f"{folder}: {error}") from error


def findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Writes nothing. The database may have tables: it is read for its version only."""
    yield from _file_findings(folder, manifest)
    known: dict[str, list[str]] = {}
    for app, name in MigrationLoader(None).disk_migrations or {}:
        known.setdefault(app, []).append(name)
    yield from schema_findings(manifest.migrations, known)
    yield from server_findings(manifest.postgresql, programs.server_version())
    if manifest.cluster != settings.CLUSTER_NAME:
        text = f"The backup is of the cluster {manifest.cluster}, and CLUSTER_NAME is {settings.CLUSTER_NAME} here."
        yield Finding(text, is_problem=True)
    yield from key_findings(manifest.keys, keys.keys_at_hand(), keys.LOSSES)


def _file_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    is_whole = True
    for name, wanted in manifest.files.items():
        if not (folder / name).is_file():
            yield Finding(f"{name} is missing.", is_problem=True)
        elif file_sum(folder / name) != wanted:
            yield Finding(f"{name} is damaged: its checksum is not that of the manifest.", is_problem=True)
        else:
            continue
        is_whole = False
    if not is_whole:
        return
    try:
        programs.run("pg_restore", "--list", str(folder / DATABASE))
    except programs.ProgramFailed as failed:
        yield Finding(str(failed), is_problem=True)
    else:
        yield Finding("Files: complete, with the checksums of the manifest.")


def is_empty() -> bool:
    """Whether the database of this process has no tables."""
    with connection.cursor() as cursor:
        cursor.execute(_RELATIONS)
        return int(cursor.fetchone()[0]) == 0


def restore(folder: Path, *, accept_loss: bool) -> Manifest:
    """All or nothing, in one transaction. Raises NotRestored for the first reason, before anything is written."""
    manifest = read_manifest(folder)
    for found in findings(folder, manifest):
        if found.is_problem or (found.is_loss and not accept_loss):
            raise NotRestored(found.sentence)
    name = connection.settings_dict["NAME"]
    if not is_empty():
        text = (
            f"The database {name} is not empty. Restore into a new one: CREATE DATABASE …, and name it in DATABASE_URL."
        )
        raise NotRestored(text)
    options = ("--no-password", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction")
    try:
        programs.run("pg_restore", *options, f"--dbname={name}", str(folder / DATABASE))
    except programs.ProgramFailed as failed:
        raise NotRestored(str(failed)) from failed
    return manifest
