"""What settings may say about the issuer; anything else ends the process at its start, with the variable's name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from accounts.models import Role
from portal.core import single_sign_on
from portal.core.single_sign_on import SingleSignOn, single_sign_on_config
from tenants.members import policy

GOOD = {
    "issuer": "https://sso.example.org/realms/example",
    "client_id": "gpu-portal",
    "client_secret": "a secret that is long",
    "name": "Example",
    "groups_claim": "groups",
    "groups": single_sign_on.EXAMPLE,
}


def made(**changed: Any) -> SingleSignOn:
    found = single_sign_on_config(**(GOOD | changed))
    assert found is not None
    return found


def test_the_example_is_one() -> None:
    found = made()
    assert dict(found.groups["gpu-vision"].teams) == {"vision": "member"}
    assert found.groups["gpu-operators"].roles == {"operator"}
    assert made(groups="").groups == {}


def test_without_an_issuer_there_is_none() -> None:
    assert single_sign_on_config(**(GOOD | {"issuer": "", "groups": "nonsense"})) is None


def test_the_secret_is_not_printed() -> None:
    assert "a secret" not in repr(made())


@pytest.mark.parametrize(
    "issuer",
    [
        "http://sso.example.org",
        "sso.example.org",
        "https://",
        "https://user:password@sso.example.org",
        "https://sso.example.org/#a",
        "https://sso.example.org/?a=b",
        "https://sso.example.org:port",
        "https://sso.example.org/a b",
        "http://127.0.0.1:8080",
        "ftp://sso.example.org",
    ],
)
def test_an_issuer_that_is_not_safe(issuer: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="OIDC_ISSUER"):
        made(issuer=issuer)


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:8080", "http://localhost:8080/a", "http://[::1]:8080"])
def test_a_developers_own_needs_no_certificate(issuer: str) -> None:
    assert made(issuer=issuer, http_on_loopback=True).issuer == issuer
    with pytest.raises(ImproperlyConfigured):
        made(issuer="http://sso.example.org", http_on_loopback=True)


@pytest.mark.parametrize("name", ["client_id", "client_secret"])
def test_a_client_has_a_name_and_a_secret(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="OIDC_CLIENT_ID and OIDC_CLIENT_SECRET_FILE"):
        made(**{name: ""})


@pytest.mark.parametrize(
    "groups",
    [
        "gpu-vision=vision",
        [],
        {"g": []},
        {"g": {}},
        {"g": {"team": {"vision": "member"}}},
        {"g": {"teams": ["vision"]}},
        {"g": {"teams": {"vision": "boss"}}},
        {"g": {"teams": {"vision": ["member"]}}},
        {"g": {"roles": "admin"}},
        {"g": {"roles": ["superuser"]}},
        {"g": {"roles": [["admin"]]}},
        {"g": {"roles": ["operator"], "is_staff": True}},
    ],
)
def test_groups_that_cannot_be_read(groups: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="OIDC_GROUPS"):
        made(groups=groups if isinstance(groups, str) else json.dumps(groups))


def test_roles_are_those_that_there_are() -> None:
    """A leaf knows no app, so it says them again."""
    assert tuple(policy.MEMBER_ROLES) == single_sign_on.TEAM_ROLES
    assert set(Role.values) == set(single_sign_on.STAFF_ROLES)
