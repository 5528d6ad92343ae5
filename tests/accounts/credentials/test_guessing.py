"""Guessing from many networks: limited for each account and each IPv6 /64; its user is not locked out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from accounts.credentials import login_backoff
from accounts.credentials.forms import CodeForm
from accounts.models import User
from portal.web.client_address import network_of
from tests.support.rows import make

pytestmark = pytest.mark.django_db
HOME = "198.51.100.7"


@pytest.fixture(autouse=True)
def _waits_outlast_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine the first waits of one and two seconds end between two attempts."""
    monkeypatch.setattr(login_backoff, "FIRST_WAIT_S", 60)


def networks() -> Iterator[str]:
    """More addresses than any limit: each is used once."""
    return (f"2001:db8:{number:x}::1" for number in range(1, 500))


def sign_in(user: User, address: str, password: str = "a wrong one") -> Any:
    return Client(REMOTE_ADDR=address).post("/login", {"username": user.email, "password": password})


def set_with_code(user: User, address: str) -> Any:
    typed = {"email": user.email, "code": "0-x-y", "password1": "a new and long one", "password2": "a new and long one"}
    return Client(REMOTE_ADDR=address).post("/login/password", typed)


@pytest.mark.parametrize("attempt", [sign_in, set_with_code])
def test_many_networks_have_one_limit_together(alice: User, attempt: Any) -> None:
    found = [attempt(alice, address).status_code for address, _ in zip(networks(), range(30), strict=False)]
    allowed = login_backoff.ACCOUNT_FREE_ATTEMPTS
    assert found == [422] * allowed + [429] * (30 - allowed)


def test_so_do_codes_of_a_second_factor(alice: User) -> None:
    make.second_factor(alice)
    codes = set()
    for address, number in zip(networks(), range(30), strict=False):
        form = CodeForm({"code": f"{number:06}"}, user=alice, address=address)
        codes |= {error.code for error in form.errors.as_data()["code"]}
    assert "too_fast" in codes


def test_a_64_is_one_network(alice: User) -> None:
    inside = [f"2001:db8:0:1::{number:x}" for number in range(1, 9)]
    found = [sign_in(alice, address).status_code for address in inside]
    assert 429 in found
    assert sign_in(alice, "2001:db8:0:2::1").status_code == 422


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_networks(address: str, network: str) -> None:
    assert network_of(address) == network


def test_who_signed_in_from_here_before_is_not_locked_out(alice: User) -> None:
    assert sign_in(alice, HOME, make.PASSWORD).status_code == 302
    for address, _ in zip(networks(), range(60), strict=False):
        sign_in(alice, address)
    assert sign_in(alice, "203.0.113.9", make.PASSWORD).status_code == 429
    assert sign_in(alice, HOME).status_code == 422, "also after a mistake"
    assert sign_in(alice, HOME, make.PASSWORD).status_code == 302


def test_the_wait_elsewhere_ends(alice: User) -> None:
    """Refused attempts do not prolong it."""
    until = f"{login_backoff._key(alice.email, '', 'password')}:until"
    waits = []
    for address in networks():
        waits.append(login_backoff.wait_before_attempt(alice.email, address))
        if waits[-1] and waits[-1] == waits[-2]:  # refused twice, and not for longer
            cache.delete(until)  # as if the time had passed
    assert max(waits) == login_backoff.ACCOUNT_WAIT_MAX_S
    cache.delete(until)
    assert login_backoff.wait_before_attempt(alice.email, "203.0.113.9") == 0


def test_signing_in_gives_a_guesser_no_new_attempts(alice: User) -> None:
    for address, _ in zip(networks(), range(30), strict=False):
        sign_in(alice, address)
    login_backoff.reset_backoff(alice.email, HOME)
    assert sign_in(alice, "203.0.113.9").status_code == 429
