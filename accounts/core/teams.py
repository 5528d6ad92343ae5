"""Teams by name only: which an actor sees is handed in by portal/urls.py."""

from __future__ import annotations

from collections.abc import Callable, Collection

from accounts.core.actor import Actor

# Handed in by portal/urls.py: this app knows teams by name only.
TenantsOf = Callable[[Actor], Collection[str]]


def team_slugs(tenants_of: TenantsOf | None, by: Actor) -> Collection[str]:
    return tenants_of(by) if tenants_of else ()
