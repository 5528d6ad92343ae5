"""Who may manage registry credentials of a team, and which are valid. Pure: facts in, Refusal or None out."""

from __future__ import annotations

from collections.abc import Sequence

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from workloads.core.policy import MANAGER, OWNER, TeamFacts
from workloads.credentials.secrets.policy import SEALING_UNAVAILABLE

USERNAME_LIMIT = 200
# Enough for the JSON key of a service account.
PASSWORD_LIMIT = 16 * 1024
MANAGING = (OWNER, MANAGER)


def may_change(by: Actor, team: TeamFacts) -> Refusal | None:
    """Also for a suspended team: its credentials can always be deleted."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if team.role in MANAGING:
        return None
    text = f"Only owners and managers of {team.team} may manage registry credentials."
    return Refusal("not_allowed", text, status=403)


def may_put(by: Actor, team: TeamFacts, *, can_seal: bool) -> Refusal | None:
    if not can_seal:
        return Refusal("no_secrets", SEALING_UNAVAILABLE, status=409)
    return may_change(by, team)


def unused_registry_refusal(registry: str, hosts: Sequence[str]) -> Refusal | None:
    """`hosts`: of the prefixes that the team may use. Credentials for other hosts would never be used."""
    if registry in hosts:
        return None
    known = f"Allowed registries: {', '.join(hosts)}." if hosts else "No registry is allowed yet."
    text = (
        f"No prefix of '{registry[:60]}' is allowed for the team, so no run could use the credentials. {known} "
        "Contact an operator to allow a prefix."
    )
    return Refusal("unknown_registry", text, "registry")


def login_refusal(username: str, password: str) -> Refusal | None:
    """No sentence contains the user name or the password."""
    if not username or len(username) > USERNAME_LIMIT or ":" in username or not username.isprintable():
        text = f"Enter a user name of 1 to {USERNAME_LIMIT} characters, on one line and without a colon."
        return Refusal("bad_username", text, "username")
    size = len(password.encode())
    if not password or size > PASSWORD_LIMIT or "\0" in password:
        text = f"Enter a password of 1 to {PASSWORD_LIMIT} bytes without NUL; this one has {size} bytes."
        return Refusal("bad_password", text, "password")
    return None
