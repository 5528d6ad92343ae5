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
    text = f"A priority is {', '.join(PRIORITIES[:-1])} or {PRIORITIES[-1]}, not '{said[:20]}'."
    return Refusal("bad_priority", text, "priority")


def may_raise_priority(team: TeamFacts, wanted: LaunchSpec) -> Refusal | None:
    """More than its kind has anyway is the word of those who answer for the team."""
    asked, usual = wanted.options.priority, DEFAULT_PRIORITY[wanted.kind]
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


def production_limit_refusal(name: str, units: int, *, others: int, limit: int | None) -> Refusal | None:
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
