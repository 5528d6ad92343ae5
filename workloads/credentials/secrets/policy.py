"""Who may store secrets for a team, and which values are valid. Pure: facts in, Refusal or None out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from workloads.core import environment, policy
from workloads.core.policy import TeamFacts

VALUE_LIMIT = 16 * 1024
SECRETS_LIMIT = 100
SEALING_UNAVAILABLE = "This portal cannot store secrets: no encryption key is configured. Contact an operator."


def may_change(by: Actor, team: TeamFacts) -> Refusal | None:
    """Members who may launch may change secrets: they can read a secret inside a run anyway."""
    return policy.may_launch_in(by, team)


def may_put(by: Actor, team: TeamFacts, *, can_seal: bool) -> Refusal | None:
    if not can_seal:
        return Refusal("no_secrets", SEALING_UNAVAILABLE, status=409)
    return may_change(by, team)


def secret_refusal(name: str, value: str) -> Refusal | None:
    """No sentence contains the value."""
    if refusal := environment.env_name_refusal(name, "name"):
        return refusal
    size = len(value.encode())
    if not value or size > VALUE_LIMIT:
        text = f"The value has {size} bytes. Enter 1 to {VALUE_LIMIT} bytes."
        return Refusal("bad_value", text, "value")
    if "\0" in value:
        return Refusal("bad_value", "The value contains a NUL character, which a variable cannot contain.", "value")
    return None


def may_add(count: int) -> Refusal | None:
    if count < SECRETS_LIMIT:
        return None
    text = f"The team has {count} secrets; the limit is {SECRETS_LIMIT}. Delete some first."
    return Refusal("too_many_secrets", text, status=409)


def may_delete(name: str, users: Sequence[str]) -> Refusal | None:
    """`users`: queued and running workloads that use the secret."""
    if not users:
        return None
    text = f"Queued or running workloads use {name}: {', '.join(users)}. Stop them first, or replace the value."
    return Refusal("secret_in_use", text, status=409)


def unknown_secrets_refusal(asked: Collection[str], known: Collection[str]) -> Refusal | None:
    missing = sorted(set(asked) - set(known))
    if not missing:
        return None
    text = f"The team has no secret {missing[0]}. Add it on the team's Secrets page, or remove it here."
    return Refusal("unknown_secret", text, "secrets")
