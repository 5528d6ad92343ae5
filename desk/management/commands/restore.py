"""`manage.py restore DIR`: restores a backup into the empty database of DATABASE_URL, which is the owner's.

`--check` says before anything is written whether this installation can restore it: files, schema, PostgreSQL and keys.
Exits with 1 if it cannot, or if something would be lost.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from desk.installation.backup import restoring
from desk.installation.backup.restoring import NotRestored

_THEN = """Restored: the database of {}.
Next, before any worker runs (docs/operators.md, "Restore"):
  manage.py migrate
  manage.py database_roles PROCESS=FILE …
  start the watcher alone, then: manage.py compare --after-restore
  start the other processes"""


class Command(BaseCommand):
    help = "Check a backup, or restore it into an empty database."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path, help="a folder that `manage.py backup` wrote")
        parser.add_argument("--check", action="store_true", help="only say whether it can be restored here")
        parser.add_argument(
            "--accept-loss", action="store_true", help="restore although keys of the backup are missing"
        )

    def handle(self, *args: Any, folder: Path, check: bool, accept_loss: bool, **options: Any) -> None:
        try:
            if check:
                self._check(folder)
            else:
                made = restoring.restore(folder, accept_loss=accept_loss)
                self.stdout.write(_THEN.format(made.made_at))
        except NotRestored as error:
            raise CommandError(f"Nothing was restored. {error}") from error

    def _check(self, folder: Path) -> None:
        manifest = restoring.read_manifest(folder)
        self.stdout.write(f"Backup of {manifest.made_at}, made with {manifest.pg_dump}.")
        is_bad = False
        for found in restoring.findings(folder, manifest):
            mark = "no: " if found.is_problem else "lost: " if found.is_loss else "ok: "
            self.stdout.write(f"{mark}{found.sentence}")
            is_bad = is_bad or found.is_problem or found.is_loss
        if not restoring.is_empty():
            self.stdout.write("note: The database of DATABASE_URL is not empty. `restore` needs an empty one.")
        if is_bad:
            self.stdout.write("This backup cannot be restored here without a loss.")
            sys.exit(1)
        self.stdout.write("This backup can be restored here.")
