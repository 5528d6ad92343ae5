"""Teams whose members all have pages open: people, memberships and sessions as rows."""

from __future__ import annotations

from dataclasses import dataclass

from tests.perf.support.viewers import Asked


@dataclass(frozen=True)
class Watched:
    """`asked`: one stream request of every member."""

    namespace: str
    asked: list[Asked]


def audience(namespaces: list[str], *, each: int) -> list[Watched]:
    """Half of a team's members open its home, half open the workload `view`."""
    from tenants.models import Namespace

    found = []
    for row in Namespace.objects.filter(name__in=namespaces).select_related("tenant").order_by("pk"):
        people = [_member(row, number) for number in range(each)]
        paths = [f"/live/{row.name}{'?workload=seen' if number % 2 else ''}" for number in range(each)]
        found.append(Watched(row.name, [Asked(path, cookie) for path, cookie in zip(paths, people, strict=True)]))
    return found


def _member(namespace: object, number: int) -> str:
    """Returns the cookie of a signed-in user."""
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from portal.web.session_cookie import signed_cookie
    from tenants.models import Namespace
    from tests.support.rows import make

    assert isinstance(namespace, Namespace)
    person = make.user(f"Viewer-{namespace.name}-{number}")
    make.member(namespace.tenant, person)
    session = SessionStore()
    session[SESSION_KEY], session[HASH_SESSION_KEY] = str(person.pk), person.get_session_auth_hash()
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session.create()
    return f"{settings.SESSION_COOKIE_NAME}={signed_cookie(str(session.session_key))}"
