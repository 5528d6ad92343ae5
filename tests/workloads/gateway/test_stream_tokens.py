"""What doors show to tokens: only the team that a token is confined to, and nothing to a token without read scope."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, Role, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.members.tokens import actions as token_actions
from tenants.models import Membership, Namespace, Tenant
from tests.support.processes.streaming import Doors
from tests.support.rows import make, running
from workloads.gateway.stream_access import StreamAccess, StreamViewer, may_watch, stream_caller


@pytest.fixture
def nora(team_a: Tenant) -> User:
    """Owner of two teams, and an operator."""
    found = make.user("Nora", roles=[Role.OPERATOR, Role.ADMIN])
    make.member(team_a, found, Membership.Role.OWNER)
    return found


@pytest.fixture
def namespace_b(namespace_a: Namespace, nora: User) -> Namespace:
    found = make.tenant(namespace_a.cluster, slug="team-b", namespace=f"{namespace_a.name}-b")
    make.member(found, nora, Membership.Role.OWNER)
    return found.namespaces.get()


def of_team(user: User, *scopes: str) -> tuple[ApiToken, str]:
    by = Actor(user, "page")
    return token_actions.create_team_token("team-a", name="ci", scopes=scopes or ["read"], expires_in_days=3, by=by)


def personal(user: User, *scopes: str) -> str:
    by = Actor(user, "page")
    if "admin" in scopes:
        make.second_factor(user)
    return api_token_actions.create_token(name="own", scopes=scopes, expires_in_days=3, by=by)[1]


# ---- rights of a token ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_teams_token_watches_its_team_alone(namespace_a: Namespace, namespace_b: Namespace, nora: User) -> None:
    token, text = of_team(nora)
    found = stream_caller(session_key="", bearer=text)
    assert found is not None
    by, session_key, prefix = found
    assert (by.user, by.confined_to, by.sees_all, session_key, prefix) == (nora, "team-a", False, "", token.prefix)
    assert [may_watch(by, one.name) for one in (namespace_a, namespace_b)] == [True, False]

    own, other = (StreamViewer(nora.pk, one.name, token_prefix=token.prefix) for one in (namespace_a, namespace_b))
    access = StreamAccess()
    assert access.still_allowed({own, other}) == {own}
    # Staff without membership: the token does not carry the staff role.
    Membership.objects.filter(user=nora, tenant__slug="team-a").delete()
    assert access.still_allowed({own, other}) == set()


@pytest.mark.django_db
def test_an_own_token_of_staff_watches_every_team(namespace_a: Namespace, namespace_b: Namespace, nora: User) -> None:
    own = personal(nora, "read")
    prefix = ApiToken.objects.get().prefix
    Membership.objects.all().delete()
    watchers = {StreamViewer(nora.pk, one.name, token_prefix=prefix) for one in (namespace_a, namespace_b)}
    assert StreamAccess().still_allowed(watchers) == watchers
    ApiToken.objects.update(revoked_at=timezone.now())
    assert StreamAccess().still_allowed(watchers) == set()
    with pytest.raises(Refused) as refused:
        stream_caller(session_key="", bearer=own)
    assert refused.value.code == "token_revoked"


@pytest.mark.django_db
def test_who_asks_brings_the_scopes_of_the_token_and_no_others(alice: User) -> None:
    found = stream_caller(session_key="", bearer=personal(alice, "read", "launch"))
    assert found is not None
    assert found[0].scopes == {"read", "launch"}


# ---- streams, logs and long polling over HTTP ----------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_streams_logs_and_waits_of_another_team_are_not_there(
    doors: Doors, namespace_a: Namespace, namespace_b: Namespace, a100: GpuClass, nora: User
) -> None:
    for namespace in (namespace_a, namespace_b):
        found = running.workload(namespace, a100, by=nora, origin=f"n{namespace.pk}")
        running.make_ready(found)
    team, own = f"Bearer {of_team(nora)[1]}", f"Bearer {personal(nora, 'read')}"
    addresses = {
        "log": "/live/logs/{tenant}/one?follow=0",
        "wait": "/api/v1/workloads/one?team={tenant}&wait=1&until=ready",
    }
    for what, address in addresses.items():
        here, there = (address.format(tenant=slug) for slug in ("team-a", "team-b"))
        assert doors.get(there, authorization=own)[0] != 404, what
        assert doors.get(here, authorization=team)[0] == doors.get(here, authorization=own)[0], what
        assert doors.get(there, authorization=team)[0] == 404, what
    assert doors.get(f"/live/{namespace_b.name}", authorization=team)[0] == 404


@pytest.mark.django_db(transaction=True)
def test_who_may_not_read_gets_no_stream_and_no_log(
    doors: Doors, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    running.workload(namespace_a, a100, by=alice)
    bearer = f"Bearer {personal(alice, 'launch', 'request', 'admin')}"
    for path in ("/live/logs/team-a/one?follow=0", f"/live/{namespace_a.name}", "/api/v1/workloads/one?wait=1"):
        status, _headers, body = doors.get(path, authorization=bearer)
        assert (status, json.loads(body)["code"]) == (403, "missing_scope"), path
