"""`manage.py quota …`: requests and namespaces from a shell, under the rules of the page.

`--as EMAIL` sets the acting user: an action that the user may not do on the page is refused here with the same message.
The command is in this app because a decision stores evidence that apps above tenants have measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from accounts.rest.paging import page_of, parse_limit
from desk.inbox.evidence import usage_evidence
from portal.core.errors import Refusal, Refused, get_or_refuse, refuse, refuse_if, to_refusal
from portal.ui.text import time_with_zone
from tenants.approvers.delegation import actions as delegation_actions
from tenants.core.forms import end_of_day, start_of_day
from tenants.lifecycle import actions as lifecycle_actions
from tenants.lifecycle.policy import GRACE_HOURS, KEEP_DAYS
from tenants.models import Namespace, QuotaLine, QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests import queries as request_queries
from tenants.requests.comments import queries as comment_queries
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.queries import LineRow, RequestRow, classes_of_request
from tenants.requests.reclaims import actions as reclaim_actions
from tenants.requests.renewals import actions as renewal_actions
from tenants.requests.types import ReclaimLine, RequestedLine

STATES = [str(state) for state in QuotaLine.State]
WANTED = {
    "suspend": Namespace.Wanted.SUSPENDED,
    "resume": Namespace.Wanted.ACTIVE,
    "close": Namespace.Wanted.CLOSED,
}


class Command(BaseCommand):
    help = "List, show, submit, decide and withdraw requests for quota, renew grants; suspend, resume and close teams."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        lists = verbs.add_parser("list", help="requests, newest first")
        lists.add_argument("--team", dest="tenant", metavar="TEAM", default="", help="only of this team")
        lists.add_argument("--state", default="", help=f"only {', '.join(STATES)}")
        lists.add_argument("--limit", default="50", help="how many at most, 1 to 200 (default: 50)")
        verbs.add_parser("show", help="one request with its lines and comments").add_argument("pk", type=int)
        file = _acting(verbs.add_parser("file", help="request quota"))
        file.add_argument("tenant", metavar="team")
        file.add_argument(
            "--line",
            action="append",
            required=True,
            metavar="CLASS=UNITS[:boost]",
            help="a new total, or a temporary increase",
        )
        file.add_argument("--from", dest="from_date", default="", metavar="DATE", help="first day (default: now)")
        file.add_argument("--until", required=True, metavar="DATE", help="last day, inclusive: 2027-03-31")
        file.add_argument("--because", required=True, metavar="TEXT", help="justification for the approvers")
        take = _acting(verbs.add_parser("reclaim", help="staff: reduce the quota of a team, with notice"))
        take.add_argument("tenant", metavar="team")
        take.add_argument("--line", action="append", required=True, metavar="CLASS=UNITS", help="the lower total")
        take.add_argument(
            "--from", dest="from_date", required=True, metavar="DATE", help="first day of the lower total"
        )
        take.add_argument(
            "--because", required=True, metavar="TEXT", help="justification for the team and the approver"
        )
        approve = _acting(verbs.add_parser("approve", help="approve the pending lines of this person's classes"))
        approve.add_argument("pk", type=int)
        approve.add_argument(
            "--line", action="append", default=[], metavar="ID[=UNITS]", help="only these lines, with other units"
        )
        approve.add_argument("--reason", default="", help="required if fewer units are approved than requested")
        approve.add_argument(
            "--grace-hours",
            type=int,
            metavar="N",
            help="hours that running workloads continue after the end (default: 24)",
        )
        approve.add_argument("--over-promise", metavar="REASON", help="overcommit, for this reason")
        deny = _acting(verbs.add_parser("deny", help="deny the pending lines of this person's classes"))
        deny.add_argument("pk", type=int)
        deny.add_argument("--reason", required=True, help="comment to the team")
        _acting(verbs.add_parser("withdraw", help="withdraw the pending lines")).add_argument("pk", type=int)
        for verb, told in (
            ("suspend", "no workloads start"),
            ("resume", "workloads start"),
            ("close", "all is removed"),
        ):
            wanted = _acting(verbs.add_parser(verb, help=f"{verb} a team: {told}"))
            wanted.add_argument("tenant", metavar="team")
            wanted.add_argument("--because", default="", metavar="TEXT", help="reason for its owners and managers")
            if verb == "close":
                wanted.add_argument(
                    "--grace-hours",
                    type=int,
                    default=GRACE_HOURS,
                    metavar="N",
                    help="hours that running workloads continue",
                )
                wanted.add_argument(
                    "--keep-days",
                    type=int,
                    default=KEEP_DAYS,
                    metavar="N",
                    help="days that volumes are kept after that",
                )
        delegate = _acting(verbs.add_parser("delegate", help="delegate approvals of this approver for a period"))
        delegate.add_argument("--to", required=True, metavar="EMAIL", help="the delegate: any user")
        delegate.add_argument("--from", dest="from_date", default="", metavar="DATE", help="first day (default: now)")
        delegate.add_argument("--until", required=True, metavar="DATE", help="last day, inclusive")
        _acting(verbs.add_parser("undelegate", help="end a delegation now")).add_argument("pk", type=int)
        renew = _acting(verbs.add_parser("renew", help="request to renew a grant from its end for the same period"))
        renew.add_argument("tenant", metavar="team")
        renew.add_argument("pk", type=int, help="number of the grant")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            if verb in WANTED:
                self._set_wanted(options, verb)
            else:
                getattr(self, f"_{verb}")(options)
        except (Refused, IntegrityError, OperationalError) as error:
            refusal = to_refusal(error)
            if refusal is None:
                raise
            raise CommandError(sentence(refusal)) from error

    # ---- reading (a user who can run this command can read the database as well) ----------------------------------

    def _list(self, options: dict[str, Any]) -> None:
        by, state = system_actor("manage.py"), options["state"]
        if state and state not in STATES:
            text = f"Unknown state '{state[:40]}'. Use one of {', '.join(STATES)}."
            raise refuse("unknown_state", text, field="state")
        if options["tenant"]:
            get_or_refuse(Tenant.objects.visible_to(by), slug=options["tenant"])
        found = request_queries.requests_for(by, tenant=options["tenant"], state=state)
        page = page_of(found, limit=parse_limit(options["limit"]))
        for row in request_queries.request_rows(page.items, by=by):
            lines = ", ".join(_asked(line) for line in row.lines)
            self.stdout.write(f"{row.pk:6}  {row.tenant.slug:20}  {row.state:9}  {_day(row.filed_at)}  {lines}")
        if not page.items:
            self.stdout.write("No requests.")
        if page.next_cursor:
            self.stdout.write("More requests exist; use --limit, --team and --state.")

    def _show(self, options: dict[str, Any]) -> None:
        found = get_or_refuse(QuotaRequest.objects.all(), pk=options["pk"])
        self._tell(found, system_actor("manage.py"))
        for said in comment_queries.comment_rows(found):
            asks = " requests information" if said.asks_back else ""
            self.stdout.write(f"{_day(said.at)} {said.who}{asks}: {said.text}")

    def _tell(self, found: QuotaRequest, by: Actor) -> None:
        [row] = request_queries.request_rows([found], by=by)
        self.stdout.write(f"Request {row.pk} of {row.tenant.slug}: {row.state}")
        self.stdout.write(f"submitted {_day(row.filed_at)} by {row.filed_by}: {row.justification}")
        for line in row.lines:
            self.stdout.write(f"line {line.pk}: {_asked(line)} (current {line.held}), {_answer(line)}")

    # ---- changes -------------------------------------------------------------------------------------------------

    def _file(self, options: dict[str, Any]) -> None:
        by = _person(options["as"])
        now = timezone.now()
        starts = max(start_of_day(_date(options["from_date"], "from")), now) if options["from_date"] else now
        ends = end_of_day(_date(options["until"], "until"))
        lines = []
        for text in options["line"]:
            slug, units, kind = _wish(text)
            lines.append(RequestedLine(slug, units, starts, ends, kind))
        filed = actions.file_request(
            options["tenant"], lines=lines, justification=options["because"], by=by, measure=usage_evidence
        )
        self._tell(filed, by)

    def _reclaim(self, options: dict[str, Any]) -> None:
        by = _person(options["as"])
        starts = start_of_day(_date(options["from_date"], "from"))
        lines = []
        for text in options["line"]:
            slug, units, kind = _wish(text)
            if kind != "base":
                raise refuse(
                    "bad_line", f"'{text[:80]}' is not a valid line. Use a100=2, the lower total.", field="line"
                )
            lines.append(ReclaimLine(slug, units, starts))
        filed = reclaim_actions.file_reclaim(options["tenant"], lines=lines, justification=options["because"], by=by)
        self._tell(filed, by)

    def _approve(self, options: dict[str, Any]) -> None:
        by = _person(options["as"])
        row = _to_decide(options["pk"], by)
        units = dict(_edit(text) for text in options["line"]) or {line.pk: None for line in row.to_decide}
        facts, common = _measured(row), {"reason": options["reason"], "grace_hours": options["grace_hours"]}
        decisions = [
            Decision(pk, approve=True, units=to, measured=facts.get(pk, {}), **common) for pk, to in units.items()
        ]
        because = options["over_promise"]
        over_promise = OverPromise(because is not None, because or "")
        self._tell(decision_actions.decide_request(row.pk, decisions, by=by, over_promise=over_promise), by)

    def _deny(self, options: dict[str, Any]) -> None:
        by = _person(options["as"])
        row = _to_decide(options["pk"], by)
        facts = _measured(row)
        decisions = [
            Decision(line.pk, approve=False, reason=options["reason"], measured=facts[line.pk])
            for line in row.to_decide
        ]
        self._tell(decision_actions.decide_request(row.pk, decisions, by=by), by)

    def _withdraw(self, options: dict[str, Any]) -> None:
        by = _person(options["as"])
        self._tell(actions.withdraw_request(options["pk"], by=by), by)

    def _set_wanted(self, options: dict[str, Any], verb: str) -> None:
        by = _person(options["as"])
        tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=options["tenant"])
        terms = {name: options[name] for name in ("grace_hours", "keep_days") if name in options}
        with transaction.atomic():
            rows = [
                lifecycle_actions.set_namespace_state(
                    row.pk, to=WANTED[verb], because=options["because"], by=by, **terms
                )
                for row in Namespace.objects.filter(tenant=tenant).order_by("pk")
            ]
        for row in rows:
            self.stdout.write(f"Namespace {row.name} of {tenant.slug} is set to {row.wanted}.")
            if row.closes_at is not None and row.volumes_until is not None:
                until = time_with_zone(row.volumes_until)
                self.stdout.write(f"Workloads stop on {time_with_zone(row.closes_at)}. Volumes are kept until {until}.")

    def _delegate(self, options: dict[str, Any]) -> None:
        by = _person(options["as"])
        starts = start_of_day(_date(options["from_date"], "from")) if options["from_date"] else timezone.now()
        ends = end_of_day(_date(options["until"], "until"))
        row = delegation_actions.name_delegate(email=options["to"], starts=starts, ends=ends, by=by)
        period = f"from {_day(row.period.lower)} until {options['until']}"
        self.stdout.write(f"Delegation {row.pk}: {row.deputy.name} decides for {by.name} {period}.")

    def _undelegate(self, options: dict[str, Any]) -> None:
        row = delegation_actions.end_delegation(options["pk"], by=_person(options["as"]))
        self.stdout.write(f"{row.deputy.name} no longer decides for {row.approver.name}.")

    def _renew(self, options: dict[str, Any]) -> None:
        by = _person(options["as"])
        self._tell(renewal_actions.renew_grant(options["tenant"], options["pk"], by=by, measure=usage_evidence), by)


def sentence(refusal: Refusal) -> str:
    """As in the API, on one line: field, then message."""
    return f"{refusal.field}: {refusal.message}" if refusal.field else refusal.message


def _acting(parser: CommandParser) -> CommandParser:
    parser.add_argument("--as", required=True, metavar="EMAIL", help="the person who acts, with their rights")
    return parser


def _person(email: str) -> Actor:
    user = User.objects.filter(email=email.strip().lower()).first()
    if user is None:
        raise refuse("unknown_person", f"No user has the address '{email[:80]}'.", field="as")
    if not user.is_active:
        raise refuse(
            "suspended", f"The account of '{user.email}' is suspended. Use an active account.", field="as", status=409
        )
    return Actor(user=user, via="command")


def _to_decide(pk: int, by: Actor) -> RequestRow:
    """Raises Refused if the user may decide none of its lines."""
    [row] = request_queries.request_rows([get_or_refuse(QuotaRequest.objects.visible_to(by), pk=pk)], by=by)
    if not row.to_decide:
        refuse_if(row.refusal or row.lines[0].refusal)
    return row


def _measured(row: RequestRow) -> dict[int, Mapping[str, Any]]:
    """Returns by line the evidence that the decision stores, as on the page."""
    found = usage_evidence(row.tenant, classes_of_request(QuotaRequest.objects.get(pk=row.pk))).plain
    return {line.pk: found[line.gpu_class_id] for line in row.lines}


def _date(text: str, field: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise refuse(
            "bad_date", f"'{text[:40]}' is not a valid date. Use the format 2027-03-31.", field=field
        ) from error


def _wish(text: str) -> tuple[str, int, str]:
    slug, _, rest = text.partition("=")
    units, _, kind = rest.partition(":")
    if not slug or not _is_number(units) or kind not in ("", "base", "boost"):
        raise refuse("bad_line", f"'{text[:80]}' is not a valid line. Use a100=2 or a100=2:boost.", field="line")
    return slug, int(units), kind or "base"


def _edit(text: str) -> tuple[int, int | None]:
    pk, equals, units = text.partition("=")
    if not _is_number(pk) or (equals and not _is_number(units)):
        raise refuse(
            "bad_line", f"'{text[:80]}' is not a valid line. Use its number, 12, or 12=2 for 2 units.", field="line"
        )
    return int(pk), int(units) if equals else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _day(at: Any) -> str:
    return f"{timezone.localtime(at):%d %b %Y}"


def _asked(line: LineRow) -> str:
    if line.is_reclaim:
        from_day = _day(line.asked_from)
        return f"{line.slug} reduced to {line.asked_units} from {from_day} until {_day(line.asked_until)}"
    return f"{line.slug} {_units(line, line.asked_units)} until {_day(line.asked_until)}"


def _units(line: LineRow, units: int) -> str:
    sign = "+" if line.kind == QuotaLine.Kind.BOOST else "="
    return f"{sign}{units}{' GiB' if line.unit == 'GiB' else ''}"


def _answer(line: LineRow) -> str:
    told: Sequence[str] = [line.state]
    if line.decided_units is not None and line.decided_until is not None:
        told = [*told, _units(line, line.decided_units), "until", _day(line.decided_until)]
    if line.decided_grace_hours is not None:
        told = [*told, f"grace {line.decided_grace_hours} h"]
    if line.decided_by:
        told = [*told, "by", line.decided_by]
    return " ".join(told) + (f": {line.reason}" if line.reason else "")
