"""Who may begin a trial, and when none is offered. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from tenants.grants import types as grant_types


def may_begin_trial(by: Actor, *, team: str, has_tried: bool) -> Refusal | None:
    """`team`: the name of one that the person is in, "" for none. Once each, and asked before there is a class."""
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if has_tried:
        return Refusal("tried_before", "You have had your trial. Join a team, or ask for one of your own.", status=409)
    if team:
        text = f"You are in {team}: launch there, or let its owners ask for more."
        return Refusal("has_team", text, status=409)
    return None


def trial_refusal(excess: grant_types.Overcommit | None) -> Refusal | None:
    """`excess`: what one unit more would promise beyond the class's limit."""
    if excess is None:
        return None
    if excess.limit is None:
        why = f"what {excess.class_name} can give is not known at the moment (no fresh data from the cluster)"
    else:
        why = f"all units of {excess.class_name} that may be promised ({excess.limit}) are promised already"
    return Refusal("no_trial_now", f"No trial now: {why}. Try again later, or join a team.", status=409)


def last_unit_taken(class_name: str) -> Refusal:
    text = f"No trial now: the last unit of {class_name} was promised to somebody else just now. Try again later."
    return Refusal("no_trial_now", text, status=409)


def starter_rule_refusal(*, is_on: bool) -> Refusal | None:
    if is_on:
        return None
    text = "Trials are switched off at the moment. Join a team, or ask for one of your own."
    return Refusal("no_trial_now", text, status=409)
