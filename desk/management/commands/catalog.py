"""`manage.py catalog settle | propose | accept`: from an empty database to a catalog of the nodes' hardware.

`manage.py catalog export | apply`: the catalog as a file, for git. In this app because the file also names teams.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.core.actor import system_actor
from catalog.classes.proposals import actions as proposal_actions
from catalog.classes.proposals import queries
from catalog.discovery.types import Discovery
from catalog.pool import actions
from cluster.manifests import names
from cluster.reads import queries as read_queries
from desk.catalog.file import actions as file_actions
from desk.catalog.file import queries as file_queries
from portal.core.errors import Refused


class Command(BaseCommand):
    help = (
        "Configure the cluster; propose classes for the hardware that the watcher found; accept them; "
        "export and apply classes and images as a file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        settle = verbs.add_parser("settle", help="create or change the configuration of the cluster CLUSTER_NAME")
        settle.add_argument("--notebooks-domain", default=settings.NOTEBOOKS_DOMAIN)
        settle.add_argument(
            "--cohort",
            default=names.COHORT,
            help=f"name of the Kueue cohort for borrowing: {names.COHORT} or {names.COHORT}-…",
        )
        settle.add_argument(
            "--observe-only",
            action="store_true",
            help="begin observe-only: the portal writes nothing to the cluster until an operator ends it",
        )
        verbs.add_parser("propose", help="list the proposed classes, one for each kind of capacity")
        accept = verbs.add_parser("accept", help="create and open proposed classes; existing classes are not changed")
        accept.add_argument("slug", nargs="*", help="only these (default: all proposed classes)")
        export = verbs.add_parser("export", help="write classes and images as YAML")
        export.add_argument("file", nargs="?", default="-", help="output file (default: standard output)")
        apply = verbs.add_parser("apply", help="apply classes and images from a file, all or nothing")
        apply.add_argument("file", help="the file; - for standard input")
        apply.add_argument("--dry-run", action="store_true", help="only show changes or errors")
        apply.add_argument(
            "--prune", action="store_true", help="retire classes and remove images that are not in the file"
        )

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            {
                "settle": self._settle,
                "propose": self._propose,
                "accept": self._accept,
                "export": self._export,
                "apply": self._apply,
            }[verb](options)
        except Refused as refused:
            raise CommandError(str(refused)) from refused

    def _settle(self, options: dict[str, Any]) -> None:
        if not names.is_cohort_name(options["cohort"]):
            raise CommandError(
                f"The worker may not use the cohort {options['cohort']}; choose {names.COHORT} or a name such as "
                f"{names.COHORT}-2: lower case letters, digits and single hyphens."
            )
        cluster = actions.configure_cluster(
            name=settings.CLUSTER_NAME,
            notebooks_domain=options["notebooks_domain"],
            cohort=options["cohort"],
            is_observe_only=options["observe_only"],
            by=system_actor("manage.py"),
        )
        self.stdout.write(f"Cluster {cluster.name}, notebooks under {cluster.notebooks_domain}.")
        if cluster.is_observe_only:
            self.stdout.write("Observe only: the portal writes nothing to it until an operator ends this.")

    def _propose(self, options: dict[str, Any]) -> None:
        found = self._discovery()
        for one in found.proposals:
            self.stdout.write(f"{one.slug:34} {one.units:5} × {one.resource or 'cpu':28} {one.name}")
            if one.weight_note:
                self.stderr.write(f"{one.slug}: {one.weight_note}")
        for problem in found.problems:
            self.stderr.write(problem)

    def _accept(self, options: dict[str, Any]) -> None:
        proposals = list(self._discovery().proposals)
        if chosen := set(options["slug"]):
            if unknown := chosen - {one.slug for one in proposals}:
                raise CommandError(f"Not proposed: {', '.join(sorted(unknown))}. See `manage.py catalog propose`.")
            proposals = [one for one in proposals if one.slug in chosen]
        for made in proposal_actions.accept_proposals(proposals, by=system_actor("manage.py")):
            self.stdout.write(f"{made.slug} is open.")

    def _export(self, options: dict[str, Any]) -> None:
        text = file_queries.export()
        if options["file"] == "-":
            self.stdout.write(text, ending="")
        else:
            Path(options["file"]).write_text(text)

    def _apply(self, options: dict[str, Any]) -> None:
        outcome = file_actions.apply(
            _read(options["file"]), prune=options["prune"], dry_run=options["dry_run"], by=system_actor("manage.py")
        )
        for line in outcome.lines:
            self.stdout.write(line)
        if outcome.problems:
            told = "\n".join(str(problem) for problem in outcome.problems)
            raise CommandError(f"{told}\nNothing was changed.")
        if not outcome.lines:
            self.stdout.write("No changes.")
        elif options["dry_run"]:
            self.stdout.write("Dry run: nothing was changed.")

    def _discovery(self) -> Discovery:
        found = queries.open_proposals(read_queries.current_cluster())
        if found is None:
            raise CommandError(
                "The watcher has not listed the nodes yet; start it (`manage.py watch_cluster`) and retry."
            )
        return found


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}.") from error
