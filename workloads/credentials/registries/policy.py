"""Who keeps credentials of registries for a team, and what they may be. Pure: facts in, Refusal or None out."""

from __future__ import annotations

from collections.abc import Sequence

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from workloads.core.policy import MANAGER, OWNER, TeamFacts
from workloads.credentials.secrets.policy import SEALING_UNAVAILABLE

USERNAME_LIMIT = 200
# As a service account's key in JSON.
PASSWORD_LIMIT = 16 * 1024
MANAGING = (OWNER, MANAGER)


def may_change(by: Actor, team: TeamFacts) -> Refusal | None:
    """Also of a suspended team: what it signs in with can always be taken away."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if team.role in MANAGING:
        return None
    text = f"Credentials of registries are kept by owners and managers of {team.team}."
    return Refusal("not_allowed", text, status=403)


def may_put(by: Actor, team: TeamFacts, *, can_seal: bool) -> Refusal | None:
    if not can_seal:
        return Refusal("no_secrets", SEALING_UNAVAILABLE, status=409)
    return may_change(by, team)


def unused_registry_refusal(registry: str, hosts: Sequence[str]) -> Refusal | None:
    """`hosts`: of the prefixes that are allowed to the team. Elsewhere nothing of it would ever be used."""
    if registry in hosts:
        return None
    known = f"There are some of {', '.join(hosts)}." if hosts else "There is none yet."
    text = (
        f"No prefix of '{registry[:60]}' is allowed to the team, so no run could use this. {known} "
        "Ask the operators to allow one."
    )
    return Refusal("unknown_registry", text, "registry")


def login_refusal(username: str, password: str) -> Refusal | None:
    """Neither is in a sentence."""
    if not username or len(username) > USERNAME_LIMIT or ":" in username or not username.isprintable():
        text = f"A user name has 1 to {USERNAME_LIMIT} characters in one line, and no colon."
        return Refusal("bad_username", text, "username")
    size = len(password.encode())
    if not password or size > PASSWORD_LIMIT or "\0" in password:
        text = f"A password has 1 to {PASSWORD_LIMIT} bytes and no NUL; this one has {size} bytes."
        return Refusal("bad_password", text, "password")
    return None
