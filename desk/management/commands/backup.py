"""`manage.py backup DIR`: the database, the catalog as a file, and a manifest. With the owner's DATABASE_URL.

Needs pg_dump of the server's version or newer. Keys are not in it, only their fingerprints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from desk.catalog.file import queries as file_queries
from desk.installation.backup.making import back_up
from desk.installation.backup.programs import ProgramFailed
from portal.core.errors import Refused


class Command(BaseCommand):
    help = "Back up the database into a new folder."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        try:
            made = back_up(folder, catalog=file_queries.export)
        except (ProgramFailed, OSError, Refused) as error:
            raise CommandError(f"No backup was made. {error}") from error
        size = sum(one.bytes for one in made.files.values())
        self.stdout.write(f"Backup of {made.made_at} in {folder}: {size:,} bytes.")
        for name, fingerprints in made.keys.items():
            told = ", ".join(fingerprints) or "not known to this process"
            self.stdout.write(f"{name}: {told}")
        self.stdout.write("The keys are not in the backup. Keep a copy of them elsewhere.")
