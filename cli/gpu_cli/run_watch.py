"""Waits for a run, in calls that the portal answers when something changes, and prints each new status."""

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
# A portal that is about to end answers waiting calls at once.
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


def wait(session: Session, name: str, number: int, *, tenant: str, until: str, timeout_s: float) -> WaitResult:
    """Of this run, and of the one that was begun in its place where it was interrupted."""
    client, now = session.client, session.outside.now
    ends_at = now() + timeout_s
    pause_s = 0.0
    with Progress(session) as progress:
        run = latest(session, name, number, tenant)
        while True:
            progress.tell(with_estimate(session, run, tenant))
            if has_reached(run, until) or can_never_start(run):
                return WaitResult(run, timed_out=False)
            if (left_s := ends_at - now()) <= 0:
                return WaitResult(run, timed_out=True)
            session.outside.sleep(min(pause_s, left_s))
            asked_at, wait_s = now(), min(WAIT_S, math.ceil(max(left_s - pause_s, 1)))
            path = ("workloads", name, "runs", str(run["number"]))
            try:
                answer = client.wait(*path, wait_s=wait_s, until=next_stage(run, until), tenant=tenant)
            except Refused as refused:
                raise _not_begun(session, run, tenant, refused) from None
            run = answer.body
            if run["followed_by"] is not None:
                run = latest(session, name, run["followed_by"], tenant)
            pause_s = answer.retry_after_s or max(0.0, LEAST_GAP_S - (now() - asked_at))


def latest(session: Session, name: str, number: int, tenant: str) -> Json:
    """This run, or the one that was begun in its place where it was interrupted."""
    while True:
        run: Json = session.client.get("workloads", name, "runs", str(number), tenant=tenant)
        if run["followed_by"] is None:
            return run
        number = run["followed_by"]


def _not_begun(session: Session, run: Json, tenant: str, refused: Refused) -> Refused:
    """Why a run that was to follow another is not there any more: that one's last words."""
    if run["requested_at"] is not None:
        return refused
    before = session.client.get("workloads", run["workload"], "runs", str(run["number"] - 1), tenant=tenant)
    text = f"Run {run['number']} did not begin. {before['status']['message']}"
    return Refused(text, status=refused.status, body=refused.body)


def with_estimate(session: Session, run: Json, tenant: str) -> Json:
    """When what waits may start stands in the workload, which tells of its last run."""
    waits = run["ended_at"] is None and run["status"]["phase"] in ("queued", "blocked")
    if not waits or can_never_start(run):
        return run
    workload = session.client.get("workloads", run["workload"], tenant=tenant)
    is_its = workload["run"] is not None and workload["run"]["number"] == run["number"]
    return {**run, "estimate": workload["estimate"] if is_its else None}


def has_reached(run: Mapping[str, Any], until: str) -> bool:
    """What has ended gets no further."""
    is_at_work = run["ready_at"] is not None or run["status"]["phase"] in ("ready", "running")
    reached = {"admitted": run["admitted_at"] is not None, "ready": is_at_work, "finished": False}[until]
    return reached or run["ended_at"] is not None


def next_stage(run: Mapping[str, Any], until: str) -> str:
    """So that a person hears of each on the way."""
    return next(stage for stage in UNTIL if stage == until or not has_reached(run, stage))


def parse_duration(text: str) -> float:
    found = DURATION.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' is no time: write 90s, 30m or 2h.")
    return float(int(found[1]) * SECONDS[found[2]])


class Progress(AbstractContextManager["Progress"]):
    """On stderr: at a terminal one line that changes in its place; elsewhere a line for each change."""

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
        """The last sentence stays."""
        self._open.close()
        if self._status is not None:
            self._session.say(self._told)
            self._status = None

    def __exit__(self, *_error: object) -> None:
        self.end()
