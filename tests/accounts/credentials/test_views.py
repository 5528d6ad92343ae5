"""Pages of the account."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.api_tokens import actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, Event, User


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def ask(browser: Client, **changes: object) -> object:
    return browser.post("/tokens", {"name": "nightly", "scopes": ["read"], "expires_in_days": "30", **changes})


def test_a_new_token_is_shown_in_this_one_answer(browser: Client) -> None:
    made = ask(browser)
    token = ApiToken.objects.get()

    [text] = set(re.findall(rf"gpt_{token.prefix}_[\w-]{{43}}", made.text))
    assert made.status_code == 200
    assert "no-store" in made["Cache-Control"]
    listed = browser.get("/tokens").text
    assert token.prefix in listed
    assert text not in listed
    assert Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/me").status_code == 200


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": ""}, "This field is required"),
        ({"name": "\n"}, "This field is required"),
        ({"scopes": []}, "This field is required"),
        ({"scopes": ["root"]}, "root is not one of the available choices"),
        ({"expires_in_days": "400"}, "400 is not one of the available choices"),
    ],
)
def test_what_is_wrong_stands_beside_the_field(browser: Client, changes: dict[str, object], sentence: str) -> None:
    answer = ask(browser, **changes)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert ApiToken.objects.count() == 0


def test_a_name_that_is_taken_is_said_beside_the_field(browser: Client) -> None:
    ask(browser)

    answer = ask(browser)

    assert answer.status_code == 422
    assert "You already have a token with this name" in answer.text
    assert 'value="nightly"' in answer.text, "what was typed is kept"


def test_a_token_is_revoked(browser: Client) -> None:
    ask(browser)
    prefix = ApiToken.objects.get().prefix

    answer = browser.post(f"/tokens/{prefix}/revoke", follow=True)

    assert "was revoked" in answer.text
    assert prefix not in answer.text
    assert ApiToken.objects.get().revoked_at is not None
    assert browser.get(f"/tokens/{prefix}/revoke").status_code == 405
    assert browser.post(f"/tokens/{prefix}/revoke").status_code == 404
    assert [event.verb for event in Event.objects.order_by("id")] == ["token.created", "token.revoked"]


def test_tokens_of_others_are_neither_shown_nor_revoked(browser: Client, bob: User) -> None:
    token, _ = actions.create_token(name="of bob", scopes=["read"], expires_in_days=7, by=Actor(user=bob, via="page"))

    assert "of bob" not in browser.get("/tokens").text
    assert browser.post(f"/tokens/{token.prefix}/revoke").status_code == 404


def test_nobody_gets_to_tokens_without_signing_in(client: Client, db: None) -> None:
    answer = client.get("/tokens")

    assert (answer.status_code, answer["Location"]) == (302, "/login?next=/tokens")


def test_the_login_page_and_a_refused_attempt_are_complete_pages(client: Client, alice: User) -> None:
    page = client.get("/login?next=/tokens")
    refused = client.post("/login", {"username": "alice@example.org", "password": "wrong", "next": "/tokens"})

    for answer in (page, refused):
        assert "Sign in" in answer.text
        assert 'value="/tokens"' in answer.text
        assert "no-store" in answer["Cache-Control"]
    assert "do not match" in refused.text
    assert "wrong" not in refused.text


def test_a_password_in_the_field_of_the_address_is_not_told_again(
    client: Client, db: None, caplog: pytest.LogCaptureFixture
) -> None:
    """A password typed into the address field must not appear on the page or in the log."""
    with caplog.at_level("INFO"):
        told = client.post("/login", {"username": "correct-horse battery", "password": "x"})
    assert told.status_code == 422
    assert "This is not an email address." in told.text
    assert "horse" not in told.text
    assert "sign_in_failed" in caplog.text
    assert "horse" not in caplog.text
