"""What only a job may be asked to do: several workers, a script, retries, checkpoints. Pure.

Units, cpu and memory are of each worker; grants and limits count all workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.manifests.run_spec import JOB
from cluster.manifests.workers import SET_FOR_WORKERS
from portal.core.errors import Refusal
from workloads.launch.priorities.policy import priority_refusal

if TYPE_CHECKING:
    from workloads.core.policy import ClassFacts
    from workloads.launch.options import Options
    from workloads.launch.types import LaunchSpec

WORKERS_LIMIT = 256
RETRIES_LIMIT = 10
SCRIPT_LIMIT = 20_000


def job_options_refusal(wanted: LaunchSpec) -> Refusal | None:
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
    return priority_refusal(said)


def _workers(wanted: LaunchSpec) -> Refusal | None:
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


def _script(wanted: LaunchSpec) -> Refusal | None:
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
    return priority_refusal(said)


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
