"""Who may launch in a team and manage a workload, and whether a class could ever start so many units. Pure: (actor,
facts) → Refusal or None. The other rules of a launch are in workloads/launch/policy.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from catalog.classes.capacity.device_memory import GIB, MemorySize, gib_text
from portal.core.errors import NOT_FOUND, Refusal
from portal.ui.text import plural, time_with_zone

WORKLOADS_LIMIT = 200

OWNER, MANAGER, MEMBER = "owner", "manager", "member"
# What happens when a budget is used up.
TELL, CONFIRM, STOP = "tell", "confirm", "stop"
LAUNCHERS = frozenset({OWNER, MANAGER, MEMBER})


@dataclass(frozen=True)
class BudgetFacts:
    """The monthly budget of a team and its cost in this month, as measured last. `until`: the end of the month.
    `is_confirmed`: an owner allowed launches beyond it.
    """

    amount: Decimal
    cost: Decimal
    at_limit: str
    is_confirmed: bool
    until: datetime


@dataclass(frozen=True)
class TeamFacts:
    """`role`: of the actor in the team, "" for staff who are not members. `workloads`: number of workloads that are not
    deleted. `budget` None: there is none, or it was not measured in this month. `is_unadopted`: its namespace existed
    before the team, and is not the team's yet.
    """

    team: str
    role: str
    namespace_wanted: str
    workloads: int
    budget: BudgetFacts | None = None
    is_unadopted: bool = False


@dataclass(frozen=True)
class ClassFacts:
    """`granted`: the most units granted at any time from now on. `node_units`: the most that one node has, None if the
    cluster was not read. `successor`: the name of the class that replaces it, "" for none. `is_usable`: the class is
    for everyone, or for this team. `terms_version` 0: no terms; `terms_accepted`: this user has accepted this version.
    `memory_sizes`: of its devices, smallest first; () if a size cannot be requested, None if not known.
    `is_spot`: the provider may reclaim its nodes at any time. `topology_levels`: node labels, widest first; () if the
    class has none, None if not known.
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
    memory_sizes: tuple[MemorySize, ...] | None = None
    is_spot: bool = False
    topology_levels: tuple[str, ...] | None = None

    @property
    def is_interruptible(self) -> bool:
        """Runs of the class may use borrowed units."""
        return self.borrowing_limit > 0


@dataclass(frozen=True)
class RunFacts:
    """Facts about the last run; `is_over` is True if there is none."""

    is_over: bool
    is_stopping: bool
    is_ready: bool
    is_deleting: bool
    created_by: int
    is_private: bool = False


def may_launch_in(by: Actor, team: TeamFacts) -> Refusal | None:
    """May the actor launch anything in this team, whatever the class?"""
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    if team.role not in LAUNCHERS:
        return Refusal(
            "not_allowed", f"Only members of {team.team} may launch. Viewers and staff can only read.", status=403
        )
    if team.is_unadopted:
        text = f"{team.team} has no namespace yet: its owner and the operators have to agree on the adoption."
        return Refusal("namespace_suspended", text, status=409)
    if team.namespace_wanted != "active":
        word = "closed" if team.namespace_wanted == "closed" else "suspended"
        text = f"{team.team} is {word}. Nothing can be started. Contact an operator."
        return Refusal("namespace_suspended", text, status=409)
    return None


def may_start_in(by: Actor, team: TeamFacts) -> Refusal | None:
    """May the actor start anything in this team now? What runs goes on whatever the budget is."""
    return may_launch_in(by, team) or budget_refusal(team)


def budget_refusal(team: TeamFacts) -> Refusal | None:
    """What staff set for a budget that is used up."""
    found = team.budget
    if found is None or not is_used_up(found) or found.at_limit == TELL:
        return None
    used = budget_note(team)
    if found.at_limit == STOP:
        text = f"{used} Nothing starts until {time_with_zone(found.until)}. Ask an operator for a larger budget."
        return Refusal("budget_used_up", text, status=409)
    if found.is_confirmed:
        return None
    text = f"{used} Ask an owner to confirm new launches on the team's page Usage."
    return Refusal("budget_unconfirmed", text, status=409)


def budget_note(team: TeamFacts) -> str:
    """What users are told before they launch; "" while less than 80 % is used."""
    found = team.budget
    if found is None or found.cost * 100 < found.amount * 80:
        return ""
    return f"{team.team} has used {found.cost} of its budget of {found.amount} for this month."


def is_used_up(budget: BudgetFacts) -> bool:
    return budget.cost >= budget.amount


def may_add(team: TeamFacts) -> Refusal | None:
    """May the team have one more workload? An existing workload may always be started and declared again."""
    if team.workloads >= WORKLOADS_LIMIT:
        return Refusal(
            "too_many_workloads",
            f"{team.team} has {team.workloads} workloads; the limit is {WORKLOADS_LIMIT}. Delete some first.",
            status=409,
        )
    return None


def may_ever_start(found: ClassFacts, units: int, workers: int = 1) -> Refusal | None:
    """Checks only numbers: can the cluster ever admit it? `units` are per worker."""
    if found.is_storage:
        text = f"{found.name} is a storage class for volumes. Workloads cannot run on it. Choose another class."
        return Refusal("storage", text, "gpu_class")
    if found.life_cycle != "active":
        way = f"Choose {found.successor or 'another class'}."
        return Refusal(
            "class_not_active",
            f"{found.name} is {found.life_cycle}: new runs cannot start on it. {way}",
            "gpu_class",
        )
    if not found.is_usable:
        return Refusal(
            "class_not_yours",
            f"{found.name} is not available to your team. Choose another class, or contact an operator.",
            "gpu_class",
        )
    if units < 1:
        return Refusal("bad_units", f"Enter at least 1 unit, not {units}.", "units")
    if units > found.units_per_workload:
        return Refusal(
            "too_many_units",
            f"{units} units of {found.name} requested; the limit is {found.units_per_workload} per "
            f"{'workload' if workers == 1 else 'worker'}. Request fewer.",
            "units",
        )
    possible = found.granted + found.borrowing_limit
    if possible == 0:
        return Refusal(
            "not_granted",
            f"Your team has no quota for {found.name} and cannot borrow it. Request quota, or choose another class.",
            "gpu_class",
        )
    if units * workers > possible:
        asked = str(units) if workers == 1 else f"{workers} workers × {units} = {units * workers}"
        borrowing = f"{found.borrowing_limit} by borrowing" if found.borrowing_limit else "no borrowing"
        return Refusal(
            "exceeds_grant",
            f"{asked} of {found.name} requested; your team can use at most {possible} ({found.granted} granted, "
            f"{borrowing}). Request fewer, or request more quota.",
            "units" if units > possible else "workers",
        )
    if found.node_units is not None and units > found.node_units:
        each = "" if workers == 1 else " for each worker"
        return Refusal(
            "exceeds_node",
            f"{units} of {found.name} requested{each}, but no node has more than {found.node_units}. Request fewer.",
            "units",
        )
    return None


def may_have_memory(found: ClassFacts, gib: int | None, units: int) -> Refusal | None:
    """Each of the units of a worker is to be a device with at least so many GiB; None: any device of the class."""
    if gib is None or found.memory_sizes is None:
        return None
    if not found.memory_sizes:
        text = f"The memory of the single devices of {found.name} is not known. Leave this empty."
        return Refusal("gpu_memory_unknown", text, "gpu_memory_gib")
    fitting = [one for one in found.memory_sizes if one.size >= gib * GIB]
    if gib < 1 or not fitting:
        largest = found.memory_sizes[-1].size
        return Refusal(
            "gpu_memory_too_large",
            f"{gib} GiB requested; the largest device of {found.name} has {gib_text(largest)} GiB. Enter 1 to "
            f"{largest // GIB}, or choose another class.",
            "gpu_memory_gib",
        )
    if units <= (most := fitting[0].on_one_node):
        return None
    text = f"{plural(units, 'unit')} requested; no node has more than {most} with at least {gib} GiB."
    return Refusal("gpu_memory_too_large", f"{text} Request fewer units, or less GPU memory.", "gpu_memory_gib")


def may_stop(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    if refusal := may_manage(by, team, run, "stop"):
        return refusal
    if run.is_over:
        return Refusal("not_running", "This workload has no queued or running run to stop.", status=409)
    return None


def may_set_visibility(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """Who can open a notebook is the choice of the person who launched it, and of nobody else."""
    if run.is_deleting:
        return NOT_FOUND
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    if run.created_by == by.user_id and team.role in LAUNCHERS:
        return None
    return Refusal("not_allowed", "Only the user who launched it can choose who can open it.", "visibility", 403)


def may_delete(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    return may_manage(by, team, run, "delete")


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
        f"Only the user who launched it, owners and managers of {team.team}, and operators may {verb} it.",
        status=403,
    )
