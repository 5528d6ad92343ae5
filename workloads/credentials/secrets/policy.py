"""Who may keep secrets for a team, and what one may be. Pure: facts in, Refusal or None out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from workloads.core import environment, policy
from workloads.core.policy import TeamFacts

VALUE_LIMIT = 16 * 1024
SECRETS_LIMIT = 100
SEALING_UNAVAILABLE = "This portal keeps no secrets: its operators have set no key for them."


def may_change(by: Actor, team: TeamFacts) -> Refusal | None:
    """Who may launch with a secret can read it there, so it is the same people."""
    return policy.may_launch_in(by, team)


def may_put(by: Actor, team: TeamFacts, *, can_seal: bool) -> Refusal | None:
    if not can_seal:
        return Refusal("no_secrets", SEALING_UNAVAILABLE, status=409)
    return may_change(by, team)


def secret_refusal(name: str, value: str) -> Refusal | None:
    """The value itself is in no sentence."""
    if refusal := environment.env_name_refusal(name, "name"):
        return refusal
    size = len(value.encode())
    if not value or size > VALUE_LIMIT:
        text = f"The value has {size} bytes; 1 to {VALUE_LIMIT} are possible."
        return Refusal("bad_value", text, "value")
    if "\0" in value:
        return Refusal("bad_value", "The value has a NUL in it; no variable can hold that.", "value")
    return None


def may_add(count: int) -> Refusal | None:
    if count < SECRETS_LIMIT:
        return None
    text = f"The team keeps {count} secrets, at most {SECRETS_LIMIT} are possible. Delete some first."
    return Refusal("too_many_secrets", text, status=409)


def may_delete(name: str, users: Sequence[str]) -> Refusal | None:
    """`users`: what runs or waits with it."""
    if not users:
        return None
    text = f"{name} is used by {', '.join(users)}, which runs or waits. Stop that first, or replace the value."
    return Refusal("secret_in_use", text, status=409)


def unknown_secrets_refusal(asked: Collection[str], known: Collection[str]) -> Refusal | None:
    missing = sorted(set(asked) - set(known))
    if not missing:
        return None
    text = f"The team keeps no secret {missing[0]}. Add it on the page of the team's secrets, or leave it out."
    return Refusal("unknown_secret", text, "secrets")
