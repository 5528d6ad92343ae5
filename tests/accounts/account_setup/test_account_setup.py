"""Accounts that administrators create, and setting a password with the code that an administrator passes on."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.test import Client

from accounts.account_setup import actions as account_setup_actions
from accounts.account_setup import policy
from accounts.core.actor import Actor, system_actor
from accounts.credentials import login_backoff
from accounts.credentials import policy as credential_policy
from accounts.models import Delivery, Event, Role, User
from portal.core.errors import Refused
from tenants.approvers.delegation.queries import roles_lent_to
from tests.support.http.callers import caller, send
from tests.support.rows import make

pytestmark = pytest.mark.django_db
NEW = "a new and long passphrase"
PEOPLE = "/people"


@pytest.fixture
def ada(db: None) -> User:
    return make.user("Ada", roles=[Role.ADMIN])


def signed_in(user: User) -> Client:
    return make.administrator(Client(), user)


def shown(answer: Any) -> str:
    found = re.search(r'id="code" tabindex="0">([^<]+)<', answer.content.decode())
    return found[1] if found else ""


def typed(code: str, email: str = "dave@example.org", password: str = NEW, again: str = NEW) -> dict[str, str]:
    return {"email": email, "code": code, "password1": password, "password2": again}


def use(code: str, client: Client | None = None, **other: str) -> Any:
    return (client or Client()).post("/login/password", typed(code, **other))


def comes_in(email: str, password: str) -> bool:
    return Client().post("/login", {"username": email, "password": password}).status_code == 302


# ---- a new account -----------------------------------------------------------------------------------------------


def test_from_an_administrators_page_to_being_signed_in(ada: User) -> None:
    answer = signed_in(ada).post(f"{PEOPLE}/new", {"email": " Dave@Example.org ", "name": "Dave  B."})
    assert answer.status_code == 200
    assert answer["Cache-Control"].count("no-store") == 1
    code, dave = shown(answer), User.objects.get(email="dave@example.org")
    assert (dave.name, dave.roles, dave.has_usable_password()) == ("Dave B.", [], False)

    client = Client()
    assert use(code, client)["Location"] == "/login"
    assert "Your password is set" in client.get("/login").text
    assert client.get("/tokens").status_code == 302, "setting a password signs nobody in"
    assert comes_in("dave@example.org", NEW)
    verbs = Event.objects.order_by("id").values_list("verb", "actor")
    assert list(verbs) == [
        ("account.added", "Ada"), ("account.password_set", "Dave B."), ("account.signed_in", "Dave B.")
    ]  # fmt: skip


def test_the_code_is_in_no_row(ada: User) -> None:
    """The code is neither in the stored email nor in the history."""
    _, code = account_setup_actions.add_person(email="dave@example.org", name="Dave", by=Actor(ada, "page"))
    (mail,) = Delivery.objects.all()
    assert "/login/password" in mail.body
    secret = code.rpartition("-")[2]
    assert secret not in mail.body + str(list(Event.objects.values()))


@pytest.mark.parametrize(
    ("email", "name", "expected"),
    [
        ("ada@example.org", "Dave", ("email_taken", "email")),
        ("ADA@example.org", "Dave", ("email_taken", "email")),
        ("dave", "Dave", ("bad_address", "email")),
        ("dave@example.org", " ", ("bad_name", "name")),
        ("dave@example.org", "x" * 81, ("bad_name", "name")),
        ("dave@example.org", "Da\u202eve", ("bad_name", "name")),
    ],
)
def test_what_is_wrong_is_named_and_nobody_is_made(ada: User, email: str, name: str, expected: tuple[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        account_setup_actions.add_person(email=email, name=name, by=Actor(ada, "page"))
    assert (refused.value.code, refused.value.refusal.field) == expected
    assert (User.objects.count(), Event.objects.count()) == (1, 0)


def test_the_page_keeps_what_was_typed(ada: User) -> None:
    answer = signed_in(ada).post(f"{PEOPLE}/new", {"email": "ada@example.org", "name": "Dave"})
    assert answer.status_code == 422
    assert "already has an account" in answer.text
    assert 'value="Dave"' in answer.text


def test_programs_get_the_code_once(ada: User) -> None:
    client = caller(ada)
    answer = send(client, "POST", "/api/v1/people", {"email": "dave@example.org", "name": "Dave"})
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    made = answer.json()
    assert use(made["password_code"]).status_code == 302
    again = send(client, "POST", "/api/v1/people", {"email": "dave@example.org", "name": "Dave"})
    assert (again.status_code, again.json()["code"]) == (409, "email_taken")
    found = client.get(f"/api/v1/people/{made['id']}").json()
    assert (found["has_password"], found["has_second_factor"]) == (True, False)
    assert "password_code" not in found


# ---- the password code -------------------------------------------------------------------------------------------


def code_of(user: User) -> str:
    return account_setup_actions.make_password_code(user.pk, lent_to=roles_lent_to, by=system_actor("test"))[1]


def test_a_code_works_once(bob: User) -> None:
    code = code_of(bob)
    assert use(code, email=bob.email).status_code == 302
    other = "another and longer passphrase"
    assert use(code, email=bob.email, password=other, again=other).status_code == 422
    assert comes_in(bob.email, NEW)


def test_it_works_for_three_days(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    code, now = code_of(bob), PasswordResetTokenGenerator()._now()
    at = {"now": now + timedelta(days=3, minutes=1)}
    monkeypatch.setattr(PasswordResetTokenGenerator, "_now", lambda _: at["now"])
    assert use(code, email=bob.email).status_code == 422
    at["now"] = now + timedelta(days=3, minutes=-1)
    assert use(code, email=bob.email).status_code == 302


def test_it_is_void_once_its_person_has_signed_in(bob: User) -> None:
    code = code_of(bob)
    assert comes_in(bob.email, make.PASSWORD)
    assert use(code, email=bob.email).status_code == 422


def test_it_is_for_one_account(alice: User, bob: User) -> None:
    assert use(code_of(bob), email=alice.email).status_code == 422
    assert comes_in(alice.email, make.PASSWORD)


def test_a_suspended_account_takes_none(bob: User) -> None:
    code = code_of(bob)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert use(code, email=bob.email).status_code == 422
    with pytest.raises(Refused) as refused:
        code_of(bob)
    assert refused.value.code == "suspended"


def test_whether_an_address_is_known_is_not_told(bob: User) -> None:
    known, unknown = use("x-y", email=bob.email), use("x-y", email="nobody@example.org")
    said = [re.findall(r"The code is wrong[^<]+", answer.text) for answer in (known, unknown)]
    assert said[0] == said[1] != []
    assert known.status_code == unknown.status_code == 422


@pytest.mark.parametrize(
    ("password", "again", "expected"), [("short", "short", "too short"), (NEW, "other", "match"), ("", "", "required")]
)
def test_a_bad_password_uses_no_code_up(bob: User, password: str, again: str, expected: str) -> None:
    code = code_of(bob)
    answer = use(code, email=bob.email, password=password, again=again)
    assert answer.status_code == 422
    assert expected in answer.text
    assert code in answer.text, "it has not to be typed again"
    assert use(code, email=bob.email).status_code == 302


def test_guessing_gets_slower_for_this_address_alone(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_backoff, "FIRST_WAIT_S", 30)  # so that a slow machine has not waited already
    code = code_of(bob)
    for _ in range(login_backoff.FREE_ATTEMPTS):
        use("x-y", email=bob.email)
    slowed = use(code, email=bob.email)
    assert slowed.status_code == 429
    elsewhere = Client(REMOTE_ADDR="192.0.2.7").post("/login/password", typed(code, email=bob.email))
    assert elsewhere.status_code == 302


def test_all_sessions_end_and_the_second_factor_stays(bob: User) -> None:
    seed = make.second_factor(bob)
    client = Client()
    client.post("/login", {"username": bob.email, "password": make.PASSWORD})
    client.post("/login/code", {"code": make.code(seed)})
    assert client.get("/tokens").status_code == 200
    assert use(code_of(bob), email=bob.email).status_code == 302
    assert client.get("/tokens").status_code == 302
    entered = Client().post("/login", {"username": bob.email, "password": NEW})
    assert entered["Location"] == "/login/code"
    told = Event.objects.get(verb="account.password_set")
    assert told.after == {"sessions_ended": 1}


# ---- accounts that may get a code --------------------------------------------------------------------------------


def refusal(by: User, target: User) -> str:
    return next((found.code for found in both(Actor(by, "page"), target) if found), "")


def both(by: Actor, target: User, lent: Collection[str] = ()) -> list[Any]:
    found = [
        may(by, target, lent=lent) for may in (policy.may_make_password_code, credential_policy.may_drop_second_factor)
    ]
    assert len({one.code if one else "" for one in found}) == 1, "whoever may open an account may do both"
    return found


def test_nobody_comes_to_rights_that_they_lack(ada: User, bob: User) -> None:
    operator, admin = make.user("Olga", roles=[Role.OPERATOR]), make.user("Eve", roles=[Role.ADMIN])
    broken_glass = make.user("Glass", roles=list(Role), is_superuser=True)
    everything = make.user("Max", roles=list(Role))
    assert refusal(ada, bob) == refusal(ada, admin) == refusal(everything, operator) == ""
    assert refusal(ada, operator) == refusal(ada, everything) == "lacks_role"
    assert refusal(everything, broken_glass) == "break_glass"
    assert refusal(ada, ada) == "own_account"
    assert refusal(operator, bob) == "not_allowed"
    assert both(system_actor("operators"), broken_glass) == [None, None]


def test_an_administrators_page_says_so_and_has_no_button(ada: User) -> None:
    olga = make.user("Olga", roles=[Role.OPERATOR])
    make.second_factor(olga)
    client = signed_in(ada)
    text = client.get(f"{PEOPLE}/{olga.pk}").text
    assert "Olga has the role &#x27;operator&#x27; and you do not" in text
    assert f"{PEOPLE}/{olga.pk}/password-code" not in text
    assert f"{PEOPLE}/{olga.pk}/second-factor-drop" not in text
    assert client.post(f"{PEOPLE}/{olga.pk}/password-code").status_code == 403


def test_a_code_for_a_lost_password_from_the_page(ada: User, bob: User) -> None:
    code = shown(signed_in(ada).post(f"{PEOPLE}/{bob.pk}/password-code"))
    assert use(code, email=bob.email).status_code == 302
    subjects = Delivery.objects.filter(user=bob).order_by("id").values_list("subject", flat=True)
    assert list(subjects) == ["A password code was created for you", "Your password was set"]


def test_a_lost_second_factor_is_taken_off(ada: User, bob: User) -> None:
    make.second_factor(bob)
    client = signed_in(ada)
    assert "Remove second factor" in client.get(f"{PEOPLE}/{bob.pk}").text
    assert client.post(f"{PEOPLE}/{bob.pk}/second-factor-drop", {"because": " "}).status_code == 422
    assert client.post(f"{PEOPLE}/{bob.pk}/second-factor-drop", {"because": "Phone lost"}).status_code == 302
    page = client.get(f"{PEOPLE}/{bob.pk}").text
    assert "The second factor of Bob was removed" in page
    assert "Remove second factor" not in page
    path = f"/api/v1/people/{bob.pk}/second-factor-drop"
    again = send(caller(ada), "POST", path, {"because": "Phone lost"})
    assert (again.status_code, again.json()["code"]) == (409, "no_second_factor")
