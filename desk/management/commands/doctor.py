"""`manage.py doctor`: what the page Health shows, as text, for when the pages do not work.

Ends with 0 when all is well, 1 when it is not, 2 when the database cannot be read.
"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError

from cluster.reads import queries as read_queries
from desk.health import report
from portal.core.errors import Refused

NOT_WELL, NO_DATABASE = 1, 2


class Command(BaseCommand):
    help = (
        "Say what the page Health says: late work, old data, contradictions, objects astray, a catalog that is wrong."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = report.take_snapshot(read_queries.current_cluster(), is_staff=False)
            told = list(report.report_lines(found))
        except Refused as refused:
            self.stdout.write(f"Not well: {refused}")
            self.stdout.write("  → The first step is `manage.py catalog settle`.")
            sys.exit(NOT_WELL)
        except (DatabaseError, InterfaceError) as error:
            self.stdout.write(f"The database cannot be read ({type(error).__name__}).")
            self.stdout.write(
                "  → Does PostgreSQL answer at DATABASE_URL, are its connections used up, are all migrations applied?"
            )
            sys.exit(NO_DATABASE)
        for line in told:
            self.stdout.write(line)
        if not found.is_well:
            sys.exit(NOT_WELL)
