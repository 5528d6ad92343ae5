"""The Django admin: every address × every role, with and without a second factor, for reading and writing."""

from __future__ import annotations

from itertools import islice

import pytest
from django.conf import settings
from django.shortcuts import resolve_url
from django.test import Client
from django.urls import reverse

from accounts.models import Event
from cluster.models import Cluster
from tests.matrix.sweep import state
from tests.matrix.tables.policy import DEAD, ROLES, TOKENS
from tests.matrix.world import World, build
from tests.support.http.admin_addresses import addresses
from tests.support.http.visits import undone
from tests.support.rows import make

pytestmark = pytest.mark.django_db
COMES_IN = ("operator", "admin", "auditor")
METHODS = ("GET", "POST")
KEPT_OUT = (302, 403, 404, 405)
NOBODY = {*DEAD, *TOKENS}
# Of the roles without access, one of each sort requests everything, and the others only the first addresses.
EVERYTHING = ("anonymous", "owner", "approver")
FIRST = 12


@pytest.fixture
def world(cluster: Cluster, unique: str) -> World:
    return build(cluster, unique)


def led(client: Client, method: str, address: str) -> tuple[int, str]:
    """Returns the final status, and the target of a redirect out of the admin."""
    answer = client.generic(method, address)
    while answer.status_code == 302:
        sent_to = answer["Location"].partition("?")[0]
        if not sent_to.startswith("/admin/"):
            return 302, sent_to
        answer = client.get(answer["Location"])
    return answer.status_code, ""


def test_who_has_no_part_in_it_finds_nothing(world: World) -> None:
    wrong, asked = {}, 0
    for role in [role for role in ROLES if role not in COMES_IN]:
        wanted = (302, resolve_url(settings.LOGIN_URL)) if role in NOBODY else (404, "")
        for method in METHODS:
            for address in addresses() if role in EVERYTHING else islice(addresses(), FIRST):
                asked += 1
                if (found := led(world.client(role), method, address)) != wanted:
                    wrong[f"{method} {address}: {role}"] = found
    assert wrong == {}
    assert asked > 500


def test_a_role_without_a_second_factor_is_led_to_one(world: World) -> None:
    clients = []
    for role in COMES_IN:
        clients.append(Client())
        clients[-1].force_login(world.people[role])
    found = {led(client, method, address) for client in clients for method in METHODS for address in addresses()}
    assert found == {(302, reverse("second-factor"))}


@pytest.mark.parametrize("role", COMES_IN)
def test_looking_changes_nothing_and_breaks_nowhere(world: World, role: str) -> None:
    client = make.administrator(Client(), world.people[role])
    before, events = state(), Event.objects.count()
    wrong = {
        address: answer.status_code
        for address in addresses()
        if (answer := client.get(address)).status_code not in (200, 302, 403, 404, 405)
    }
    assert wrong == {}
    assert (state(), Event.objects.count()) == (before, events)


def test_who_only_looks_on_writes_nothing(world: World) -> None:
    client = make.administrator(Client(), world.people["auditor"])
    before, events = state(), Event.objects.count()
    wrong, sent = {}, {"post": "yes", "action": "open_classes", "_selected_action": "1"}
    for address in addresses():
        with undone():
            status = client.post(address, sent).status_code
            has_changed = (state(), Event.objects.count()) != (before, events)
            if has_changed or (status not in KEPT_OUT and address != "/admin/"):
                wrong[address] = status
    assert wrong == {}
