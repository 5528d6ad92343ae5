"""Work: launch, run, wait, stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from gpu_cli import show, waiting, wanted
from gpu_cli.client import Json, new_key
from gpu_cli.exits import Exit
from gpu_cli.following import print_log
from gpu_cli.lookup import Name
from gpu_cli.problems import Misused, Problem, Refused
from gpu_cli.session import AsJson, Session, Tenant, session_of
from gpu_cli.waiting import Waited

Key = Annotated[
    str, typer.Option("--key", help="Idempotency-Key: with the same one it is done once. Default: a new one.")
]
Timeout = Annotated[str, typer.Option(help="As 90s, 30m or 2h.")]
CREATED = 201
STILL_RUNNING = "still_running"
FOR_THE_NEXT = "what is different now is for its next run."


def launch(
    context: typer.Context,
    name: Name,
    kind: Annotated[str, typer.Option(help="notebook or job; left out: a job if there is a command.")] = "",
    gpu_class: wanted.GpuClass = "",
    units: wanted.Units = None,
    image: wanted.Image = "",
    volume: wanted.Volume = "",
    env: wanted.Env = None,
    secret: wanted.Secret = None,
    workers: wanted.Workers = None,
    run_hours: wanted.RunHours = None,
    file: wanted.File = "",
    accept_terms: wanted.AcceptTerms = None,
    key: Key = "",
    tenant: Tenant = "",
    json: AsJson = False,
    command: wanted.Command = None,
) -> None:
    """Declare a new notebook or job and start it. Prints the address of its page."""
    session = session_of(context)
    said = wanted.body(
        gpu_class=gpu_class, units=units, image=image, volume=volume, env=env, secret=secret, workers=workers,
        run_hours=run_hours, file=file, accept_terms=accept_terms, command=command,
    )  # fmt: skip
    if kind or "kind" not in said:
        said["kind"] = kind or ("job" if said.get("command") else "notebook")
    body = {**said, "name": name}
    made = session.client.call("POST", "workloads", query={"tenant": tenant}, body=body, key=key or new_key()).body
    session.say(show.progress({**made["run"], "status": made["status"], "estimate": made["estimate"]}))
    session.give(made, lambda found: show.plain(found["url"]))


def run(
    context: typer.Context,
    name: Name,
    gpu_class: wanted.GpuClass = "",
    units: wanted.Units = None,
    image: wanted.Image = "",
    volume: wanted.Volume = "",
    env: wanted.Env = None,
    secret: wanted.Secret = None,
    workers: wanted.Workers = None,
    run_hours: wanted.RunHours = None,
    file: wanted.File = "",
    accept_terms: wanted.AcceptTerms = None,
    declare_only: Annotated[bool, typer.Option("--declare-only", help="Start nothing.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait: print the number of the run.")] = False,
    timeout: Timeout = "1h",
    stop: Annotated[bool, typer.Option("--stop", help="Stop the run when this command gives up waiting.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Print its log when it has ended.")] = False,
    key: Key = "",
    tenant: Tenant = "",
    json: AsJson = False,
    command: wanted.Command = None,
) -> None:
    """For CI: declare a job, start a run of it, wait for its end. Without options it runs as it was declared."""
    session = session_of(context)
    timeout_s = waiting.seconds(timeout)
    body = wanted.body(
        gpu_class=gpu_class, units=units, image=image, volume=volume, env=env, secret=secret, workers=workers,
        run_hours=run_hours, file=file, accept_terms=accept_terms, command=command,
    )  # fmt: skip
    if declare_only and not body:
        raise Misused("What shall it be? --declare-only needs --class and --image, or --file.")
    query = {"tenant": tenant}
    if body:
        declared = session.client.call("PUT", "workloads", name, query=query, body={"kind": "job", **body})
        if declare_only:
            session.say(f"{name} is declared." if declared.status == CREATED else f"{name} is there; {FOR_THE_NEXT}")
            session.give(declared.body, lambda found: show.plain(found["url"]))
            return
    terms = {} if accept_terms is None else {"accept_terms": accept_terms}
    path = ("workloads", name, "runs")
    key = key or new_key()
    try:
        started = session.client.call("POST", *path, query=query, body=terms, key=key).body
    except Refused as refused:
        if refused.code != STILL_RUNNING:
            raise
        _until_stopped(session, name, tenant, timeout_s, refused)
        started = session.client.call("POST", *path, query=query, body=terms, key=key).body
    number = int(started["run"]["number"])
    session.say(f"{name}: run {number}, {started['url']}")
    if detach:
        session.give(started, lambda found: str(found["run"]["number"]))
        return
    with stopped_if_interrupted(session, name, tenant, stop):
        waited = waiting.wait(session, name, number, tenant=tenant, until="finished", timeout_s=timeout_s)
    if stop and waited.run["ended_at"] is None:
        _stop(session, name, tenant)
    if log and waited.run["started_at"] is not None:
        try:
            print_log(session, waited.run["tenant"], name)
        except Problem as problem:
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
    timeout_s = waiting.seconds(timeout)
    if until and until not in waiting.UNTIL:
        raise Misused(f"--until is one of {', '.join(waiting.UNTIL)}.")
    if number is None or not until:
        found = session.client.get("workloads", name, tenant=tenant)
        if found["run"] is None:
            raise Misused(f"{name} was never started: 'gpu run {name}'.")
        number = number or int(found["run"]["number"])
        until = until or ("finished" if found["kind"] == "job" else "ready")
    _end(session, waiting.wait(session, name, number, tenant=tenant, until=until, timeout_s=timeout_s), timeout)


def stop(context: typer.Context, name: Name, tenant: Tenant = "", json: AsJson = False) -> None:
    """Stop its run, and give the units back."""
    session = session_of(context)
    session.give(_stop(session, name, tenant), lambda found: show.progress({**found, "estimate": None}))


def _stop(session: Session, name: str, tenant: str) -> Json:
    """Asking twice is asking once."""
    path = ("workloads", name, "stop")
    found: Json = session.client.call("POST", *path, query={"tenant": tenant}, is_repeatable=True).body
    return found


def _until_stopped(session: Session, name: str, tenant: str, timeout_s: float, refused: Refused) -> None:
    """A newer push comes while the run of an older one is being stopped: its end is near. Any other run stays."""
    found = session.client.get("workloads", name, tenant=tenant)
    if found["status"]["phase"] != "stopping":
        raise refused
    waiting.wait(session, name, int(found["run"]["number"]), tenant=tenant, until="finished", timeout_s=timeout_s)


def _end(session: Session, waited: Waited, timeout: str) -> None:
    if waited.code is Exit.REFUSED:
        session.say("As it is asked for it can never start.")
    if waited.timed_out and waited.run["ended_at"] is None:
        doing = "queued" if waited.code is Exit.TIMED_OUT_QUEUED else "running"
        session.say(f"Timed out after {timeout} while {doing}: {waited.run['status']['message']}")
    if session.wants_json:
        session.give(waited.run, show.progress)
    raise typer.Exit(int(waited.code))


@contextmanager
def stopped_if_interrupted(session: Session, name: str, tenant: str, is_wanted: bool) -> Iterator[None]:
    """CI cancels a job by SIGINT or SIGTERM: both end here, and the cards do not stay behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if is_wanted:
            _stop(session, name, tenant)
        session.say(f"{name} is being stopped." if is_wanted else f"{name} goes on: 'gpu stop {name}' stops it.")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def add_to(app: typer.Typer) -> None:
    for command in (launch, run, wait, stop):
        app.command()(command)
