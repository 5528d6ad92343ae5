"""Who may watch a namespace. Checked when a stream opens, and for all open streams at once every three seconds."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from accounts.api_tokens import queries as accounts
from accounts.core.actor import Actor, actor_of_token
from accounts.core.policy import scope_refusal
from accounts.models import ApiToken, Scope, User
from portal.core.errors import NOT_FOUND, NOT_SIGNED_IN, Refusal, refuse_if
from portal.core.sql import snapshot
from tenants.models import Membership, Namespace, Tenant
from workloads.gateway.authorization import session_user


@dataclass(frozen=True)
class StreamViewer:
    """A user who watches one namespace, by browser session or by token; the field that is not used is "". Without a
    namespace only session or token are checked, and what is sent is checked when it is read.
    """

    user_id: int
    namespace: str
    session_key: str = ""
    token_prefix: str = ""


@dataclass(frozen=True)
class SessionAsks:
    """The page of a browser's session wants to watch a namespace."""

    session_key: str
    namespace: str


def stream_caller(*, session_key: str, bearer: str) -> tuple[Actor, str, str] | None:
    """Returns the caller, and the session key or the token's prefix. Raises Refused for a bad token (401), or one
    without read permission (403).
    """
    if bearer:
        token = accounts.authenticate_token(bearer)
        by = actor_of_token(token)
        refuse_if(scope_refusal(by, Scope.READ))
        return by, "", token.prefix
    user = _owners({session_key}).get(session_key)
    return None if user is None else (Actor(user=user, via="stream"), session_key, "")


def may_watch(by: Actor, namespace: str) -> bool:
    return Namespace.objects.visible_to(by).filter(name=namespace).exists()


def watched_namespace(team: str) -> str:
    """A namespace whose members are those of the team; "" if it has none yet."""
    return Namespace.objects.filter(tenant__slug=team).order_by("id").values_list("name", flat=True).first() or ""


class StreamAccess:
    """Access of the open streams of a process. It caches which sessions are valid: decoding a thousand sessions every
    few seconds would delay pages.
    """

    def __init__(self) -> None:
        # The fingerprint of the session and the password hash with which the session was found valid.
        self._good: dict[StreamViewer, str] = {}

    def still_allowed(self, watchers: Collection[Hashable]) -> set[Hashable]:
        """One query for all streams; two more if a session is new or has changed."""
        asked = [watcher for watcher in watchers if isinstance(watcher, StreamViewer)]
        by_token, by_session = _watching(asked)
        new = [watcher for watcher, print_ in by_session.items() if self._good.get(watcher) != print_]
        bad = set(new) - _signed_in(new) if new else set()
        good = {watcher: print_ for watcher, print_ in by_session.items() if watcher not in bad}
        allowed: set[Hashable] = by_token | good.keys()
        # From now on `openings` may add to it, in another thread.
        self._good = good
        return allowed

    def openings(self, asks: Collection[SessionAsks]) -> Mapping[SessionAsks, StreamViewer | Refusal]:
        """Three queries for all. Refusals: not signed in (401), or no such namespace for this person (404)."""
        with snapshot():
            people = _owners({one.session_key for one in asks})
            viewers = {
                one: StreamViewer(people[one.session_key].pk, one.namespace, one.session_key)
                for one in asks
                if one.session_key in people
            }
            _, found = _watching(viewers.values())
        # What is lost because another thread replaces the dictionary meanwhile is decoded once more.
        for viewer, print_ in found.items():
            self._good[viewer] = print_
        return {
            one: NOT_SIGNED_IN if one not in viewers else viewers[one] if viewers[one] in found else NOT_FOUND
            for one in asks
        }


def _watching(viewers: Collection[StreamViewer]) -> tuple[set[StreamViewer], dict[StreamViewer, str]]:
    """Those of them who may watch: with a valid token, and with a session, whose fingerprint is given. One query."""
    columns, asked = ("user_id", "namespace", "session_key", "token_prefix"), list(viewers)
    with connection.cursor() as cursor:
        cursor.execute(_MAY_WATCH, [[getattr(viewer, column) for viewer in asked] for column in columns])
        found = [(asked[place - 1], *rest) for place, *rest in cursor.fetchall()]
    by_token = {viewer for viewer, has_token, _ in found if has_token}
    return by_token, {viewer: print_ for viewer, has_token, print_ in found if print_ and not has_token}


def _owners(session_keys: Collection[str]) -> dict[str, User]:
    """The person of each valid session. Two queries."""
    rows = Session.objects.filter(session_key__in=session_keys, expire_date__gt=timezone.now())
    sessions = dict(rows.values_list("session_key", "session_data"))
    claimed = {key: str(SessionStore().decode(data).get(SESSION_KEY, "")) for key, data in sessions.items()}
    pks = {int(pk) for pk in claimed.values() if pk.isdigit()}
    users = {str(user.pk): user for user in User.objects.filter(pk__in=pks, is_active=True)}
    return {key: users[pk] for key, pk in claimed.items() if pk in users and session_user(sessions[key], users[pk])}


def _signed_in(watchers: Collection[StreamViewer]) -> set[StreamViewer]:
    owners = _owners({watcher.session_key for watcher in watchers})
    pks = {key: user.pk for key, user in owners.items()}
    return {watcher for watcher in watchers if pks.get(watcher.session_key) == watcher.user_id}


# Returns members and staff that have a valid token, or a session with its fingerprint. A team's token is valid for its
# own team only and gives no staff rights.
_MAY_WATCH = f"""
SELECT asked.place, token.id IS NOT NULL, md5(session.session_data || ' ' || person.password)
  FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) WITH ORDINALITY
       AS asked (user_id, namespace, session_key, token_prefix, place)
  JOIN {User._meta.db_table} person ON person.id = asked.user_id AND person.is_active
  LEFT JOIN {ApiToken._meta.db_table} token
    ON token.prefix = asked.token_prefix AND token.user_id = person.id
   AND token.revoked_at IS NULL AND token.expires_at > statement_timestamp()
  LEFT JOIN {Session._meta.db_table} session
    ON session.session_key = asked.session_key AND asked.token_prefix = ''
   AND session.expire_date > statement_timestamp()
 WHERE asked.namespace = ''
    OR (person.roles <> '{{}}' AND coalesce(token.tenant, '') = ''
        AND EXISTS (SELECT FROM {Namespace._meta.db_table} WHERE name = asked.namespace))
    OR EXISTS (
       SELECT FROM {Membership._meta.db_table} member
         JOIN {Namespace._meta.db_table} namespace ON namespace.tenant_id = member.tenant_id
        WHERE member.user_id = person.id AND namespace.name = asked.namespace
          AND (coalesce(token.tenant, '') = ''
               OR token.tenant = (SELECT slug FROM {Tenant._meta.db_table} WHERE id = member.tenant_id)))"""
