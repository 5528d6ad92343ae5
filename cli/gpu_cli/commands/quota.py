"""Quota requests and decisions about them: `gpu request`, `gpu inbox`."""

from __future__ import annotations

import re
from datetime import time
from typing import Annotated, Any

import typer

from gpu_cli import formatting, run_watch
from gpu_cli.api.client import Json, new_idempotency_key
from gpu_cli.api.errors import NotPossible, Refused, UsageError
from gpu_cli.api.exit_codes import ExitCode, exit_code_of_request
from gpu_cli.moments import parse_moment
from gpu_cli.session import AsJson, Session, Team, Timeout, session_of

LINE = re.compile(r"(?P<gpu_class>[^=:]+)=(?P<units>\d{1,9})(?::(?P<kind>base|boost))?")
DECISION = re.compile(r"(?P<id>\d{1,18})(?:=(?P<units>\d{1,9}))?")

requests = typer.Typer(
    help="Quota requests: new, list, show, wait, withdraw.", no_args_is_help=True, rich_markup_mode=None
)
inbox = typer.Typer(help="For approvers: list, show, approve, deny.", no_args_is_help=True, rich_markup_mode=None)
Number = Annotated[int, typer.Argument(help="Number of the request.")]
Lines = Annotated[
    list[str] | None, typer.Option("--line", help="ID, or ID=UNITS for other units. Default: all pending lines.")
]
Reason = Annotated[
    str, typer.Option(help="Comment for the requester. Required to deny, or to approve fewer units than requested.")
]


@requests.command()
def new(
    context: typer.Context,
    lines: Annotated[list[str], typer.Argument(help="CLASS=UNITS: new total. CLASS=UNITS:boost: temporary increase.")],
    until: Annotated[str, typer.Option(help="Last day (UTC) like 2027-03-31, or a time.")],
    because: Annotated[str, typer.Option(help="Justification.")],
    since: Annotated[str, typer.Option("--from", help="First day (UTC) or time. Default: now.")] = "",
    team: Team = "",
    json: AsJson = False,
) -> None:
    """Request quota for one or more classes."""
    session = session_of(context)
    period = {"ends_at": parse_moment(until, at=time.max)} | (
        {"starts_at": parse_moment(since, at=time.min)} if since else {}
    )
    body = {
        "team": session.team(team),
        "justification": because,
        "lines": [{**parse_line(text), **period} for text in lines],
    }
    session.give(session.client.call("POST", "requests", body=body, key=new_idempotency_key()).body, formatting.request)


@requests.command("list")
def list_requests(
    context: typer.Context,
    state: Annotated[str, typer.Option(help="pending, approved, denied or withdrawn.")] = "",
    team: Team = "",
    json: AsJson = False,
) -> None:
    """List the requests of your teams, newest first."""
    session = session_of(context)
    session.give(session.client.everything("requests", team=team, state=state), formatting.requests)


@requests.command("show")
def show_request(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Show one request with justification, comments and, for approvers, the facts of the decision."""
    _show(session_of(context), number)


@requests.command("wait")
def wait_for_request(context: typer.Context, number: Number, timeout: Timeout = "1h", json: AsJson = False) -> None:
    """Wait until no line is pending. Exits with 0 if a line is approved, 1 if none is, 3 after the time."""
    session = session_of(context)
    found = run_watch.wait_for_decision(session, number, timeout_s=run_watch.parse_duration(timeout))
    code = exit_code_of_request(found)
    if code is ExitCode.TIMED_OUT_QUEUED:
        session.say(f"Timed out after {timeout}: the request is pending.")
    session.give(found, formatting.request)
    raise typer.Exit(int(code))


@requests.command()
def withdraw(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Withdraw the pending lines of a request."""
    session = session_of(context)
    session.give(session.client.call("POST", "requests", str(number), "withdraw").body, formatting.request)


@inbox.command("list")
def list_inbox(
    context: typer.Context,
    group: Annotated[str, typer.Option(help="one_click, conflict or look.")] = "",
    gpu_class: Annotated[str, typer.Option("--class", help="Slug of a class.")] = "",
    team: Team = "",
    json: AsJson = False,
) -> None:
    """List the requests that you can decide, oldest first."""
    session = session_of(context)
    session.give(session.client.everything("inbox", group=group, gpu_class=gpu_class, team=team), formatting.requests)


@inbox.command("show")
def show_inbox(context: typer.Context, number: Number, json: AsJson = False) -> None:
    """Show one request with justification, comments and the facts of the decision."""
    _show(session_of(context), number, is_inbox=True)


def _show(session: Session, number: int, *, is_inbox: bool = False) -> None:
    """Adds `comments` and `facts`, which are null for users who are not shown them. An inbox requires them."""
    path = ("requests", str(number))
    found = {**session.client.get(*path), "comments": session.client.everything(*path, "comments")["items"]}
    try:
        found["facts"] = session.client.get(*path, "facts")
    except Refused as refused:
        if is_inbox or refused.code != "not_allowed":
            raise
        found["facts"] = None
    session.give(found, formatting.request_in_full)


@inbox.command()
def approve(
    context: typer.Context,
    number: Number,
    line: Lines = None,
    reason: Reason = "",
    grace_hours: Annotated[
        int | None, typer.Option(help="Hours that workloads may run after the grant expires.")
    ] = None,
    over_promise: Annotated[str, typer.Option(help="Overcommit: exceed the allocation limit, with this reason.")] = "",
    json: AsJson = False,
) -> None:
    """Approve a request, or some of its lines."""
    session = session_of(context)
    beside = {"approve": True, "reason": reason} | ({} if grace_hours is None else {"grace_hours": grace_hours})
    more = {"over_promise": True, "over_promise_reason": over_promise} if over_promise else {}
    _decide(session, number, line, beside, more)


@inbox.command()
def deny(context: typer.Context, number: Number, reason: Reason, line: Lines = None, json: AsJson = False) -> None:
    """Deny a request, or some of its lines."""
    _decide(session_of(context), number, line, {"approve": False, "reason": reason}, {})


def _decide(session: Session, number: int, lines: list[str] | None, beside: Json, more: Json) -> None:
    """Decides `lines`, or without --line all pending lines. The portal decides all of them or none."""
    if lines:
        named = [parse_decision(text) for text in lines]
    else:
        found = session.client.get("requests", str(number))
        named = [{"id": one["id"]} for one in found["lines"] if one["state"] == "pending"]
        if not named:
            raise NotPossible(f"Request {number} has no pending lines.")
    body = {"lines": [{**one, **beside} for one in named], **more}
    session.give(session.client.call("POST", "requests", str(number), "decide", body=body).body, formatting.request)


def parse_line(text: str) -> Json:
    found = LINE.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' is not a line. Use CLASS=UNITS or CLASS=UNITS:boost.")
    return {"gpu_class": found["gpu_class"], "units": int(found["units"]), "kind": found["kind"] or "base"}


def parse_decision(text: str) -> Json:
    found = DECISION.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' is not a line of a request. Use ID or ID=UNITS.")
    units: dict[str, Any] = {} if found["units"] is None else {"units": int(found["units"])}
    return {"id": int(found["id"]), **units}


def add_to(app: typer.Typer) -> None:
    app.add_typer(requests, name="request")
    app.add_typer(inbox, name="inbox")
