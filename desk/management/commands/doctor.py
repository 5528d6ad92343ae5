"""`manage.py doctor`: the content of the page Health as text, for when the pages do not work.

Exits with 0 if healthy, 1 if degraded, 2 if the database cannot be read.

`--preflight KUBECONFIG`: whether the portal can be installed in that cluster; it needs no database. Exits with 0 if it
can, 1 if it cannot, 2 if the cluster does not answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from cluster.client.errors import ClusterRefused, ClusterUnavailable
from cluster.client.kube import Kube
from cluster.client.login import UNREADABLE
from cluster.reads import queries as read_queries
from desk.health import report
from desk.health.preflight import reader
from desk.health.preflight import report as preflight
from portal.core.errors import Refused

DEGRADED, NO_DATABASE = 1, 2
IMPOSSIBLE, NO_CLUSTER = 1, 2


class Command(BaseCommand):
    help = (
        "Print the page Health: tasks past due, outdated data, inconsistencies, drift and catalog problems. "
        "Or check a cluster before an installation."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--preflight", metavar="KUBECONFIG", type=Path, help="check a cluster before the portal is installed there"
        )
        parser.add_argument(
            "--namespace",
            default="default",
            help="where --preflight tries a pod and a Job, as dry runs (default: default)",
        )
        parser.add_argument("--json", action="store_true", help="print the result of --preflight as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["preflight"] is not None:
            self._preflight(options["preflight"], namespace=options["namespace"], is_json=options["json"])
        elif options["json"]:
            raise CommandError("--json needs --preflight.")
        else:
            self._health()

    def _preflight(self, kubeconfig: Path, *, namespace: str, is_json: bool) -> None:
        try:
            kubeconfig.read_bytes()
        except OSError as error:
            raise CommandError(f"{kubeconfig} cannot be read: {error.strerror}.") from error
        try:
            kube = Kube(str(kubeconfig))
        except UNREADABLE as error:
            what = f"{kubeconfig} is no kubeconfig ({type(error).__name__})."
            raise CommandError(f"{what} Try it: kubectl --kubeconfig {kubeconfig} version") from error
        try:
            found = preflight.findings(reader.read_cluster(kube, namespace=namespace))
        except (ClusterRefused, ClusterUnavailable) as error:
            self.stderr.write(f"The cluster does not answer: {error}")
            self.stderr.write("  → Check the address and the credentials in the kubeconfig.")
            sys.exit(NO_CLUSTER)
        if is_json:
            self.stdout.write(json.dumps(preflight.as_json(found), indent=2))
        else:
            for line in preflight.text_lines(found):
                self.stdout.write(line)
        if not preflight.is_possible(found):
            sys.exit(IMPOSSIBLE)

    def _health(self) -> None:
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
