"""`manage.py doctor`: the content of the page Health as text, for when the pages do not work.

Exits with 0 if healthy, 1 if degraded, 2 if the database cannot be read.
"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError

from cluster.reads import queries as read_queries
from desk.health import report
from portal.core.errors import Refused

DEGRADED, NO_DATABASE = 1, 2


class Command(BaseCommand):
    help = "Print the page Health: tasks past due, outdated data, inconsistencies, drift and catalog problems."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = report.take_snapshot(read_queries.current_cluster(), is_staff=False)
            told = list(report.report_lines(found))
        except Refused as refused:
            self.stdout.write(f"Degraded: {refused}")
            self.stdout.write("  → Run `manage.py catalog settle` first.")
            sys.exit(DEGRADED)
        except (DatabaseError, InterfaceError) as error:
            self.stdout.write(f"The database cannot be read ({type(error).__name__}).")
            self.stdout.write(
                "  → Check that PostgreSQL answers at DATABASE_URL, has free connections and all migrations."
            )
            sys.exit(NO_DATABASE)
        for line in told:
            self.stdout.write(line)
        if not found.is_well:
            sys.exit(DEGRADED)
