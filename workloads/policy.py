"""Who may do what with workloads, and which launches can never start. Pure: (actor, facts, wanted) → Refusal or None.

A launch is refused only if it can never start; everything else is accepted and queues.
"""

from __future__ import annotations

from dataclasses import dataclass

from accounts.actor import Actor
from accounts.models import Scope
from accounts.policy import scope_refusal
from cluster import names
from cluster.run_spec import JOB, NOTEBOOK
from portal.errors import NOT_FOUND, Refusal
from workloads import job_policy
from workloads import options as launch_options
from workloads.models import STILL_RUNNING
from workloads.options import NOTHING_SAID, Bounds, Options

NAME_LIMIT = 40
WORKLOADS_LIMIT = 200
VOLUME_GIB_LIMIT = 2048
COMMAND_WORDS_LIMIT = 64
COMMAND_WORD_LENGTH_LIMIT = 4096

OWNER, MANAGER, MEMBER = "owner", "manager", "member"
LAUNCHERS = frozenset({OWNER, MANAGER, MEMBER})


@dataclass(frozen=True)
class Wanted:
    """What a person typed. `volume` is "" for files that end with the run; a new volume gets `volume_gib`. `units` are
    of each worker.

    `accept_terms`: the version of the class's terms that was ticked, 0 for none.
    """

    name: str
    kind: str
    gpu_class: str
    units: int
    image: str
    command: tuple[str, ...] = ()
    volume: str = ""
    volume_gib: int = 10
    accept_terms: int = 0
    options: Options = NOTHING_SAID

    @property
    def workers(self) -> int:
        return self.options.workers or 1

    @property
    def total_units(self) -> int:
        return self.units * self.workers


@dataclass(frozen=True)
class TeamFacts:
    """`role`: of the actor in the team, "" for staff who are no member. `workloads`: not deleted ones."""

    team: str
    role: str
    namespace_wanted: str
    workloads: int


@dataclass(frozen=True)
class ClassFacts:
    """`granted`: the most units promised at any instant from now on. `node_units`: the most that one node has, None
    when the cluster was not read. `successor`: the name of the class that replaces it, "" for none.
    `is_usable`: it is for everyone, or for this team. `terms_version` 0: no terms; `terms_accepted`: this very version,
    by this person.
    """

    slug: str
    name: str
    life_cycle: str
    granted: int
    borrowing_limit: int
    units_per_workload: int
    node_units: int | None
    cpu_per_unit: int = 1
    memory_gib_per_unit: int = 1
    kinds: str = "any"
    successor: str = ""
    is_usable: bool = True
    terms_version: int = 0
    terms_accepted: bool = False
    run_hours_limit: int | None = None
    is_storage: bool = False

    @property
    def is_interruptible(self) -> bool:
        """Its runs may be on borrowed units."""
        return self.borrowing_limit > 0


@dataclass(frozen=True)
class RunFacts:
    """Of the last run; `is_over` is True when there is none."""

    is_over: bool
    is_stopping: bool
    is_ready: bool
    is_deleting: bool
    created_by: int


def may_launch_in(by: Actor, team: TeamFacts) -> Refusal | None:
    """Anything at all, whatever the class."""
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    if team.role not in LAUNCHERS:
        return Refusal(
            "not_allowed", f"Only members of {team.team} may launch here; viewers and staff look on.", status=403
        )
    if team.namespace_wanted != "active":
        word = "closed" if team.namespace_wanted == "closed" else "suspended"
        text = f"{team.team} is {word}: nothing can start. Ask the operators."
        return Refusal("namespace_suspended", text, status=409)
    return None


def may_add(team: TeamFacts) -> Refusal | None:
    """One workload more; what is there already may always be started and declared again."""
    if team.workloads >= WORKLOADS_LIMIT:
        return Refusal(
            "too_many_workloads",
            f"{team.team} has {team.workloads} workloads, at most {WORKLOADS_LIMIT} are possible. Delete some first.",
            status=409,
        )
    return None


def may_launch_any(by: Actor, team: TeamFacts, *, has_class: bool) -> Refusal | None:
    """For the launch buttons. `has_class`: there is one that the team holds, will hold or may borrow."""
    if refusal := may_launch_in(by, team) or may_add(team):
        return refusal
    return None if has_class else Refusal("not_granted", "Your team holds no class yet; request quota first.")


def may_ever_start(found: ClassFacts, units: int, workers: int = 1) -> Refusal | None:
    """Numbers only: would the cluster take it, however long it waits? `units` are of each worker."""
    if found.is_storage:
        text = f"{found.name} is storage for volumes: nothing runs on it. Choose another class."
        return Refusal("storage", text, "gpu_class")
    if found.life_cycle != "active":
        way = f"Choose {found.successor or 'another class'}."
        return Refusal(
            "class_not_active",
            f"{found.name} is {found.life_cycle}: nothing new starts on it. {way}",
            "gpu_class",
        )
    if not found.is_usable:
        return Refusal(
            "class_not_yours",
            f"{found.name} is kept for other teams now. Choose another class, or ask the operators.",
            "gpu_class",
        )
    if units < 1:
        return Refusal("bad_units", f"Ask for 1 unit at least; {units} is not possible.", "units")
    if units > found.units_per_workload:
        return Refusal(
            "too_many_units",
            f"{units} units of {found.name} asked, at most {found.units_per_workload} per "
            f"{'workload' if workers == 1 else 'worker'}. Ask for fewer.",
            "units",
        )
    possible = found.granted + found.borrowing_limit
    if possible == 0:
        return Refusal(
            "not_granted",
            f"Your team holds no {found.name} and may not borrow any. Request quota for it, or choose another class.",
            "gpu_class",
        )
    if units * workers > possible:
        asked = str(units) if workers == 1 else f"{workers} workers × {units} = {units * workers}"
        borrowing = f"{found.borrowing_limit} by borrowing" if found.borrowing_limit else "no borrowing"
        return Refusal(
            "exceeds_grant",
            f"{asked} of {found.name} asked, at most {possible} possible here ({found.granted} granted, {borrowing}). "
            "Ask for fewer, or request more quota.",
            "units" if units > possible else "workers",
        )
    if found.node_units is not None and units > found.node_units:
        each = "" if workers == 1 else " for each worker"
        return Refusal(
            "exceeds_node",
            f"{units} of {found.name} asked{each}, but no node has more than {found.node_units}. Ask for fewer.",
            "units",
        )
    return None


def may_run(found: ClassFacts, kind: str) -> Refusal | None:
    """Notebooks, jobs or both: what operators keep a class for."""
    if found.kinds in ("any", kind):
        return None
    return Refusal(
        "kind_not_offered",
        f"{found.name} is for {found.kinds}s only. Choose another class for a {kind}.",
        "gpu_class",
    )


def must_accept(found: ClassFacts, ticked: int) -> Refusal | None:
    """Before the first start on a class with terms, and again for each new version of them."""
    if not found.terms_version or found.terms_accepted or ticked == found.terms_version:
        return None
    version = found.terms_version
    stale = f" Version {ticked} is not the one in force." if ticked else ""
    return Refusal(
        "terms_not_accepted",
        f"{found.name} has terms, version {version}, that you have not accepted yet.{stale} "
        f"Read them, then tick them in the form or send accept_terms: {version}.",
        "accept_terms",
    )


def may_be_called(wanted: Wanted) -> Refusal | None:
    """The shape of what was typed."""
    if not names.is_dns_label(wanted.name, limit=NAME_LIMIT):
        return Refusal(
            "bad_name",
            f"Use lower-case letters, digits and single hyphens inside, up to {NAME_LIMIT} characters; "
            f"'{wanted.name[:NAME_LIMIT]}' is not possible.",
            "name",
        )
    if wanted.kind not in (NOTEBOOK, JOB):
        return Refusal("bad_kind", f"A workload is a notebook or a job, not '{wanted.kind[:20]}'.", "kind")
    if wanted.kind == NOTEBOOK and wanted.command:
        return Refusal("no_command", "A notebook runs JupyterLab and takes no command; a job does.", "command")
    if len(wanted.command) > COMMAND_WORDS_LIMIT or any(
        len(word) > COMMAND_WORD_LENGTH_LIMIT or "\0" in word for word in wanted.command
    ):
        return Refusal(
            "bad_command",
            f"A command has at most {COMMAND_WORDS_LIMIT} words of {COMMAND_WORD_LENGTH_LIMIT} characters. "
            "Put more into a script in the image.",
            "command",
        )
    if wanted.volume and not names.is_dns_label(wanted.volume, limit=NAME_LIMIT):
        return Refusal(
            "bad_volume",
            f"A volume's name has lower-case letters, digits and single hyphens, up to {NAME_LIMIT} characters.",
            "volume",
        )
    if wanted.volume and not 1 <= wanted.volume_gib <= VOLUME_GIB_LIMIT:
        return Refusal(
            "bad_volume_size",
            f"A volume has 1 to {VOLUME_GIB_LIMIT} GiB; {wanted.volume_gib} is not possible.",
            "volume_gib",
        )
    return job_policy.may_be_so(wanted)


def may_launch(by: Actor, team: TeamFacts, found: ClassFacts, wanted: Wanted) -> Refusal | None:
    """A new one, with its first run."""
    return may_declare(by, team, found, wanted) or may_add(team)


def may_declare(by: Actor, team: TeamFacts, found: ClassFacts, wanted: Wanted) -> Refusal | None:
    """Whether new or not."""
    return (
        may_launch_in(by, team)
        or may_be_called(wanted)
        or may_start_on(found, wanted.kind, wanted.units, wanted.options)
        or job_policy.may_go_first(team, wanted)
        or launch_options.refusal(wanted.options, bounds(found, wanted.units), has_volume=bool(wanted.volume))
        or must_accept(found, wanted.accept_terms)
    )


def bounds(found: ClassFacts, units: int) -> Bounds:
    cpu, memory_gib = units * found.cpu_per_unit, units * found.memory_gib_per_unit
    return Bounds(found.name, units, cpu=cpu, memory_gib=memory_gib, run_hours=found.run_hours_limit)


def may_start_on(found: ClassFacts, kind: str, units: int, said: Options) -> Refusal | None:
    """What the class says, whoever asks; terms are the person's (`must_accept`)."""
    return (
        may_ever_start(found, units, said.workers or 1)
        or may_run(found, kind)
        or job_policy.may_be_production(found, units, said)
        or job_policy.must_checkpoint(found, kind, said)
    )


def may_start(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """Another run of a workload that exists, as far as its class does not matter (`may_start_on`, `must_accept`)."""
    if run.is_deleting:
        return NOT_FOUND
    if not run.is_over:
        return Refusal("still_running", STILL_RUNNING, status=409)
    return may_launch_in(by, team)


def may_change(by: Actor, team: TeamFacts, run: RunFacts, *, kind: str, wanted: Wanted) -> Refusal | None:
    """Declare a workload that exists differently."""
    if refusal := may_manage(by, team, run, "change"):
        return refusal
    if kind != wanted.kind:
        return Refusal("kind_fixed", f"'{wanted.name}' is a {kind}; a {wanted.kind} needs another name.", "kind", 409)
    return None


def may_stop(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    if refusal := may_manage(by, team, run, "stop"):
        return refusal
    if run.is_over:
        return Refusal("not_running", "Nothing of it runs or waits; there is nothing to stop.", status=409)
    return None


def may_restart(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """Stop what runs, and start it again as it is declared when it has ended."""
    return may_stop(by, team, run) or may_launch_in(by, team)


def may_follow(*, is_active: bool, name: str) -> Refusal | None:
    """When the run that is to be followed has ended. `name`: of the person who asked; all else is asked again then."""
    if is_active:
        return None
    return Refusal("account_suspended", f"The account of {name}, who asked for it, is suspended.", status=409)


def may_delete(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    return may_manage(by, team, run, "delete")


def may_open(by: Actor, team: TeamFacts, run: RunFacts, kind: str) -> Refusal | None:
    """A notebook runs code as the team: members only, staff included only where they are members."""
    if kind != NOTEBOOK:
        return Refusal("not_a_notebook", "A job has no page of its own; read its log instead.", status=409)
    if refusal := may_open_any(team):
        return refusal
    if run.is_stopping and not run.is_over:
        return Refusal("not_running", "This notebook is stopping. It opens when it was started again.", status=409)
    if run.is_over:
        return Refusal("not_running", "This notebook does not run. Start it first.", status=409)
    if not run.is_ready:
        return Refusal("not_ready", "This notebook is not ready yet; it opens when it is.", status=409)
    return None


def may_open_any(team: TeamFacts) -> Refusal | None:
    """For lists: the notebooks of this team that are ready."""
    if team.role not in LAUNCHERS:
        return Refusal("not_allowed", f"Only members of {team.team} may open its notebooks.", status=403)
    return None


def may_manage(by: Actor, team: TeamFacts, run: RunFacts, verb: str) -> Refusal | None:
    if run.is_deleting:
        return NOT_FOUND
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    if by.operates or team.role in (OWNER, MANAGER):
        return None
    if team.role == MEMBER and run.created_by == by.user_id:
        return None
    return Refusal(
        "not_allowed",
        f"Only who launched it, owners and managers of {team.team}, and operators may {verb} it.",
        status=403,
    )
