"""Workloads: `gpu launch`, `gpu run`, `gpu wait`, `gpu stop`, `gpu share`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from httpx import URL

from gpu_cli import formatting, run_watch
from gpu_cli.api.client import Answer, Json, new_idempotency_key
from gpu_cli.api.errors import CommandError, NotPossible, Refused, UsageError
from gpu_cli.api.exit_codes import ExitCode
from gpu_cli.commands import launch_options
from gpu_cli.log_stream import print_log
from gpu_cli.run_watch import WaitResult
from gpu_cli.session import AsJson, Name, Session, Team, Timeout, session_of

Key = Annotated[
    str,
    typer.Option("--key", help="Idempotency-Key: calls with the same key are carried out once. Default: a new key."),
]
CREATED = 201
STILL_RUNNING = "still_running"


@launch_options.with_launch_options
def launch(
    context: typer.Context,
    name: Name,
    kind: Annotated[str, typer.Option(help="notebook or job. Default: job if there is a command.")] = "",
    *,
    said: Json,
    visibility: Annotated[
        str, typer.Option(help="Who can open a notebook: private or team. Default: as the team has chosen.")
    ] = "",
    key: Key = "",
    team: Team = "",
    json: AsJson = False,
) -> None:
    """Create a notebook or job and start it. Prints the address of its page."""
    session = session_of(context)
    if visibility:
        said["visibility"] = visibility
    if kind or "kind" not in said:
        said["kind"] = kind or ("job" if said.get("command") else "notebook")
    body = {**said, "name": name}
    made = session.client.call(
        "POST", "workloads", query={"team": team}, body=body, key=key or new_idempotency_key()
    ).body
    session.say(formatting.progress({**made["run"], "status": made["status"], "estimate": made["estimate"]}))
    session.give(made, lambda found: formatting.plain(found["url"]))


@launch_options.with_launch_options
def run(
    context: typer.Context,
    name: Name,
    *,
    said: Json,
    group: Annotated[str, typer.Option(help="Group of the run, for example a branch.")] = "",
    cancel_running: Annotated[
        bool, typer.Option("--cancel-running", help="Stop queued and running runs of the --group in the team.")
    ] = False,
    declare_only: Annotated[bool, typer.Option("--declare-only", help="Declare the job without a run.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Print the number of the run and do not wait.")] = False,
    timeout: Timeout = "1h",
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop the run if this command times out or is cancelled.")
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="Print the log when the run has ended.")] = False,
    key: Key = "",
    team: Team = "",
    json: AsJson = False,
) -> None:
    """Declare a job, start a run and wait until it ends, for CI. Without options the job runs as declared before."""
    session = session_of(context)
    timeout_s = run_watch.parse_duration(timeout)
    if declare_only and not said:
        raise UsageError("--declare-only requires --class and --image, or --file.")
    if said:
        declared = session.client.call("PUT", "workloads", name, query={"team": team}, body={"kind": "job", **said})
        if declare_only:
            is_new = declared.status == CREATED
            session.say(f"{name} is declared." if is_new else f"{name} exists. Changes apply to its next run.")
            session.give(declared.body, lambda found: formatting.plain(found["url"]))
            return
    # The portal checks whether group and cancel_running are valid.
    push = {name: of for name, of in (("group", group), ("cancel_running", cancel_running)) if of}
    terms = {name: of for name, of in said.items() if name == "accept_terms"}
    number = _start(session, name, team, {**push, **terms}, key or new_idempotency_key(), timeout_s)
    if detach:
        # Without --json there is no further call, so the number is printed even if the portal stops answering.
        found = session.client.get("workloads", name, "runs", str(number), team=team) if json else {}
        session.give(found, lambda _found: str(number))
        return
    with stop_on_interrupt(session, name, number, team, stop):
        waited = run_watch.wait(session, name, number, team=team, until="finished", timeout_s=timeout_s)
    if stop:
        _give_up(session, waited.run, team)
    if log and waited.run["started_at"] is not None:
        try:
            print_log(session, waited.run["team"], name)
        except CommandError as problem:
            # The exit code remains that of the run.
            session.say(str(problem))
    _end(session, waited, timeout)


def wait(
    context: typer.Context,
    name: Name,
    number: Annotated[int | None, typer.Option("--run", help="Number of the run. Default: the last run.")] = None,
    until: Annotated[
        str, typer.Option(help="admitted, ready or finished. Default: ready for a notebook, finished for a job.")
    ] = "",
    timeout: Timeout = "1h",
    team: Team = "",
    json: AsJson = False,
) -> None:
    """Wait until a run is admitted, ready or finished. Reports its status."""
    session = session_of(context)
    timeout_s = run_watch.parse_duration(timeout)
    if until and until not in run_watch.UNTIL:
        raise UsageError(f"Enter for --until one of {', '.join(run_watch.UNTIL)}.")
    if number is None or not until:
        found = session.client.get("workloads", name, team=team)
        if found["run"] is None:
            raise NotPossible(f"{name} has no run. Start one with 'gpu run {name}'.")
        number = number or int(found["run"]["number"])
        until = until or ("finished" if found["kind"] == "job" else "ready")
    _end(session, run_watch.wait(session, name, number, team=team, until=until, timeout_s=timeout_s), timeout)


def stop(context: typer.Context, name: Name, team: Team = "", json: AsJson = False) -> None:
    """Stop the run of a workload and release its units."""
    session = session_of(context)
    session.give(_stop(session, name, team), lambda found: formatting.progress({**found, "estimate": None}))


def share(
    context: typer.Context,
    name: Name,
    private: Annotated[bool, typer.Option("--private", help="Make it private again.")] = False,
    team: Team = "",
    json: AsJson = False,
) -> None:
    """Let the team open a notebook that you launched, or with --private only you."""
    session = session_of(context)
    body = {"visibility": "private" if private else "team"}
    path = ("workloads", name, "visibility")
    found = session.client.call("POST", *path, query={"team": team}, body=body, is_repeatable=True).body
    session.give(found, lambda found: f"{formatting.plain(found['name'])}: {found['visibility']}")


def _stop(session: Session, name: str, team: str) -> Json:
    """Stops the run. The call may be repeated, because a second one has no effect."""
    path = ("workloads", name, "stop")
    found: Json = session.client.call("POST", *path, query={"team": team}, is_repeatable=True).body
    return found


def _give_up(session: Session, run: Json, team: str) -> None:
    """Stops the run unless it has ended or is already stopping. A newer run may follow a run that is stopping, and a
    second call would cancel it.
    """
    if run["ended_at"] is None and run["status"]["phase"] != "stopping":
        _stop(session, run["workload"], team)


def _start(session: Session, name: str, team: str, body: Json, key: str, timeout_s: float) -> int:
    """Starts a run and returns its number. The portal may let this run begin only when the run before it has ended. If
    that run is being stopped and the call is refused, waits for its end and calls again.
    """

    def start() -> Answer:
        path = ("workloads", name, "runs")
        return session.client.call("POST", *path, query={"team": team}, body=body, key=key)

    try:
        started = start()
    except Refused as refused:
        if refused.code != STILL_RUNNING:
            raise
        _until_stopped(session, name, team, timeout_s, refused)
        started = start()
    number = int(URL(started.location).path.rpartition("/")[2])
    session.say(f"{name}: run {number}, {started.body['url']}")
    return number


def _until_stopped(session: Session, name: str, team: str, timeout_s: float, refused: Refused) -> None:
    """Waits for the end of a run that is being stopped. Raises `refused` if the run is not being stopped."""
    found = session.client.get("workloads", name, team=team)
    if found["status"]["phase"] != "stopping":
        raise refused
    run_watch.wait(session, name, int(found["run"]["number"]), team=team, until="finished", timeout_s=timeout_s)


def _end(session: Session, waited: WaitResult, timeout: str) -> None:
    if waited.code is ExitCode.REFUSED:
        session.say(formatting.CANNOT_START)
    if waited.timed_out and waited.run["ended_at"] is None:
        doing = "queued" if waited.code is ExitCode.TIMED_OUT_QUEUED else "running"
        session.say(f"Timed out after {timeout} while {doing}: {waited.run['status']['message']}")
    if session.wants_json:
        session.give(waited.run, formatting.progress)
    raise typer.Exit(int(waited.code))


@contextmanager
def stop_on_interrupt(session: Session, name: str, number: int, team: str, is_wanted: bool) -> Iterator[None]:
    """CI systems cancel a command with SIGINT or SIGTERM. Both are handled here, and `is_wanted` stops the run, so that
    it does not keep its GPUs.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if is_wanted:
            _give_up(session, run_watch.latest(session, name, number, team), team)
        session.say(f"Stopping {name}." if is_wanted else f"{name} is still running. 'gpu stop {name}' stops it.")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def add_to(app: typer.Typer) -> None:
    for command in (launch, run, wait, stop, share):
        app.command()(command)
