"""Makes a backup: the database and the catalog of one moment, and a manifest, which is written last."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from desk.installation.backup import keys, programs
from desk.installation.backup.manifest import CATALOG, DATABASE, MANIFEST, FileSum, Manifest
from portal.core.sql import snapshot

# For the owner alone: it has hashes of passwords and what people wrote.
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600


def back_up(folder: Path, *, catalog: Callable[[], str]) -> Manifest:
    """Writes a backup into a new or empty folder. Without a manifest the folder is no backup. `catalog`: reads the
    catalog as a file. Raises ProgramFailed, FileExistsError and OSError.
    """
    folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty. Choose a new folder for each backup.")
    folder.chmod(_PRIVATE_FOLDER)
    made_at, pg_dump = timezone.now(), programs.run("pg_dump", "--version").strip()
    with snapshot(), connection.cursor() as cursor:
        # pg_dump may take hours, and this session holds its snapshot meanwhile.
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT pg_export_snapshot()")
        moment = str(cursor.fetchone()[0])
        applied = MigrationRecorder(connection).applied_migrations()
        _write(folder / CATALOG, catalog())
        _write(folder / DATABASE, "")
        # The mirror (UNLOGGED) is listed again; roles and rights belong to a server: `manage.py database_roles`.
        options = ("--no-password", "--format=custom", "--no-owner", "--no-privileges", "--no-unlogged-table-data")
        programs.run("pg_dump", *options, f"--snapshot={moment}", f"--file={folder / DATABASE}")
    migrations: dict[str, list[str]] = {}
    for app, name in sorted(applied):
        migrations.setdefault(app, []).append(name)
    manifest = Manifest(
        made_at=made_at.isoformat(),
        cluster=settings.CLUSTER_NAME,
        migrations=migrations,
        postgresql=programs.server_version(),
        pg_dump=pg_dump,
        keys=keys.inventory(),
        files={name: file_sum(folder / name) for name in (DATABASE, CATALOG)},
    )
    _write(folder / MANIFEST, manifest.to_json())
    return manifest


def file_sum(path: Path) -> FileSum:
    with path.open("rb") as read:
        return FileSum(hashlib.file_digest(read, "sha256").hexdigest(), path.stat().st_size)


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE_FILE), "w") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
