"""Waits for a run or a decision with long polling, and prints each new status."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from rich.status import Status

from gpu_cli import formatting
from gpu_cli.api.client import Json
from gpu_cli.api.errors import Refused, UsageError
from gpu_cli.api.exit_codes import ExitCode, can_never_start, exit_code
from gpu_cli.session import Session

UNTIL = ("admitted", "ready", "finished")
WAIT_S = 60
# Shortest time between two calls: a portal that is shutting down answers long polling calls at once.
LEAST_GAP_S = 1.0
DURATION = re.compile(r"(\d{1,6})([smh]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class WaitResult:
    run: Json
    timed_out: bool

    @property
    def code(self) -> ExitCode:
        return exit_code(self.run, timed_out=self.timed_out)


def wait(session: Session, name: str, number: int, *, team: str, until: str, timeout_s: float) -> WaitResult:
    """Waits until this run, or the run that replaced it after an interruption, has reached `until`."""
    client, now = session.client, session.outside.now
    ends_at = now() + timeout_s
    pause_s = 0.0
    with Progress(session) as progress:
        run = latest(session, name, number, team)
        while True:
            progress.tell(with_estimate(session, run, team))
            if has_reached(run, until) or can_never_start(run):
                return WaitResult(run, timed_out=False)
            if (left_s := ends_at - now()) <= 0:
                return WaitResult(run, timed_out=True)
            session.outside.sleep(min(pause_s, left_s))
            asked_at, wait_s = now(), _wait_s(left_s - pause_s)
            path = ("workloads", name, "runs", str(run["number"]))
            try:
                answer = client.wait(*path, wait_s=wait_s, until=next_stage(run, until), team=team)
            except Refused as refused:
                raise _not_begun(session, run, team, refused) from None
            run = answer.body
            if run["followed_by"] is not None:
                run = latest(session, name, run["followed_by"], team)
            pause_s = answer.retry_after_s or max(0.0, LEAST_GAP_S - (now() - asked_at))


def wait_for_decision(session: Session, number: int, *, timeout_s: float) -> Json:
    """Returns the request when no line is pending, or after this time."""
    client, now = session.client, session.outside.now
    ends_at, pause_s = now() + timeout_s, 0.0
    found: Json = client.get("requests", str(number))
    if found["state"] == "pending":
        session.say(formatting.request(found))
    while found["state"] == "pending" and (left_s := ends_at - now()) > 0:
        session.outside.sleep(min(pause_s, left_s))
        asked_at = now()
        answer = client.wait("requests", str(number), wait_s=_wait_s(left_s - pause_s))
        found = answer.body
        pause_s = answer.retry_after_s or max(0.0, LEAST_GAP_S - (now() - asked_at))
    return found


def _wait_s(left_s: float) -> int:
    return min(WAIT_S, math.ceil(max(left_s, 1)))


def latest(session: Session, name: str, number: int, team: str) -> Json:
    """Returns this run, or the last of the runs that replaced it after interruptions."""
    while True:
        run: Json = session.client.get("workloads", name, "runs", str(number), team=team)
        if run["followed_by"] is None:
            return run
        number = run["followed_by"]


def _not_begun(session: Session, run: Json, team: str, refused: Refused) -> Refused:
    """Returns the error for a run that was to replace another and was never created: the message of the earlier run
    says why.
    """
    if run["requested_at"] is not None:
        return refused
    before = session.client.get("workloads", run["workload"], "runs", str(run["number"] - 1), team=team)
    text = f"Run {run['number']} did not start. {before['status']['message']}"
    return Refused(text, status=refused.status, body=refused.body)


def with_estimate(session: Session, run: Json, team: str) -> Json:
    """Returns a queued run with its start estimate. The API returns the estimate only with the workload, for its last
    run.
    """
    waits = run["ended_at"] is None and run["status"]["phase"] in ("queued", "blocked")
    if not waits or can_never_start(run):
        return run
    workload = session.client.get("workloads", run["workload"], team=team)
    is_its = workload["run"] is not None and workload["run"]["number"] == run["number"]
    return {**run, "estimate": workload["estimate"] if is_its else None}


def has_reached(run: Mapping[str, Any], until: str) -> bool:
    """Returns whether the run has reached this stage, or has ended and so can reach no other stage."""
    is_at_work = run["ready_at"] is not None or run["status"]["phase"] in ("ready", "running")
    reached = {"admitted": run["admitted_at"] is not None, "ready": is_at_work, "finished": False}[until]
    return reached or run["ended_at"] is not None


def next_stage(run: Mapping[str, Any], until: str) -> str:
    """Returns the next stage to wait for. Each stage before `until` is awaited, so that it is reported."""
    return next(stage for stage in UNTIL if stage == until or not has_reached(run, stage))


def parse_duration(text: str) -> float:
    found = DURATION.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' is not a duration. Use for example 90s, 30m or 2h.")
    return float(int(found[1]) * SECONDS[found[2]])


class Progress(AbstractContextManager["Progress"]):
    """The status of a run on stderr: in a terminal one line that is updated, otherwise a new line for each change."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._told = ""
        self._status: Status | None = None
        self._open = ExitStack()

    def tell(self, run: Json) -> None:
        text = formatting.progress(run)
        if text == self._told:
            return
        self._told = text
        if not self._session.is_watched:
            self._session.say(text)
        elif self._status is None:
            self._status = self._open.enter_context(self._session.spinner(text))
        else:
            self._status.update(text)

    def end(self) -> None:
        """Ends the updated line, and prints its last text."""
        self._open.close()
        if self._status is not None:
            self._session.say(self._told)
            self._status = None

    def __exit__(self, *_error: object) -> None:
        self.end()
