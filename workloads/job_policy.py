"""What only a job may be asked to do: several workers, a script, tries, and being interrupted. Pure.

A priority is of notebooks too. Units, cpu and memory are of each worker; grants and limits count all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.models import Scope
from accounts.policy import scope_refusal
from cluster.manifests.workers import SET_FOR_WORKERS
from cluster.run_spec import JOB, PRIORITIES, PRODUCTION, USUAL_PRIORITY
from portal.errors import Refusal

if TYPE_CHECKING:
    from accounts.actor import Actor
    from workloads.options import Options
    from workloads.policy import ClassFacts, TeamFacts, Wanted

WORKERS_LIMIT = 256
RETRIES_LIMIT = 10
SCRIPT_LIMIT = 20_000
BECAUSE_LIMIT = 200


def may_be_so(wanted: Wanted) -> Refusal | None:
    """The shape of what was typed."""
    said = wanted.options
    if wanted.kind != JOB:
        return _of_jobs_alone(said)
    return _workers(wanted) or _script(wanted) or _retries(said)


def _of_jobs_alone(said: Options) -> Refusal | None:
    if (said.workers or 1) != 1:
        return Refusal("jobs_only", "A notebook is one worker; a job may have several.", "workers")
    if said.script:
        return Refusal("jobs_only", "A notebook runs JupyterLab and takes no script; a job does.", "script")
    if said.retries:
        text = "A notebook is not tried again when it crashes; a job may be."
        return Refusal("jobs_only", text, "retries")
    return _priority(said)


def _workers(wanted: Wanted) -> Refusal | None:
    count = 1 if wanted.options.workers is None else wanted.options.workers
    if not 1 <= count <= WORKERS_LIMIT:
        return Refusal("bad_workers", f"A job has 1 to {WORKERS_LIMIT} workers; {count} is not possible.", "workers")
    if count == 1:
        return None
    if not wanted.name[:1].isalpha():
        text = "Workers find each other by the job's name, which begins with a letter then; choose another."
        return Refusal("bad_name", text, "name")
    if wanted.volume:
        return Refusal(
            "volume_on_one_node",
            f"A volume is attached to one node at a time, and {count} workers may be on several. "
            "Ask for 1 worker, or leave the volume out and keep files in an object store.",
            "volume",
        )
    names = [*(name for name, _value in wanted.options.env), *wanted.options.secrets]
    if taken := sorted(SET_FOR_WORKERS.intersection(names)):
        field = "secrets" if taken[0] in wanted.options.secrets else "env"
        text = f"{taken[0]} is set by the portal for each of several workers. Leave it out."
        return Refusal("forbidden_variable", text, field)
    return None


def _script(wanted: Wanted) -> Refusal | None:
    script = wanted.options.script
    if script and wanted.command:
        return Refusal("command_and_script", "A job runs a command or a script, not both. Leave one out.", "script")
    if len(script) > SCRIPT_LIMIT or "\0" in script:
        text = f"A script has at most {SCRIPT_LIMIT:,} characters; this one has {len(script):,}. "
        return Refusal("bad_script", f"{text}Put more into a repository.", "script")
    return None


def _retries(said: Options) -> Refusal | None:
    retries = said.retries or 0
    if not 0 <= retries <= RETRIES_LIMIT:
        text = f"A crash is tried again 0 to {RETRIES_LIMIT} times; {retries} is not possible."
        return Refusal("bad_retries", text, "retries")
    return _priority(said)


def _priority(said: Options) -> Refusal | None:
    return _priority_refusal(said.priority) if said.priority and said.priority not in PRIORITIES else None


def _priority_refusal(said: str) -> Refusal:
    text = f"A priority is {', '.join(PRIORITIES[:-1])} or {PRIORITIES[-1]}, not '{said[:20]}'."
    return Refusal("bad_priority", text, "priority")


def may_go_first(team: TeamFacts, wanted: Wanted) -> Refusal | None:
    """More than its kind has anyway is the word of those who answer for the team."""
    asked, usual = wanted.options.priority, USUAL_PRIORITY[wanted.kind]
    if not asked or PRIORITIES.index(asked) >= PRIORITIES.index(usual) or team.role in ("owner", "manager"):
        return None
    text = (
        f"Only owners and managers of {team.team} may let a {wanted.kind} go first as {asked}; "
        f"leave the priority out, and it is {usual}."
    )
    return Refusal("priority_not_allowed", text, "priority")


def may_be_production(found: ClassFacts, units: int, said: Options) -> Refusal | None:
    """What others depend on runs on what the team was promised: no priority gets borrowed units before other teams."""
    total = units * (said.workers or 1)
    if said.priority != PRODUCTION or total <= found.granted:
        return None
    text = (
        f"Production work runs on what the team was promised: {total} of {found.name} asked, "
        f"{found.granted} granted. Ask for fewer, or for another priority."
    )
    return Refusal("priority_beyond_grant", text, "priority")


def may_be_one_more(name: str, units: int, *, others: int, limit: int | None) -> Refusal | None:
    """`units` of the class more that shall go first as production. `others`: of the team, at work or waiting as such.
    `limit`: what staff let one team have; None: no more than it was granted, which `may_be_production` says.
    """
    if limit is None or others + units <= limit:
        return None
    if limit == 0:
        text = f"No work on {name} may be production; the operators say so. Ask for interactive or batch."
        return Refusal("production_limit", text, "priority")
    text = (
        f"At most {limit} of {name} may be production work of one team at a time: {units} asked, {others} are so "
        "already. Ask for fewer, or for interactive or batch, or wait until one of them has ended; operators may "
        "change the limit of the class."
    )
    return Refusal("production_limit", text, "priority")


def may_set_priority(by: Actor) -> Refusal | None:
    """Of what waits, once it was asked for."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    text = "Only operators change the priority of what waits. Stop it, and launch it with another one, or ask them."
    return Refusal("not_allowed", text, status=403)


def may_move(priority: str, because: str, *, is_over: bool, is_stopping: bool, holds_units: bool) -> Refusal | None:
    """Of one run. `because`: what its people read."""
    if priority not in PRIORITIES:
        return _priority_refusal(priority)
    if not 1 <= len(because) <= BECAUSE_LIMIT:
        text = f"Say why, in up to {BECAUSE_LIMIT} characters: who asked for the run reads it."
        return Refusal("reason_missing", text, "because")
    if is_over or is_stopping:
        return Refusal("not_running", "Nothing of it waits any more; there is nothing to move.", status=409)
    if holds_units:
        text = "It has its units already; a priority can be changed while a run waits."
        return Refusal("not_waiting", text, status=409)
    return None


def must_checkpoint(found: ClassFacts, kind: str, said: Options) -> Refusal | None:
    """Where a run may be on borrowed units, which are taken back when their owner needs them."""
    if kind != JOB or not found.is_interruptible or said.checkpoints:
        return None
    return Refusal(
        "checkpoints_not_confirmed",
        f"Jobs on {found.name} may run on borrowed units and are interrupted when their owner needs them. Confirm that "
        "this job saves its work and goes on from there, or choose a class without borrowing.",
        "checkpoints",
    )
