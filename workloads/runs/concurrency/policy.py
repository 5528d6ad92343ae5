"""Which concurrency group a run may be started in, and who may stop the runs that it replaces. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from workloads.core import policy
from workloads.core.constraints import GROUP_LIMIT, STILL_RUNNING
from workloads.core.policy import RunFacts, TeamFacts


@dataclass(frozen=True)
class RunRequest:
    """`group`: what it is for, a branch for one; "" for nothing. `cancel_running`: in place of what runs or waits of
    the group. `accept_terms`: as of `LaunchSpec`.
    """

    group: str = ""
    cancel_running: bool = False
    accept_terms: int = 0


def group_refusal(push: RunRequest) -> Refusal | None:
    if len(push.group) > GROUP_LIMIT or not push.group.isprintable() or push.group != push.group.strip():
        text = (
            f"A group has 1 to {GROUP_LIMIT} characters in one line, without spaces at its ends. Nothing was started."
        )
        return Refusal("bad_group", text, "group")
    if push.cancel_running and not push.group:
        text = "cancel_running stops what runs or waits of a group: say which in group. Nothing was started."
        return Refusal("group_missing", text, "group")
    return None


def may_supersede(by: Actor, team: TeamFacts, run: RunFacts, *, name: str, group: str) -> Refusal | None:
    """Stop a run of another workload, `name`, or take back that it is to be followed when it has ended."""
    refusal = policy.may_manage(by, team, run, "stop")
    if refusal is None or refusal.code != "not_allowed":
        return refusal
    text = (
        f"'{name}' runs or waits in the group {group}. Only who launched it, owners and managers of {team.team}, and "
        "operators may stop it. Nothing was stopped or started; leave cancel_running out, or ask one of them."
    )
    return Refusal("not_allowed", text, "cancel_running", status=403)


def may_replace_own_run(running: str, group: str) -> Refusal | None:
    """`running`: the group of the workload's own run that has not ended; it has one at a time."""
    if running == group:
        return None
    whose = f"of the group {running}" if running else "of no group"
    text = f"{STILL_RUNNING.rstrip('.')}. It is {whose}, so that a push of {group} does not stop it."
    return Refusal("still_running", text, status=409)
