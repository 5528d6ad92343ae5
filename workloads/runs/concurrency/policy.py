"""Decides in which concurrency group a run may start, and who may stop the runs that it replaces. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from workloads.core import policy
from workloads.core.constraints import GROUP_LIMIT, STILL_RUNNING
from workloads.core.policy import RunFacts, TeamFacts


@dataclass(frozen=True)
class RunRequest:
    """`group`: the concurrency group, for example a branch; "" for none. `cancel_running`: the run replaces queued and
    running runs of the group. `accept_terms`: as in `LaunchSpec`.
    """

    group: str = ""
    cancel_running: bool = False
    accept_terms: int = 0


def group_refusal(push: RunRequest) -> Refusal | None:
    if len(push.group) > GROUP_LIMIT or not push.group.isprintable() or push.group != push.group.strip():
        text = (
            f"Enter a group of 1 to {GROUP_LIMIT} characters in one line, without spaces at its ends. Nothing was "
            "started."
        )
        return Refusal("bad_group", text, "group")
    if push.cancel_running and not push.group:
        text = "cancel_running stops queued and running runs of a group. Set group. Nothing was started."
        return Refusal("group_missing", text, "group")
    return None


def may_supersede(by: Actor, team: TeamFacts, run: RunFacts, *, name: str, group: str) -> Refusal | None:
    """May the actor stop a run of another workload (`name`), or withdraw the request for its next run?"""
    refusal = policy.may_manage(by, team, run, "stop")
    if refusal is None or refusal.code != "not_allowed":
        return refusal
    text = (
        f"'{name}' is queued or running in the group {group}. Only the person who launched it, owners and managers of "
        f"{team.team}, and operators may stop it. Nothing was stopped or started. Omit cancel_running, or ask one of "
        "them."
    )
    return Refusal("not_allowed", text, "cancel_running", status=403)


def may_replace_own_run(running: str, group: str) -> Refusal | None:
    """`running`: the group of the workload's own run that has not ended. A workload has at most one such run."""
    if running == group:
        return None
    whose = f"It is of the group {running}" if running else "It has no group"
    text = f"{STILL_RUNNING} {whose}, so a run of the group {group} does not stop it."
    return Refusal("still_running", text, status=409)
