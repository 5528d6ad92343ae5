"""`manage.py import_teams SOURCE FILE`: teams, members and quota of another system; without --apply nothing is changed.

`--as EMAIL` is the person who imports: each row needs the rights that it needs on a page.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.core.actor import Actor
from accounts.models import User
from portal.core.errors import Refused
from tenants.onboarding.imports import actions, queries
from tenants.onboarding.imports.actions import ImportHandling
from tenants.onboarding.imports.shown import counts_sentence, shown_rows
from tenants.onboarding.imports.sources.claim_names import SCHEMES
from tenants.onboarding.imports.sources.reading import SOURCES, name_pairs
from tenants.onboarding.imports.types import FILE_BYTES_MAX, ImportOptions, Outcome, SettledRow
from tenants.requests.decisions.types import OverPromise


class Command(BaseCommand):
    help = "Take over teams, members and quota from another system. Without --apply nothing is changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", choices=SOURCES, help="the system, or csv")
        parser.add_argument("file", help="its export; - for standard input")
        parser.add_argument("--as", required=True, metavar="EMAIL", help="the person who imports, with their rights")
        parser.add_argument("--apply", action="store_true", help="carry it out (default: a dry run)")
        parser.add_argument("--json", action="store_true", help="write the report as JSON")
        for name, dest, told in (
            ("--class", "classes", "our class for theirs; THEIRS= leaves it out"),
            ("--team", "teams", "the short name of a team"),
        ):
            parser.add_argument(name, dest=dest, action="append", default=[], metavar="THEIRS=OURS", help=told)
        parser.add_argument("--until", metavar="DATE", help="last day of quota for which the export has none")
        parser.add_argument("--owner", default="", metavar="EMAIL", help="owner of teams for which the export has none")
        parser.add_argument(
            "--add-accounts", action="store_true", help="create an account for those without one, instead of inviting"
        )
        parser.add_argument("--over-promise", metavar="REASON", help="overcommit, for this reason")
        hub = parser.add_argument_group("JupyterHub")
        hub.add_argument("--domain", default="", help="what follows @ in the addresses of users")
        hub.add_argument("--into", default="", metavar="TEAM", help="team of users without a group")
        hub.add_argument("--namespace", default="", help="namespace of JupyterHub, where the claims are")
        hub.add_argument("--claim-template", default="claim-{user_server}", help="pvc_name_template of KubeSpawner")
        hub.add_argument("--slug-scheme", default="safe", choices=SCHEMES, help="as KubeSpawner's")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            plan = SOURCES[options["source"]](_read(options["file"]), _options(options))
            handling = ImportHandling(
                options["add_accounts"], OverPromise(options["over_promise"] is not None, options["over_promise"] or "")
            )
            by = _person(options["as"])
            rows = actions.carry_out(plan, is_applied=options["apply"], handling=handling, by=by)
        except Refused as refused:
            name = refused.refusal.field
            raise CommandError(f"{name}: {refused}" if name else str(refused)) from refused
        self._report(rows, is_applied=options["apply"], is_json=options["json"])
        refused_rows = sum(row.outcome == Outcome.REFUSED for row in rows)
        if refused_rows:
            raise CommandError(f"{refused_rows} of {len(rows)} rows were refused. The others are not affected.")

    def _report(self, rows: list[SettledRow], *, is_applied: bool, is_json: bool) -> None:
        if is_json:
            counts = Counter(row.outcome for row in rows)
            report = {
                "applied": is_applied,
                "counts": {str(one): counts[one] for one in Outcome},
                "rows": [asdict(row) for row in rows],
            }
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))
            return
        for one in shown_rows(rows, is_applied=is_applied):
            row, name = one.row, f" {one.row.field}:" if one.row.field else ""
            self.stdout.write(f"{row.place}: {row.kind} {row.title}: {one.outcome}:{name} {row.text}")
        self.stdout.write(counts_sentence(rows, is_applied=is_applied))
        if not is_applied:
            self.stdout.write("Dry run: nothing was changed. --apply carries it out.")


def _options(options: dict[str, Any]) -> ImportOptions:
    return ImportOptions(
        ours=queries.class_slugs(),
        classes=name_pairs(options["classes"], "--class"),
        teams=name_pairs(options["teams"], "--team"),
        until=_date(options["until"]) if options["until"] else None,
        owner=options["owner"],
        domain=options["domain"],
        into=options["into"],
        namespace=options["namespace"],
        claim_template=options["claim_template"],
        slug_scheme=options["slug_scheme"],
    )


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"--until '{text[:40]}' is not a date. Use the format 2027-03-31.") from error


def _person(email: str) -> Actor:
    user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
    if user is None:
        raise CommandError(f"--as: no active account has the address '{email[:80]}'.")
    return Actor(user=user, via="command")


def _read(name: str) -> bytes:
    """One byte more than may be read shows that the file is too large."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        with Path(name).open("rb") as file:
            return file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error}.") from error
