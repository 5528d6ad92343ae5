"""Sign-in against a third-party issuer, over HTTP between two processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from accounts.models import Event, Identity, User
from portal.core.single_sign_on import GroupMapping, SingleSignOn
from tenants.models import Membership, Tenant
from tests.accounts.sign_in.visitor import Visitor
from tests.support.identity.issuer import CLIENT, SECRET, Issuer
from tests.support.identity.provider_process import PASSWORD, Provider, providing, visited

pytestmark = pytest.mark.django_db
BACK = "http://localhost:8000/login/oidc/back"
ADA, EVE = "ada@example.org", "eve@example.org"
GROUPS = {
    "vision": GroupMapping({"team-a": "manager"}, frozenset()),
    "operators": GroupMapping({}, frozenset({"operator"})),
}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    people = [
        {"email": ADA, "password": PASSWORD, "verified": True},
        {"email": EVE, "password": PASSWORD, "verified": False},
    ]
    with providing(tmp_path_factory.mktemp("issuer"), back=[BACK], people=people) as found:  # type: ignore[arg-type]
        yield found


@pytest.fixture
def come_in(provider: Provider, settings: Any) -> Callable[[str], tuple[Client, Any]]:
    settings.OIDC = SingleSignOn(provider.url, CLIENT, SECRET, "Example", "groups", GROUPS, http_on_loopback=True)

    def sign_in(email: str) -> tuple[Client, Any]:
        visitor = Visitor(Issuer(provider.url))
        brought = urlsplit(visited(visitor.leave("/tokens"), until=BACK, email=email))
        return visitor.client, visitor.client.get(f"{brought.path}?{brought.query}")

    return sign_in


def test_somebody_comes_in_with_their_groups(
    provider: Provider, come_in: Callable[[str], tuple[Client, Any]], team_a: Tenant
) -> None:
    provider.put_in(ADA, "vision", "operators", "and another")
    client, answer = come_in(ADA)

    assert (answer.status_code, answer["Location"]) == (302, "/tokens")
    assert client.get("/tokens").status_code == 200
    ada = User.objects.get(email=ADA)
    assert (ada.name, ada.roles) == ("Ada", ["operator"])
    assert Membership.objects.get(user=ada).role == "manager"
    assert client.get("/api/v1/me").json()["email"] == ADA

    provider.put_in(ADA)
    come_in(ADA)
    ada.refresh_from_db()
    assert ada.roles == []
    assert not Membership.objects.filter(user=ada).exists()
    assert list(Event.objects.order_by("id").values_list("verb", flat=True)) == [
        "account.added",
        "account.roles_set",
        "member.added",
        "account.signed_in",
        "member.removed",
        "account.roles_set",
        "account.signed_in",
    ]
    assert Identity.objects.count() == 1


def test_an_address_that_the_issuer_did_not_verify(
    come_in: Callable[[str], tuple[Client, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    client, answer = come_in(EVE)
    assert answer.status_code == 403
    assert "address_not_verified" in caplog.text
    assert not User.objects.exists()
    assert client.get("/tokens").status_code == 302


def test_what_was_brought_once_is_not_brought_again(
    provider: Provider, come_in: Callable[[str], tuple[Client, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the same callback URL nor its code in another sign-in works: the code is bound to one PKCE challenge."""
    come_in(ADA)
    visitor, thief = Visitor(Issuer(provider.url)), Visitor(Issuer(provider.url))
    brought = urlsplit(visited(visitor.leave(), until=BACK, email=ADA))
    code = parse_qs(brought.query)["code"][0]
    state = parse_qs(urlsplit(thief.leave()).query)["state"][0]

    assert thief.client.get("/login/oidc/back", {"code": code, "state": state}).status_code == 403
    assert "issuer_said_no" in caplog.text
    # When a code is presented twice, an issuer may revoke what it issued for it, so the rightful user may get 403.
    assert visitor.client.get(f"{brought.path}?{brought.query}").status_code in (302, 403)
    assert visitor.client.get(f"{brought.path}?{brought.query}").status_code in (302, 403)
    assert not thief.is_in


def test_a_secret_that_the_issuer_does_not_know(
    provider: Provider, come_in: Callable[[str], tuple[Client, Any]], settings: Any
) -> None:
    settings.OIDC = SingleSignOn(provider.url, CLIENT, "wrong", "Example", "groups", {}, http_on_loopback=True)
    assert come_in(ADA)[1].status_code == 403
    assert not User.objects.exists()
