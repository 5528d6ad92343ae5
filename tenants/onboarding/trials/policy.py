"""Who may begin a trial, and when none is offered. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from tenants.grants import types as grant_types


def may_begin_trial(by: Actor, *, team: str, has_tried: bool) -> Refusal | None:
    """`team`: name of a team that the person is in, "" for none. Once per person; checked before a class is chosen."""
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if has_tried:
        return Refusal(
            "tried_before", "You have already used your trial. Join a team, or request your own team.", status=409
        )
    if team:
        text = f"You are a member of {team}. Launch workloads there, or ask its owners to request quota."
        return Refusal("has_team", text, status=409)
    return None


def trial_refusal(excess: grant_types.Overcommit | None) -> Refusal | None:
    """`excess`: by how much one more unit would exceed the class's allocation limit."""
    if excess is None:
        return None
    if excess.limit is None:
        why = f"the capacity of {excess.class_name} is unknown (no current cluster data)"
    else:
        why = f"the allocation limit of {excess.class_name} ({excess.limit}) is reached"
    return Refusal("no_trial_now", f"Trials are not available: {why}. Try again later, or join a team.", status=409)


def last_unit_taken(class_name: str) -> Refusal:
    text = f"Trials are not available: the last unit of {class_name} was just allocated. Try again later."
    return Refusal("no_trial_now", text, status=409)


def starter_rule_refusal(*, is_on: bool) -> Refusal | None:
    if is_on:
        return None
    text = "Trials are turned off. Join a team, or request your own team."
    return Refusal("no_trial_now", text, status=409)
