"""Demo data, put there as people would: accounts first, the catalog once the watcher has seen the nodes.

    python -m devcluster.seed people ACCOUNTS.json
    python -m devcluster.seed catalog ACCOUNTS.json

Runs again at every start and adds what is missing. Passwords and tokens are kept in the accounts file (mode 0600); the
database holds only their hashes.
"""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Any

import django

from devcluster.pki import write_private

TOKEN_DAYS = 90
TENANT = "team-a"
# name, role as a person would say it, tenant
CAST = (
    ("Alice", "owner", TENANT),
    ("Bob", "member", TENANT),
    ("Charlie", "stranger", ""),
    ("Dana", "approver of all classes", ""),
    ("Olga", "operator and administrator", ""),
)


def main(what: str, file: Path) -> None:
    django.setup()
    known = {account["name"]: account for account in json.loads(file.read_text())} if file.exists() else {}
    if what == "people":
        write_private(file, json.dumps([_person(*member, known=known) for member in CAST], indent=1))
    else:
        _catalog()


def _person(name: str, role: str, tenant: str, *, known: dict[str, Any]) -> dict[str, Any]:
    from django.utils import timezone

    from accounts import actions, tokens
    from accounts.actor import Actor
    from accounts.models import ApiToken, Role, Scope, User

    roles = {"Dana": [Role.APPROVER], "Olga": [Role.OPERATOR, Role.ADMIN]}.get(name, [])
    email = f"{name.lower()}@example.org"
    account = known.get(name) or {"name": name, "email": email, "role": role, "tenant": tenant}
    account.setdefault("password", f"{name.lower()}-{secrets.token_urlsafe(9)}")
    user = User.objects.filter(email=email).first()
    if user is None:
        user = User.objects.create_user(
            email=email,
            name=name,
            password=account["password"],
            roles=[str(one) for one in roles],
            is_staff=Role.ADMIN in roles,
        )
    text = tokens.parse(account.get("token", ""))
    works = ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=timezone.now())
    if text is None or not works.filter(prefix=text.prefix).exists():
        by = Actor(user=user, via="page")
        scopes = [str(scope) for scope in Scope if scope != Scope.ADMIN or Role.ADMIN in roles]
        _, account["token"] = actions.create_token(
            name=f"demo {secrets.token_hex(2)}", scopes=scopes, expires_in_days=TOKEN_DAYS, by=by
        )
    return account


def _catalog() -> None:
    """Cluster, team and classes."""


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
