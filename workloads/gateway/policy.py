"""Who may open a notebook. Pure. The gateway asks the same of every later request (authorization.py)."""

from __future__ import annotations

from accounts.core.actor import Actor
from cluster.manifests.run_spec import NOTEBOOK
from portal.core.errors import Refusal
from workloads.core.policy import LAUNCHERS, RunFacts, TeamFacts, may_set_visibility


def may_open(by: Actor, team: TeamFacts, run: RunFacts, kind: str, owner: str = "") -> Refusal | None:
    """A notebook runs code with the team's rights: only members may open it, and staff only if they are members. A
    private one opens for the person who launched it, called `owner`, and for nobody else.
    """
    if kind != NOTEBOOK:
        return Refusal("not_a_notebook", "Only notebooks can be opened. For a job, read its log.", status=409)
    if refusal := may_open_any(team):
        return refusal
    if run.is_private and run.created_by != by.user_id:
        text = f"This notebook is private to {owner}. Ask {owner} to share it, or duplicate it to work in your own."
        return Refusal("private_notebook", text, status=403)
    if run.is_stopping and not run.is_over:
        return Refusal("not_running", "This notebook is stopping. Start it again to open it.", status=409)
    if run.is_over:
        return Refusal("not_running", "This notebook is not running. Start it first.", status=409)
    if not run.is_ready:
        return Refusal("not_ready", "This notebook is not ready yet. You can open it when it is ready.", status=409)
    return None


def may_share(by: Actor, team: TeamFacts, run: RunFacts, kind: str) -> Refusal | None:
    """May the actor choose who can open it?"""
    if kind != NOTEBOOK:
        return Refusal("not_a_notebook", "Only notebooks can be opened, so only they can be shared.", status=409)
    return may_set_visibility(by, team, run)


def may_open_any(team: TeamFacts) -> Refusal | None:
    """May the actor open ready notebooks of this team that are shared? For lists."""
    if team.role not in LAUNCHERS:
        return Refusal("not_allowed", f"Only members of {team.team} may open its notebooks.", status=403)
    return None
