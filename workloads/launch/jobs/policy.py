"""Options that only jobs have: several workers and where they are, a script, retries, checkpoints. Pure.

Units, CPU and memory are per worker; grants and limits count all workers.
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
# The longest name of a node label: a domain, / and a name.
LEVEL_LIMIT = 253 + 1 + 63


def job_options_refusal(wanted: LaunchSpec) -> Refusal | None:
    """Checks the shape of the entered options."""
    said = wanted.options
    if wanted.kind != JOB:
        return _of_jobs_alone(said)
    if wanted.visibility:
        text = "A job cannot be opened. Only notebooks have a visibility."
        return Refusal("notebooks_only", text, "visibility")
    if said.accepts_interruption:
        text = "A job is interrupted only if it uses checkpointing: send checkpoints instead of accepts_interruption."
        return Refusal("notebooks_only", text, "accepts_interruption")
    return _workers(wanted) or _script(wanted) or _retries(said)


def _of_jobs_alone(said: Options) -> Refusal | None:
    if said.workers not in (None, 1):
        return Refusal("jobs_only", "A notebook has 1 worker. Only jobs can have several.", "workers")
    if said.script:
        return Refusal("jobs_only", "A notebook runs JupyterLab. Only jobs can have a script.", "script")
    if said.retries:
        text = "A notebook is not retried after a crash. Only jobs can have retries."
        return Refusal("jobs_only", text, "retries")
    if said.topology_level:
        text = "A notebook is one pod and runs on one node. Only jobs can have a topology level."
        return Refusal("jobs_only", text, "topology_level")
    return priority_refusal(said)


def _workers(wanted: LaunchSpec) -> Refusal | None:
    count = 1 if wanted.options.workers is None else wanted.options.workers
    if not 1 <= count <= WORKERS_LIMIT:
        return Refusal("bad_workers", f"Enter 1 to {WORKERS_LIMIT} workers, not {count}.", "workers")
    if count == 1:
        return None
    if not wanted.name[:1].isalpha():
        text = "The name of a job with several workers must start with a letter. Choose another name."
        return Refusal("bad_name", text, "name")
    names = [*(name for name, _value in wanted.options.env), *wanted.options.secrets]
    if taken := sorted(SET_FOR_WORKERS.intersection(names)):
        field = "secrets" if taken[0] in wanted.options.secrets else "env"
        text = f"The portal sets {taken[0]} for each worker. Remove it."
        return Refusal("forbidden_variable", text, field)
    return None


def _script(wanted: LaunchSpec) -> Refusal | None:
    script = wanted.options.script
    if script and wanted.command:
        return Refusal(
            "command_and_script", "A job runs a command or a script, not both. Remove one of them.", "script"
        )
    if len(script) > SCRIPT_LIMIT or "\0" in script:
        text = f"A script can have at most {SCRIPT_LIMIT:,} characters; this one has {len(script):,}. "
        return Refusal("bad_script", f"{text}Put a longer script into a repository.", "script")
    return None


def _retries(said: Options) -> Refusal | None:
    retries = said.retries or 0
    if not 0 <= retries <= RETRIES_LIMIT:
        text = f"Enter 0 to {RETRIES_LIMIT} retries, not {retries}."
        return Refusal("bad_retries", text, "retries")
    return priority_refusal(said)


def must_accept_interruption(found: ClassFacts, kind: str, said: Options) -> Refusal | None:
    """A job that may use borrowed units, which the lender can reclaim, or spot nodes, which the provider can reclaim,
    must save checkpoints. A notebook cannot: its owner accepts the loss of a spot node.
    """
    if kind != JOB:
        return _must_accept_spot(found, said)
    if said.checkpoints or not (found.is_interruptible or found.is_spot):
        return None
    if found.is_spot:
        return Refusal(
            "checkpoints_not_confirmed",
            f"{found.name} has spot nodes, which the provider can reclaim at any time. Confirm that this job uses "
            "checkpointing, or choose a class without spot nodes.",
            "checkpoints",
        )
    return Refusal(
        "checkpoints_not_confirmed",
        f"Jobs on {found.name} can run on borrowed units and are preempted when the lender reclaims them. Confirm that "
        "this job uses checkpointing, or choose a class without borrowing.",
        "checkpoints",
    )


def level_refusal(found: ClassFacts, said: Options) -> Refusal | None:
    """All workers are to be in one domain of a level that the class has. Unknown levels refuse nothing: if there is no
    such level, Kueue says so.
    """
    level, levels = said.topology_level, found.topology_levels
    if not level:
        text = "A required topology needs a level. Choose one, or send topology_required: false."
        return Refusal("bad_topology_level", text, "topology_level") if said.topology_required else None
    if levels is None or level in levels:
        return None
    if not levels:
        text = f"{found.name} has no topology with levels. Leave the level empty, or choose another class."
    else:
        text = f"{found.name} has no level '{level[:LEVEL_LIMIT]}'. Its levels are {', '.join(levels)}."
    return Refusal("bad_topology_level", text, "topology_level")


def _must_accept_spot(found: ClassFacts, said: Options) -> Refusal | None:
    if not found.is_spot or said.accepts_interruption:
        return None
    return Refusal(
        "interruption_not_accepted",
        f"{found.name} has spot nodes, which the provider can reclaim at any time: the notebook then loses its "
        "memory and restarts. Accept this in the form or send accepts_interruption: true, or choose a class without "
        "spot nodes.",
        "accepts_interruption",
    )
