"""Workloads: `gpu launch`, `gpu run`, `gpu wait`, `gpu stop`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from httpx import URL

from gpu_cli import formatting, run_watch
from gpu_cli.api.client import Answer, Json, new_idempotency_key
from gpu_cli.api.errors import CommandError, Refused, UsageError
from gpu_cli.api.exit_codes import ExitCode
from gpu_cli.commands import launch_options
from gpu_cli.log_stream import print_log
from gpu_cli.run_watch import WaitResult
from gpu_cli.session import AsJson, Name, Session, Tenant, session_of

Key = Annotated[
    str, typer.Option("--key", help="Idempotency-Key: with the same one it is done once. Default: a new one.")
]
Timeout = Annotated[str, typer.Option(help="As 90s, 30m or 2h.")]
CREATED = 201
STILL_RUNNING = "still_running"
FOR_THE_NEXT = "what is different now is for its next run."


@launch_options.with_launch_options
def launch(
    context: typer.Context,
    name: Name,
    kind: Annotated[str, typer.Option(help="notebook or job; left out: a job if there is a command.")] = "",
    *,
    said: Json,
    key: Key = "",
    tenant: Tenant = "",
    json: AsJson = False,
) -> None:
    """Declare a new notebook or job and start it. Prints the address of its page."""
    session = session_of(context)
    if kind or "kind" not in said:
        said["kind"] = kind or ("job" if said.get("command") else "notebook")
    body = {**said, "name": name}
    made = session.client.call(
        "POST", "workloads", query={"tenant": tenant}, body=body, key=key or new_idempotency_key()
    ).body
    session.say(formatting.progress({**made["run"], "status": made["status"], "estimate": made["estimate"]}))
    session.give(made, lambda found: formatting.plain(found["url"]))


@launch_options.with_launch_options
def run(
    context: typer.Context,
    name: Name,
    *,
    said: Json,
    group: Annotated[str, typer.Option(help="What the run is for, a branch for example.")] = "",
    cancel_running: Annotated[
        bool, typer.Option("--cancel-running", help="In place of what runs or waits of the --group in the team.")
    ] = False,
    declare_only: Annotated[bool, typer.Option("--declare-only", help="Start nothing.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait: print the number of the run.")] = False,
    timeout: Timeout = "1h",
    stop: Annotated[bool, typer.Option("--stop", help="Stop the run when this command gives up waiting.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Print its log when it has ended.")] = False,
    key: Key = "",
    tenant: Tenant = "",
    json: AsJson = False,
) -> None:
    """For CI: declare a job, start a run of it, wait for its end. Without options it runs as it was declared."""
    session = session_of(context)
    timeout_s = run_watch.parse_duration(timeout)
    if declare_only and not said:
        raise UsageError("What shall it be? --declare-only needs --class and --image, or --file.")
    if said:
        declared = session.client.call("PUT", "workloads", name, query={"tenant": tenant}, body={"kind": "job", **said})
        if declare_only:
            session.say(f"{name} is declared." if declared.status == CREATED else f"{name} is there; {FOR_THE_NEXT}")
            session.give(declared.body, lambda found: formatting.plain(found["url"]))
            return
    # The portal's to judge: whether there is a group, and one in form.
    push = {name: of for name, of in (("group", group), ("cancel_running", cancel_running)) if of}
    terms = {name: of for name, of in said.items() if name == "accept_terms"}
    number = _start(session, name, tenant, {**push, **terms}, key or new_idempotency_key(), timeout_s)
    if detach:
        # Where nobody asks for more, nothing more is asked: the number is known, whatever happens to the portal.
        found = session.client.get("workloads", name, "runs", str(number), tenant=tenant) if json else {}
        session.give(found, lambda _found: str(number))
        return
    with stop_on_interrupt(session, name, number, tenant, stop):
        waited = run_watch.wait(session, name, number, tenant=tenant, until="finished", timeout_s=timeout_s)
    if stop:
        _give_up(session, waited.run, tenant)
    if log and waited.run["started_at"] is not None:
        try:
            print_log(session, waited.run["tenant"], name)
        except CommandError as problem:
            # The exit code is the run's.
            session.say(str(problem))
    _end(session, waited, timeout)


def wait(
    context: typer.Context,
    name: Name,
    number: Annotated[int | None, typer.Option("--run", help="Number of a run. Default: the last one.")] = None,
    until: Annotated[str, typer.Option(help="admitted, ready or finished. Default: ready, of a job finished.")] = "",
    timeout: Timeout = "1h",
    tenant: Tenant = "",
    json: AsJson = False,
) -> None:
    """Wait until it is so far, and tell what it waits for."""
    session = session_of(context)
    timeout_s = run_watch.parse_duration(timeout)
    if until and until not in run_watch.UNTIL:
        raise UsageError(f"--until is one of {', '.join(run_watch.UNTIL)}.")
    if number is None or not until:
        found = session.client.get("workloads", name, tenant=tenant)
        if found["run"] is None:
            raise UsageError(f"{name} was never started: 'gpu run {name}'.")
        number = number or int(found["run"]["number"])
        until = until or ("finished" if found["kind"] == "job" else "ready")
    _end(session, run_watch.wait(session, name, number, tenant=tenant, until=until, timeout_s=timeout_s), timeout)


def stop(context: typer.Context, name: Name, tenant: Tenant = "", json: AsJson = False) -> None:
    """Stop its run, and give the units back."""
    session = session_of(context)
    session.give(_stop(session, name, tenant), lambda found: formatting.progress({**found, "estimate": None}))


def _stop(session: Session, name: str, tenant: str) -> Json:
    """Asking twice is asking once."""
    path = ("workloads", name, "stop")
    found: Json = session.client.call("POST", *path, query={"tenant": tenant}, is_repeatable=True).body
    return found


def _give_up(session: Session, run: Json, tenant: str) -> None:
    """What ends already may be followed by the run of a newer push, which another stop would take back."""
    if run["ended_at"] is None and run["status"]["phase"] != "stopping":
        _stop(session, run["workload"], tenant)


def _start(session: Session, name: str, tenant: str, body: Json, key: str, timeout_s: float) -> int:
    """Number of the run, which may be one that begins when the one before it has ended."""

    def start() -> Answer:
        path = ("workloads", name, "runs")
        return session.client.call("POST", *path, query={"tenant": tenant}, body=body, key=key)

    try:
        started = start()
    except Refused as refused:
        if refused.code != STILL_RUNNING:
            raise
        _until_stopped(session, name, tenant, timeout_s, refused)
        started = start()
    number = int(URL(started.location).path.rpartition("/")[2])
    session.say(f"{name}: run {number}, {started.body['url']}")
    return number


def _until_stopped(session: Session, name: str, tenant: str, timeout_s: float, refused: Refused) -> None:
    """A newer push comes while the run of an older one is being stopped: its end is near. Any other run stays."""
    found = session.client.get("workloads", name, tenant=tenant)
    if found["status"]["phase"] != "stopping":
        raise refused
    run_watch.wait(session, name, int(found["run"]["number"]), tenant=tenant, until="finished", timeout_s=timeout_s)


def _end(session: Session, waited: WaitResult, timeout: str) -> None:
    if waited.code is ExitCode.REFUSED:
        session.say("As it is asked for it can never start.")
    if waited.timed_out and waited.run["ended_at"] is None:
        doing = "queued" if waited.code is ExitCode.TIMED_OUT_QUEUED else "running"
        session.say(f"Timed out after {timeout} while {doing}: {waited.run['status']['message']}")
    if session.wants_json:
        session.give(waited.run, formatting.progress)
    raise typer.Exit(int(waited.code))


@contextmanager
def stop_on_interrupt(session: Session, name: str, number: int, tenant: str, is_wanted: bool) -> Iterator[None]:
    """CI cancels a job by SIGINT or SIGTERM: both end here, and the cards do not stay behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if is_wanted:
            _give_up(session, run_watch.latest(session, name, number, tenant), tenant)
        session.say(f"{name} is being stopped." if is_wanted else f"{name} goes on: 'gpu stop {name}' stops it.")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def add_to(app: typer.Typer) -> None:
    for command in (launch, run, wait, stop):
        app.command()(command)
