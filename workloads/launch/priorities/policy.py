"""Which priority a launch may have. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.manifests.run_spec import DEFAULT_PRIORITY, PRIORITIES, PRODUCTION
from portal.core.errors import Refusal

if TYPE_CHECKING:
    from workloads.core.policy import ClassFacts, TeamFacts
    from workloads.launch.options import Options
    from workloads.launch.types import LaunchSpec


def priority_refusal(said: Options) -> Refusal | None:
    return unknown_priority(said.priority) if said.priority and said.priority not in PRIORITIES else None


def unknown_priority(said: str) -> Refusal:
    text = f"Priority must be {', '.join(PRIORITIES[:-1])} or {PRIORITIES[-1]}, not '{said[:20]}'."
    return Refusal("bad_priority", text, "priority")


def may_raise_priority(team: TeamFacts, wanted: LaunchSpec) -> Refusal | None:
    """Only owners and managers may set a priority above the default of the kind."""
    asked, usual = wanted.options.priority, DEFAULT_PRIORITY[wanted.kind]
    if not asked or PRIORITIES.index(asked) >= PRIORITIES.index(usual) or team.role in ("owner", "manager"):
        return None
    text = (
        f"Only owners and managers of {team.team} may launch a {wanted.kind} with priority {asked}. "
        f"Remove the priority to use the default, {usual}."
    )
    return Refusal("priority_not_allowed", text, "priority")


def may_be_production(found: ClassFacts, units: int, said: Options) -> Refusal | None:
    """Production workloads use only the team's own quota: no priority gives access to borrowed units before other
    teams.
    """
    total = units * (said.workers or 1)
    if said.priority != PRODUCTION or total <= found.granted:
        return None
    text = (
        f"Production priority is limited to the team's quota: {total} of {found.name} requested, "
        f"{found.granted} granted. Request fewer, or choose another priority."
    )
    return Refusal("priority_beyond_grant", text, "priority")


def production_limit_refusal(name: str, units: int, *, others: int, limit: int | None) -> Refusal | None:
    """Checks `units` more of the class with production priority. `others`: units of the team's runs, running or queued,
    with that priority. `limit`: per team, set by staff; None: the team's quota, which `may_be_production` checks.
    """
    if limit is None or others + units <= limit:
        return None
    if limit == 0:
        text = f"Operators do not allow production priority on {name}. Choose interactive or batch."
        return Refusal("production_limit", text, "priority")
    text = (
        f"A team can use at most {limit} of {name} with production priority at a time: {units} requested, {others} "
        "already running or queued. Request fewer, choose interactive or batch, or wait until a run has ended. "
        "Operators can change the limit of the class."
    )
    return Refusal("production_limit", text, "priority")
