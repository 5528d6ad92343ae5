"""Teams by name only. portal/urls.py passes in the function that returns an actor's teams."""

from __future__ import annotations

from collections.abc import Callable, Collection

from accounts.core.actor import Actor

# portal/urls.py passes it in: this app knows teams by name only.
TenantsOf = Callable[[Actor], Collection[str]]


def team_slugs(tenants_of: TenantsOf | None, by: Actor) -> Collection[str]:
    return tenants_of(by) if tenants_of else ()
