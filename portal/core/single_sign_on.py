"""The one single sign-on issuer, read from settings and validated at start. This module imports no app."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

TEAM_ROLES = ("owner", "manager", "member", "viewer")
STAFF_ROLES = ("approver", "operator", "auditor", "admin")
EXAMPLE = '{"gpu-vision": {"teams": {"vision": "member"}}, "gpu-operators": {"roles": ["operator"]}}'


@dataclass(frozen=True)
class GroupMapping:
    """The rights of a group's members: slug of a team → role in that team, and staff roles."""

    teams: Mapping[str, str]
    roles: frozenset[str]


@dataclass(frozen=True)
class SingleSignOn:
    """`issuer` is compared character by character. `groups`: name of a group → its rights."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    groups_claim: str
    groups: Mapping[str, GroupMapping]
    # For tests, whose issuer has no certificate.
    http_on_loopback: bool = False

    def __repr__(self) -> str:
        """Hides the secret: settings are printed during debugging."""
        return f"SingleSignOn({self.issuer!r}, {self.client_id!r})"

    def may_be_asked(self, url: str) -> bool:
        """Whether only the host of `url` can read what is sent to it, including the client secret."""
        return is_safe_address(url, http_on_loopback=self.http_on_loopback)


def single_sign_on_config(
    *,
    issuer: str,
    client_id: str,
    client_secret: str,
    name: str,
    groups_claim: str,
    groups: str,
    http_on_loopback: bool = False,
) -> SingleSignOn | None:
    """Returns None without an issuer. Raises ImproperlyConfigured with the name of the variable."""
    if not issuer:
        return None
    if not is_safe_address(issuer, http_on_loopback=http_on_loopback) or urlsplit(issuer).query:
        raise ImproperlyConfigured("OIDC_ISSUER must be an https URL without user, query and fragment.")
    if not client_id or not client_secret:
        raise ImproperlyConfigured("OIDC_ISSUER requires OIDC_CLIENT_ID and OIDC_CLIENT_SECRET_FILE.")
    if not name.strip() or not groups_claim.strip():
        raise ImproperlyConfigured("OIDC_NAME and OIDC_GROUPS_CLAIM must not be empty.")
    return SingleSignOn(
        issuer, client_id, client_secret, name.strip(), groups_claim.strip(), _groups(groups), http_on_loopback
    )


def is_safe_address(url: str, *, http_on_loopback: bool) -> bool:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or parts.fragment or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and http_on_loopback and _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _groups(text: str) -> dict[str, GroupMapping]:
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"OIDC_GROUPS is not valid JSON ({error}). Example: {EXAMPLE}") from error
    if not isinstance(found, dict):
        raise ImproperlyConfigured(f"OIDC_GROUPS must be a JSON object with one entry per group. Example: {EXAMPLE}")
    return {group: _given(group, gives) for group, gives in found.items()}


def _given(group: str, gives: Any) -> GroupMapping:
    where = f"OIDC_GROUPS, group {group!r}:"
    if not isinstance(gives, dict) or not gives or set(gives) - {"teams", "roles"}:
        raise ImproperlyConfigured(f"{where} set 'teams', 'roles' or both, and no other key. Example: {EXAMPLE}")
    teams, roles = gives.get("teams", {}), gives.get("roles", [])
    if not isinstance(teams, dict) or not all(role in TEAM_ROLES for role in teams.values()):
        raise ImproperlyConfigured(f"{where} 'teams' must map the slug of a team to one of {', '.join(TEAM_ROLES)}.")
    if not isinstance(roles, list) or not all(role in STAFF_ROLES for role in roles):
        raise ImproperlyConfigured(f"{where} 'roles' must be a list of {', '.join(STAFF_ROLES)}.")
    return GroupMapping(dict(teams), frozenset(roles))
