"""Whether users may continue to watch, checked for all open streams at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from accounts.api_tokens.actions import create_token
from accounts.core.actor import Actor
from accounts.models import ApiToken, User
from portal.core.errors import NOT_FOUND, NOT_SIGNED_IN
from tenants.lifecycle.closing.actions import mark_deleted
from tenants.models import Membership, Namespace
from workloads.gateway.stream_access import SessionAsks, StreamAccess, StreamViewer

pytestmark = pytest.mark.django_db


@pytest.fixture
def signed_in(namespace_a: Namespace, alice: User) -> Callable[..., StreamViewer]:
    """`alice` gets a new session at each call."""

    def sign_in(person: User = alice) -> StreamViewer:
        client = Client()
        client.force_login(person)
        assert client.session.session_key is not None
        return StreamViewer(person.pk, namespace_a.name, session_key=client.session.session_key)

    return sign_in


def test_a_good_session_is_decoded_once(signed_in: Callable[..., StreamViewer], django_assert_num_queries: Any) -> None:
    access, first = StreamAccess(), signed_in()
    with django_assert_num_queries(3):
        assert access.still_allowed({first}) == {first}
    with django_assert_num_queries(1):
        assert access.still_allowed({first}) == {first}
    second = signed_in()
    with django_assert_num_queries(3):
        assert access.still_allowed({first, second}) == {first, second}
    with django_assert_num_queries(1):
        assert access.still_allowed(set()) == set()


def given_back() -> None:
    """Another team may have adopted it."""
    now = timezone.now()
    ended = {"wanted": "closed", "closes_at": now, "volumes_until": now}
    Namespace.objects.update(**ended, origin=Namespace.Origin.ADOPTED)
    mark_deleted(Namespace.objects.get(), now)


LOSSES: dict[str, Callable[[User], object]] = {
    "membership": lambda person: Membership.objects.filter(user=person).delete(),
    "account": lambda person: User.objects.filter(pk=person.pk).update(is_active=False),
    "password": lambda person: User.objects.filter(pk=person.pk).update(password="another"),
    "session": lambda _person: Session.objects.all().delete(),
    "its time": lambda _person: Session.objects.update(expire_date=timezone.now()),
    "namespace": lambda _person: given_back(),
    "its content": lambda _person: Session.objects.update(session_data="e30"),
}


@pytest.mark.parametrize("what", list(LOSSES))
def test_who_loses_the_right_is_not_remembered(signed_in: Callable[..., StreamViewer], alice: User, what: str) -> None:
    access, watcher = StreamAccess(), signed_in()
    assert access.still_allowed({watcher}) == {watcher}
    LOSSES[what](alice)
    assert access.still_allowed({watcher}) == set()
    assert access.still_allowed({watcher}) == set()


def test_a_session_is_its_owners(signed_in: Callable[..., StreamViewer], alice: User, bob: User) -> None:
    theirs = signed_in(bob)
    stolen = StreamViewer(alice.pk, theirs.namespace, session_key=theirs.session_key)
    access = StreamAccess()
    assert access.still_allowed({theirs, stolen}) == {theirs}
    assert access.still_allowed({theirs, stolen}) == {theirs}


def test_a_token_is_asked_for_each_time(namespace_a: Namespace, alice: User, bob: User) -> None:
    token, _text = create_token(name="ci", scopes=["read"], expires_in_days=1, by=Actor(alice, "page"))
    watcher = StreamViewer(alice.pk, namespace_a.name, token_prefix=token.prefix)
    borrowed = StreamViewer(bob.pk, namespace_a.name, token_prefix=token.prefix)
    access = StreamAccess()
    assert access.still_allowed({watcher, borrowed}) == {watcher}
    ApiToken.objects.update(revoked_at=timezone.now())
    assert access.still_allowed({watcher}) == set()


def test_staff_may_watch_every_team(signed_in: Callable[..., StreamViewer], charlie: User) -> None:
    watcher, access = signed_in(charlie), StreamAccess()
    assert access.still_allowed({watcher}) == set()
    User.objects.filter(pk=charlie.pk).update(roles=["operator"])
    assert access.still_allowed({watcher}) == {watcher}


def asks_of(viewer: StreamViewer) -> SessionAsks:
    return SessionAsks(viewer.session_key, viewer.namespace)


def test_pages_that_come_back_together_are_looked_up_together(
    signed_in: Callable[..., StreamViewer], charlie: User, django_assert_num_queries: Any
) -> None:
    access, hers, again, stranger = StreamAccess(), signed_in(), signed_in(), signed_in(charlie)
    forged = StreamViewer(stranger.user_id, stranger.namespace, session_key="made-up")
    everybody = [hers, again, stranger, forged]
    with django_assert_num_queries(3):
        found = access.openings([asks_of(one) for one in everybody])
    assert [found[asks_of(one)] for one in everybody] == [hers, again, NOT_FOUND, NOT_SIGNED_IN]
    # Their sessions need not be decoded again.
    with django_assert_num_queries(1):
        assert access.still_allowed({hers, again}) == {hers, again}


@pytest.mark.parametrize("what", list(LOSSES))
def test_who_has_lost_the_right_opens_nothing(signed_in: Callable[..., StreamViewer], alice: User, what: str) -> None:
    access, watcher = StreamAccess(), signed_in()
    assert access.openings([asks_of(watcher)]) == {asks_of(watcher): watcher}
    LOSSES[what](alice)
    refused = NOT_FOUND if what in ("membership", "namespace") else NOT_SIGNED_IN
    assert access.openings([asks_of(watcher)]) == {asks_of(watcher): refused}
    assert access.still_allowed({watcher}) == set()


def test_staff_open_streams_of_namespaces_that_exist(signed_in: Callable[..., StreamViewer], charlie: User) -> None:
    User.objects.filter(pk=charlie.pk).update(roles=["operator"])
    watcher = signed_in(charlie)
    unknown = SessionAsks(watcher.session_key, "team-unknown")
    assert StreamAccess().openings([asks_of(watcher), unknown]) == {asks_of(watcher): watcher, unknown: NOT_FOUND}
