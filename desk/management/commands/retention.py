"""`manage.py retention`: what is stored of each kind, how long it is kept, and when the next row is deleted.

    python manage.py retention --archive /archive            # deletes what is old enough; archives it first
    python manage.py retention --archive /archive --dry-run  # says how many rows that would be

Both may be repeated, and run beside the worker, which does the same.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from desk.retention.archive import ArchiveUnclear
from desk.retention.deletion import count_expired, delete_expired
from desk.retention.kinds import Kind
from desk.retention.queries import Stored, read_stored

MIB = 1024 * 1024
HEAD = ("kind", "rows", "MiB", "of which indexes", "oldest", "kept for", "next deletion", "rule")


class Command(BaseCommand):
    help = "Show how long the rows of each table are kept; archive and delete those that are old enough."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--archive", metavar="DIR", type=Path, help="write rows to this folder and delete them")
        parser.add_argument("--dry-run", action="store_true", help="with --archive: say how many, and change nothing")

    def handle(self, *args: Any, archive: Path | None, dry_run: bool, **options: Any) -> None:
        if archive is None:
            if dry_run:
                raise CommandError("--dry-run goes with --archive.")
            self._show()
            return
        if not archive.is_dir():
            raise CommandError(f"{archive} is not a folder.")
        try:
            found = count_expired() if dry_run else delete_expired(archive)
        except (ArchiveUnclear, OSError) as error:
            raise CommandError(str(error)) from error
        for kind, rows in found.items():
            self.stdout.write(f"{kind}: {rows:,} rows {'would be deleted' if dry_run else 'deleted'}.")

    def _show(self) -> None:
        lines = [HEAD, *map(_line, read_stored())]
        widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD) - 1)]
        for line in lines:
            cells = [text.ljust(width) for text, width in zip(line[:-1], widths, strict=True)]
            self.stdout.write("  ".join([*cells, line[-1]]))
        self.stdout.write("Rows are those of the last ANALYZE. Dates are in UTC.")


def _line(one: Stored) -> tuple[str, ...]:
    return (
        one.kind.name,
        "unknown" if one.rows is None else f"{one.rows:,}",
        f"{one.bytes_total / MIB:,.2f}",
        f"{one.bytes_of_indexes / MIB:,.2f}",
        _date(one.oldest),
        _period(one.kind),
        _date(one.next_deletion),
        f"{one.kind.rule} ({one.kind.deleted_by})" if one.kind.deleted_by else one.kind.rule,
    )


def _period(kind: Kind) -> str:
    if kind.kept_for is None:
        return "-"
    return f"{kind.kept_for.days} d"


def _date(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "-"
