"""An administrator must not come to the rights of an approver by taking over the account of the approver's delegate."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Role, Scope, User
from accounts.sign_in.oidc import actions as oidc_actions
from portal.core.errors import Refused
from tenants.approvers.delegation import actions as delegation_actions
from tenants.approvers.delegation.queries import roles_lent_to
from tenants.models import Deputy
from tests.support.http.callers import caller, send
from tests.support.rows import make

pytestmark = pytest.mark.django_db
NEW = "a new and long passphrase"


@pytest.fixture
def dave(db: None) -> User:
    return make.user("Dave")


@pytest.fixture
def eve(db: None) -> User:
    """An administrator without the role approver."""
    return make.user("Eve", roles=[Role.ADMIN])


@pytest.fixture
def ada(db: None) -> User:
    return make.user("Ada", roles=[Role.ADMIN, Role.APPROVER])


def lend(by: User, to: User, *, since: float, until: float = 20) -> Deputy:
    now = timezone.now()
    return delegation_actions.name_delegate(
        email=to.email, starts=now + timedelta(days=since), ends=now + timedelta(days=until), by=Actor(by, "page")
    )


def signed_in(user: User) -> Client:
    return make.administrator(Client(), user)


def code_from_page(by: User, target: User) -> str:
    answer = signed_in(by).post(f"/people/{target.pk}/password-code")
    found = re.search(r'id="code" tabindex="0">([^<]+)<', answer.text)
    return found[1] if found else ""


def use(code: str, user: User) -> Any:
    typed = {"email": user.email, "code": code, "password1": NEW, "password2": NEW}
    return Client().post("/login/password", typed)


@pytest.mark.parametrize("since", [0, 7], ids=["now", "from next week"])
def test_a_delegates_account_is_closed_to_who_may_not_approve(
    eve: User, ada: User, dana: User, dave: User, since: float
) -> None:
    make.second_factor(dave)
    row = lend(dana, dave, since=since)
    for verb, body in (("password-code", None), ("second-factor-drop", {"because": "Phone lost"})):
        by_page = signed_in(eve).post(f"/people/{dave.pk}/{verb}", body or {})
        by_token = send(caller(eve, Scope.ADMIN), "POST", f"/api/v1/people/{dave.pk}/{verb}", body)
        assert (verb, by_page.status_code, by_token.status_code) == (verb, 403, 403)
        assert by_token.json()["code"] == "lacks_role"
    text = signed_in(eve).get(f"/people/{dave.pk}").text
    assert "Dave is a delegate, now or later, of a person with the role &#x27;approver&#x27;" in text
    assert f"/people/{dave.pk}/password-code" not in text
    assert code_from_page(ada, dave), "an administrator who approves too gains nothing"
    delegation_actions.end_delegation(row.pk, by=Actor(dana, "page"))
    assert code_from_page(eve, dave)


def test_a_delegation_that_is_void_for_now_counts(eve: User, dana: User, dave: User) -> None:
    lend(dana, dave, since=0)
    User.objects.filter(pk=dana.pk).update(is_active=False)
    assert not code_from_page(eve, dave)


def test_nor_is_single_sign_on_connected(eve: User, dana: User, dave: User) -> None:
    lend(dana, dave, since=7)
    with pytest.raises(Refused) as refused:
        oidc_actions.connect_identity(
            dave.pk, issuer="https://sso.example.org", subject="eve", lent_to=roles_lent_to, by=Actor(eve, "page")
        )
    assert refused.value.code == "lacks_role"


def test_a_code_of_before_ends_with_the_delegation(eve: User, ada: User, dana: User, dave: User) -> None:
    """Otherwise an administrator would make the code first and use it once the approver is away."""
    of_eve, of_ada = code_from_page(eve, dave), code_from_page(ada, dave)
    lend(dana, dave, since=7)
    assert use(of_eve, dave).status_code == 422
    assert use(of_ada, dave).status_code == 302


def test_a_code_of_before_ends_with_a_role(eve: User, dave: User) -> None:
    code = code_from_page(eve, dave)
    User.objects.filter(pk=dave.pk).update(roles=[Role.OPERATOR])
    assert use(code, dave).status_code == 422


def test_a_code_ends_with_its_makers_role(eve: User, dave: User) -> None:
    code = code_from_page(eve, dave)
    User.objects.filter(pk=eve.pk).update(is_active=False)
    assert use(code, dave).status_code == 422
    User.objects.filter(pk=eve.pk).update(is_active=True)
    assert use(code, dave).status_code == 302


def test_nobody_writes_another_maker_on_a_code(eve: User, ada: User, dana: User, dave: User) -> None:
    code = code_from_page(eve, dave)
    lend(dana, dave, since=7)
    for maker in (str(ada.pk), "0", "", "x", "9" * 60):
        assert use(f"{maker}-{code.partition('-')[2]}", dave).status_code == 422
