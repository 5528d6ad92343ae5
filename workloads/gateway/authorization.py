"""Decides whether this browser may use this notebook, and returns its address. One query, on the portal's own tables
only.

No claim by the client is trusted. The cookie of a notebook's origin is valid only as long as all of these are valid:
the portal session that opened it, the user's membership, the notebook's visibility, and a run that is ready. A browser
may send several cookies of this name: without https, a page of another notebook can set one for the parent domain of
both. One valid cookie is enough.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils.crypto import constant_time_compare

from accounts.models import User
from cluster.manifests import names
from cluster.manifests.namespace import NOTEBOOK_PORT
from cluster.models import MirrorPod
from portal.core.due import table_label
from tenants.models import Membership, Namespace
from workloads.core.policy import LAUNCHERS
from workloads.core.workload_sql import of_same_run
from workloads.credentials.notebook_token import digest, token_of_run
from workloads.models import NotebookSession, Run, Workload

# The format of secrets.token_urlsafe(32); a browser keeps at most this many cookies per site.
COOKIE = re.compile(r"[A-Za-z0-9_-]{43}")
COOKIES_AT_MOST = 200


class GatewayDenial(Enum):
    """SIGN_IN: no valid cookie; open the notebook from the portal. GONE: the user has no permission (any more).
    NOT_READY: the user has permission, but the notebook is not ready.
    """

    SIGN_IN = "sign in"
    GONE = "gone"
    NOT_READY = "not ready"


@dataclass(frozen=True)
class NotebookUpstream:
    """The notebook's address and the token of its server; only for the gateway. `cookie`: the valid one."""

    upstream: str
    token: str
    cookie: str


def origin_of(host: str) -> str:
    """Returns `abc` for `abc.notebooks.example.org:8000`; "" for any other host. Ports are ignored: Caddy compares
    hosts either way.
    """
    name, domain = _host_name(host), _host_name(settings.NOTEBOOKS_DOMAIN)
    first, _, rest = name.partition(".")
    return first if rest == domain and first else ""


def _host_name(host: str) -> str:
    return (urlsplit(f"//{host}").hostname or "").lower()


def cookies_in(values: Iterable[str]) -> tuple[str, ...]:
    """Returns the cookies in the portal's format, without duplicates, as the browser sent them."""
    return tuple(dict.fromkeys(value for value in values if COOKIE.fullmatch(value)))[:COOKIES_AT_MOST]


def authorise(origin: str, cookies: Collection[str]) -> NotebookUpstream | GatewayDenial:
    """Exactly one query, whatever the number of cookies; none if no cookie has the portal's format."""
    by_digest = {digest(cookie): cookie for cookie in cookies_in(cookies)}
    if not origin or not by_digest:
        return GatewayDenial.SIGN_IN
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENT, [table_label(Workload), sorted(LAUNCHERS), list(by_digest), origin])
        found = [_Found(*row) for row in cursor.fetchall()]
    denied = GatewayDenial.SIGN_IN
    for one in found:
        if not _is_signed_in(one):
            continue
        if not one.may_open:
            denied = GatewayDenial.GONE if denied is GatewayDenial.SIGN_IN else denied
            continue
        if one.number is not None and one.ip and one.pod_run == names.run_name(one.name, one.number):
            token = token_of_run(one.token_key or "", workload_id=one.workload_id, run_number=one.number)
            address = f"[{one.ip}]" if ":" in one.ip else one.ip
            return NotebookUpstream(f"{address}:{NOTEBOOK_PORT}", token, by_digest[one.digest])
        denied = GatewayDenial.NOT_READY
    return denied


@dataclass(frozen=True)
class _Found:
    digest: str
    user_id: int
    password: str
    session_data: str
    may_open: bool
    workload_id: int
    name: str
    number: int | None
    token_key: str | None
    pod_run: str | None
    ip: str | None


# Returns one row per ready pod, or one row without a pod if none is ready. An ended session has no row. Reads pods of
# the workload's own namespace only: a user may set our labels on a pod in another namespace.
_STATEMENT = f"""
SELECT session.digest, person.id, person.password, portal.session_data, member.id IS NOT NULL,
       workload.id, workload.name, run.number, run.token_key, pod.run, pod.record ->> 'ip'
  FROM {NotebookSession._meta.db_table} session
  JOIN {Session._meta.db_table} portal ON portal.session_key = session.session_key AND portal.expire_date > now()
  JOIN {User._meta.db_table} person ON person.id = session.user_id AND person.is_active
  JOIN {Workload._meta.db_table} workload ON workload.id = session.workload_id AND workload.delete_requested_at IS NULL
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
  LEFT JOIN {Run._meta.db_table} run
    ON run.workload_id = workload.id AND run.ended_at IS NULL AND run.stop_requested_at IS NULL
   AND run.ready_at IS NOT NULL
  LEFT JOIN {MirrorPod._meta.db_table} pod
    ON pod.cluster_id = namespace.cluster_id AND pod.namespace = namespace.name
   AND pod.owner = %s || '.' || workload.id AND pod.deleting_since IS NULL AND pod.phase = 'Running'
   AND {of_same_run("pod")}
  LEFT JOIN {Membership._meta.db_table} member
    ON member.tenant_id = workload.tenant_id AND member.user_id = person.id AND member.role = ANY(%s)
   AND (workload.visibility = '{Workload.Visibility.TEAM}' OR workload.created_by_id = person.id)
 WHERE session.digest = ANY(%s) AND session.expires_at > now() AND workload.origin = %s"""


def _is_signed_in(found: _Found) -> bool:
    """Returns whether the portal session belongs to this user and was created with the user's current password."""
    return session_user(found.session_data, User(pk=found.user_id, password=found.password)) == found.user_id


def session_user(session_data: str, user: User) -> int | None:
    """Returns the owner of the session if it is this user and the session is still valid; None otherwise."""
    session = SessionStore().decode(session_data)
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    if session.get(SESSION_KEY) != str(user.pk):
        return None
    valid = constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())
    return user.pk if valid else None
