"""Which launches can never start, because of their shape or their class. Pure. A launch is refused only if it can never
start; all others are accepted and queued.
"""

from __future__ import annotations

from accounts.core.actor import Actor
from cluster.manifests import names
from cluster.manifests.run_spec import JOB, NOTEBOOK
from portal.core.errors import NOT_FOUND, Refusal
from workloads.core.constraints import STILL_RUNNING
from workloads.core.policy import (
    ClassFacts,
    RunFacts,
    TeamFacts,
    budget_refusal,
    may_add,
    may_ever_start,
    may_have_memory,
    may_launch_in,
    may_manage,
    may_start_in,
)
from workloads.launch import options
from workloads.launch.jobs import policy as job_policy
from workloads.launch.options import OptionBounds, Options
from workloads.launch.priorities import policy as priority_policy
from workloads.launch.types import LaunchSpec

NAME_LIMIT = 40

VOLUME_GIB_LIMIT = 2048

COMMAND_WORDS_LIMIT = 64

COMMAND_WORD_LENGTH_LIMIT = 4096


def may_launch_any(by: Actor, team: TeamFacts, *, has_class: bool) -> Refusal | None:
    """For the launch buttons. `has_class`: the team has, will have or may borrow quota for a class."""
    if refusal := may_start_in(by, team) or may_add(team):
        return refusal
    return None if has_class else Refusal("not_granted", "Your team has no quota yet. Request quota first.")


def may_run_kind(found: ClassFacts, kind: str) -> Refusal | None:
    """The class accepts notebooks, jobs or both, as set by operators."""
    if found.kinds in ("any", kind):
        return None
    return Refusal(
        "kind_not_offered",
        f"{found.name} is for {found.kinds}s only. Choose another class for a {kind}.",
        "gpu_class",
    )


def must_accept_terms(found: ClassFacts, ticked: int) -> Refusal | None:
    """Terms are accepted before the first start on a class with terms, and again for each new version."""
    if not found.terms_version or found.terms_accepted or ticked == found.terms_version:
        return None
    version = found.terms_version
    stale = f" Version {ticked} is not in force." if ticked else ""
    return Refusal(
        "terms_not_accepted",
        f"You have not accepted the terms of {found.name}, version {version}.{stale} "
        f"Read them, then accept them in the form or send accept_terms: {version}.",
        "accept_terms",
    )


def spec_refusal(wanted: LaunchSpec) -> Refusal | None:
    """Checks the shape of the entered values."""
    if not names.is_dns_label(wanted.name, limit=NAME_LIMIT):
        return Refusal(
            "bad_name",
            f"Use lower-case letters, digits and single hyphens inside, up to {NAME_LIMIT} characters; "
            f"'{wanted.name[:NAME_LIMIT]}' is not valid.",
            "name",
        )
    if wanted.kind not in (NOTEBOOK, JOB):
        return Refusal("bad_kind", f"A workload is a notebook or a job, not '{wanted.kind[:20]}'.", "kind")
    if wanted.kind == NOTEBOOK and wanted.command:
        return Refusal("no_command", "A notebook runs JupyterLab. Only jobs can have a command.", "command")
    if len(wanted.command) > COMMAND_WORDS_LIMIT or any(
        len(word) > COMMAND_WORD_LENGTH_LIMIT or "\0" in word for word in wanted.command
    ):
        return Refusal(
            "bad_command",
            f"A command can have at most {COMMAND_WORDS_LIMIT} words of {COMMAND_WORD_LENGTH_LIMIT} characters. "
            "Put a longer command into a script in the image.",
            "command",
        )
    if wanted.volume and not names.is_dns_label(wanted.volume, limit=NAME_LIMIT):
        return Refusal(
            "bad_volume",
            f"Use lower-case letters, digits and single hyphens for a volume's name, up to {NAME_LIMIT} characters.",
            "volume",
        )
    if wanted.volume and not 1 <= wanted.volume_gib <= VOLUME_GIB_LIMIT:
        return Refusal(
            "bad_volume_size",
            f"Enter a volume size of 1 to {VOLUME_GIB_LIMIT} GiB, not {wanted.volume_gib}.",
            "volume_gib",
        )
    return job_policy.job_options_refusal(wanted)


def may_launch(by: Actor, team: TeamFacts, found: ClassFacts, wanted: LaunchSpec) -> Refusal | None:
    """May the actor create this workload with its first run?"""
    return may_declare(by, team, found, wanted) or budget_refusal(team) or may_add(team)


def may_declare(by: Actor, team: TeamFacts, found: ClassFacts, wanted: LaunchSpec) -> Refusal | None:
    """May the actor declare this workload, new or existing?"""
    return (
        may_launch_in(by, team)
        or spec_refusal(wanted)
        or may_start_on(found, wanted.kind, wanted.units, wanted.options)
        or priority_policy.may_raise_priority(team, wanted)
        or options.options_refusal(wanted.options, option_bounds(found, wanted.units), has_volume=bool(wanted.volume))
        or must_accept_terms(found, wanted.accept_terms)
    )


def option_bounds(found: ClassFacts, units: int) -> OptionBounds:
    cpu, memory_gib = units * found.cpu_per_unit, units * found.memory_gib_per_unit
    return OptionBounds(found.name, units, cpu=cpu, memory_gib=memory_gib, run_hours=found.run_hours_limit)


def may_start_on(found: ClassFacts, kind: str, units: int, said: Options) -> Refusal | None:
    """Checks the limits of the class, independent of the user. Terms are per user (`must_accept`)."""
    return (
        may_ever_start(found, units, said.workers or 1)
        or may_run_kind(found, kind)
        or may_have_memory(found, said.gpu_memory_gib, units)
        or priority_policy.may_be_production(found, units, said)
        or job_policy.must_accept_interruption(found, kind, said)
        or job_policy.level_refusal(found, said)
    )


def may_start(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """May the actor start another run of an existing workload? The class is checked by `may_start_on` and
    `must_accept`.
    """
    if run.is_deleting:
        return NOT_FOUND
    if not run.is_over:
        return Refusal("still_running", STILL_RUNNING, status=409)
    return may_start_in(by, team)


def may_change(by: Actor, team: TeamFacts, run: RunFacts, *, kind: str, wanted: LaunchSpec) -> Refusal | None:
    """May the actor change the declaration of an existing workload?"""
    if refusal := may_manage(by, team, run, "change"):
        return refusal
    if kind != wanted.kind:
        return Refusal(
            "kind_fixed", f"'{wanted.name}' is a {kind}. Choose another name for a {wanted.kind}.", "kind", 409
        )
    return None
