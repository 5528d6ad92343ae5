"""The exit codes, as a table: scripts rely on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from accounts.models import ApiToken, User
from gpu_cli.api.errors import UsageError
from gpu_cli.api.exit_codes import ExitCode, exit_code
from gpu_cli.main import app
from gpu_cli.run_watch import has_reached, next_stage, parse_duration
from tenants.models import Namespace, Tenant
from tests.cli.command import Gpu, answered
from tests.support.rows import make

AT = "2026-11-22T10:00:00Z"


def run(phase: str, *moments: str, outcome: str = "", verdict: str = "") -> dict[str, Any]:
    names = ("admitted_at", "started_at", "ready_at", "ended_at")
    status = {"phase": phase, "verdict": verdict}
    return {
        **{name: AT if name.removesuffix("_at") in moments else None for name in names},
        "outcome": outcome,
        "status": status,
    }


WAITS = run("queued", verdict="not_yet")
NEVER = run("blocked", verdict="never")
ASSIGNED = run("preparing", "admitted")
STARTS = run("starting", "admitted", "started")
RUNS = run("running", "admitted", "started", "ready")
# Kueue evicted it; its times are those of the first admission.
PUT_BACK = run("queued", "admitted", "started", "ready")
# The image does not exist: the pod is on a node and stays there.
STUCK = run("blocked", "admitted", verdict="stuck")
LOST_ITS_CLASS = run("running", "admitted", "started", verdict="never")


@pytest.mark.parametrize(
    ("found", "timed_out", "expected"),
    [
        (run("succeeded", "admitted", "started", "ended", outcome="succeeded"), False, 0),
        (run("succeeded", "admitted", "started", "ended", outcome="succeeded"), True, 0),
        (run("failed", "admitted", "started", "ended", outcome="failed"), False, 1),
        (run("failed", "admitted", "started", "ended", outcome="failed", verdict="over"), True, 1),
        (run("failed", "ended", outcome="lost"), False, 1),
        (run("stopped", "ended", outcome="stopped"), False, 1),
        (NEVER, False, 6),
        (NEVER, True, 6),
        (WAITS, True, 3),
        (PUT_BACK, True, 3),
        (ASSIGNED, True, 4),
        (STUCK, True, 4),
        (STARTS, True, 4),
        (RUNS, True, 4),
        (LOST_ITS_CLASS, True, 4),
        (RUNS, False, 0),
        (ASSIGNED, False, 0),
    ],
)
def test_exit_codes(found: dict[str, Any], timed_out: bool, expected: int) -> None:
    assert exit_code(found, timed_out=timed_out) is ExitCode(expected)


@pytest.mark.parametrize(
    ("found", "reached"),
    [
        (WAITS, []),
        (ASSIGNED, ["admitted"]),
        (STARTS, ["admitted"]),
        (RUNS, ["admitted", "ready"]),
        (run("failed", "ended", outcome="failed"), ["admitted", "ready", "finished"]),
    ],
)
def test_what_is_reached_and_what_is_waited_for_next(found: dict[str, Any], reached: list[str]) -> None:
    stages = ["admitted", "ready", "finished"]
    assert [stage for stage in stages if has_reached(found, stage)] == reached
    expected = "finished" if len(reached) > 1 else stages[len(reached)]
    assert next_stage(found, "finished") == expected
    assert next_stage(found, "admitted") == "admitted"


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("0", 0)])
def test_times(text: str, expected: float) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1", "1d", "1.5h", "9999999"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_duration(text)


# One call of every command that sends something, with arguments that are complete.
LINE = ("--until", "2027-03-31", "--because", "A course.")
MAINTENANCE = ("--kind", "hardware", "--reason", "A fan.", "--start", "2027-03-30", "--end", "2027-03-31")
JOB = ("--class", "a100", "--image", "PyTorch")
COMMANDS = (
    ("classes",),
    ("capacity",),
    ("quota",),
    ("usage",),
    ("budget",),
    ("idle",),
    ("faults",),
    ("status",),
    ("status", "train"),
    ("why", "train"),
    ("open", "train"),
    ("request", "new", "a100=1", *LINE),
    ("request", "list"),
    ("request", "show", "12"),
    ("request", "wait", "12"),
    ("request", "withdraw", "12"),
    ("inbox", "list"),
    ("inbox", "show", "12"),
    ("inbox", "approve", "12"),
    ("inbox", "deny", "12", "--reason", "Reserved."),
    ("token", "list"),
    ("token", "create", "ci"),
    ("token", "revoke", "udsqhhsz"),
    ("announcements",),
    ("ops", "health"),
    ("ops", "nodes"),
    ("ops", "queue"),
    ("ops", "teams"),
    ("ops", "observe-only", "show"),
    ("ops", "observe-only", "begin"),
    ("ops", "observe-only", "end"),
    ("ops", "adoption", "list"),
    ("ops", "adoption", "show", "vision"),
    ("ops", "adoption", "propose", "vision", "--slug", "vision", "--name", "Vision", "--owner", "alice@example.org"),
    ("ops", "adoption", "undo", "vision"),
    ("ops", "announce", "list"),
    ("ops", "announce", "show", "3"),
    ("ops", "announce", "publish", "Tonight", "--text", "x", "--until", "2027-03-30"),
    ("ops", "announce", "change", "3", "--until", "2027-03-30"),
    ("ops", "announce", "withdraw", "3"),
    ("ops", "mig-sets", "list"),
    ("ops", "mig-sets", "plan", "NVIDIA-A100-SXM4-80GB:80:mixed"),
    ("ops", "measurements", "list", "node-1"),
    ("ops", "measurements", "record", "node-1", __file__),
    ("ops", "measurements", "withdraw", "node-1", "3", "--reason", "Another job ran there."),
    ("ops", "maintenance", "list"),
    ("ops", "maintenance", "show", "3"),
    ("ops", "maintenance", "plan", "node-1", *MAINTENANCE),
    ("ops", "maintenance", "confirm", "3"),
    ("ops", "maintenance", "cancel", "3"),
    ("ops", "maintenance", "release", "3"),
    ("launch", "train", *JOB),
    ("run", "train", *JOB),
    ("wait", "train"),
    ("stop", "train"),
    ("share", "train"),
    ("maintenance", "train"),
    ("maintenance", "train", "--at-drain", "stop", "--maintenance", "3"),
    ("logs", "train"),
    ("notices",),
    ("watch",),
)


def names_of_commands() -> set[tuple[str, ...]]:
    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if not hasattr(command, "commands"):
            yield path
            return
        for name, one in command.commands.items():
            yield from below(one, (*path, name))

    return set(below(typer.main.get_command(app), ()))


def test_every_command_is_tried_below() -> None:
    depths = {"request": 2, "inbox": 2, "token": 2, "ops": 3}
    tried = {tuple(one[: depths.get(one[0], 1)]) for one in COMMANDS}
    assert tried | {("login",), ("logout",)} == names_of_commands()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_usage_error_no_token_a_bad_token_and_a_refusal_are_told_apart(
    gpu: Gpu, command: tuple[str, ...], team_a: Tenant
) -> None:
    assert gpu(*command, "--no-such-option").code == ExitCode.USAGE == 2
    token = gpu.environment.pop("GPU_TOKEN")
    assert gpu(*command).code == ExitCode.NOT_SIGNED_IN == 7
    assert gpu.between.asked == []
    gpu.environment["GPU_TOKEN"] = "gpt_aaaaaaaa_" + 43 * "x"
    assert gpu(*command).code == ExitCode.NOT_SIGNED_IN
    gpu.environment["GPU_TOKEN"] = token
    gpu.between.faults.append(answered(403, body={"code": "not_allowed", "message": "No.", "field": None}))
    assert gpu(*command).code == ExitCode.REFUSED == 6


def test_a_token_that_was_revoked_or_has_expired_is_none(gpu: Gpu, bob: User, team_a: Tenant) -> None:
    ApiToken.objects.update(revoked_at="2026-01-01T00:00Z")
    assert gpu("status").code == ExitCode.NOT_SIGNED_IN
    ApiToken.objects.update(revoked_at=None, expires_at="2026-01-01T00:00Z")
    assert gpu("status").code == ExitCode.NOT_SIGNED_IN


def test_a_team_that_has_to_be_named_is_a_missing_argument_wherever_it_is_noticed(
    gpu: Gpu, bob: User, namespace_a: Namespace
) -> None:
    make.member(make.tenant(namespace_a.cluster, slug="team-b", namespace="team-b"), bob)
    assert [gpu(one).code for one in ("status", "quota")] == [ExitCode.USAGE] * 2
    assert [gpu(one, "--team", "nobody").code for one in ("status", "quota")] == [ExitCode.REFUSED] * 2


def test_who_is_in_no_team_is_refused_wherever_it_is_noticed(gpu: Gpu, db: None) -> None:
    assert [gpu(one).code for one in ("status", "quota")] == [ExitCode.REFUSED] * 2
