"""The admin site has no sign-in of its own, and asks for a second factor."""

import pytest
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.test import Client

from accounts.core.actor import system_actor
from accounts.models import Event, Role, User
from accounts.people.actions import set_roles
from tests.support.rows import make


@pytest.mark.django_db
def test_nobody_is_sent_to_the_one_sign_in_page(client: Client) -> None:
    response = client.get("/admin/", follow=True)
    assert response.redirect_chain[-1][0] == "/login?next=/admin/"


def test_guessing_at_the_administrations_own_form_is_not_possible(client: Client, olga: User) -> None:
    response = client.post("/admin/login/", {"username": olga.email, "password": "guess"})
    assert response["Location"] == "/login?next=/admin/"


def test_people_without_administration_find_nothing(client: Client, bob: User) -> None:
    make.administrator(client, bob)
    assert client.get("/admin/", follow=True).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN, Role.AUDITOR])
def test_staff_get_in(client: Client, role: Role) -> None:
    make.administrator(client, make.user("Stella", roles=[role]))
    assert client.get("/admin/").status_code == 200
    assert client.get("/admin/login/")["Location"] == "/admin/"


@pytest.mark.django_db
def test_whose_role_is_taken_back_is_out_at_the_next_click(client: Client) -> None:
    stella = make.user("Stella", roles=[Role.OPERATOR])
    make.administrator(client, stella)
    set_roles(stella.pk, [], by=system_actor("test"))
    assert client.get("/admin/", follow=True).status_code == 404


def test_staff_without_a_second_factor_are_led_to_one_and_back(client: Client, olga: User) -> None:
    client.force_login(olga)
    answer = client.get("/admin/catalog/image/", follow=True)
    assert answer.redirect_chain[-1][0] == "/account/second-factor?next=%2Fadmin%2Fcatalog%2Fimage%2F"
    assert "Add a second factor" in answer.text
    assert 'value="/admin/catalog/image/"' in answer.text


def test_a_session_that_has_not_shown_it_shows_it_first(client: Client, olga: User) -> None:
    """The second factor was added in another browser."""
    seed = make.second_factor(olga)
    client.force_login(olga)
    asked = client.get("/admin/", follow=True)
    assert "One-time code" in asked.text
    assert client.post("/account/second-factor", {"code": "000000", "next": "/admin/"}).status_code == 422
    assert client.get("/admin/").status_code == 302
    shown = client.post("/account/second-factor", {"code": make.code(seed), "next": "/admin/"})
    assert shown["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_another_site_is_no_place_to_go_on(client: Client, olga: User, elsewhere: str) -> None:
    seed = make.second_factor(olga)
    client.force_login(olga)
    shown = client.post("/account/second-factor", {"code": make.code(seed), "next": elsewhere})
    assert shown["Location"] == "/account"


def test_one_that_was_taken_away_opens_nothing(client: Client, olga: User) -> None:
    make.administrator(client, olga)
    Authenticator.objects.all().delete()
    assert client.get("/admin/").status_code == 302


def test_somebody_elses_opens_nothing(client: Client, olga: User, bob: User) -> None:
    make.administrator(client, bob)
    shown = client.session["account_authentication_methods"]
    make.second_factor(olga)
    client.force_login(olga)
    session = client.session
    session.update({"account_authentication_methods": shown, "account_authentication_methods_user": str(olga.pk)})
    session.save()
    assert client.get("/admin/").status_code == 302


def test_how_people_sign_in_is_not_edited_there() -> None:
    assert not [model for model in admin.site._registry if model.__module__.startswith("allauth")]


def test_the_administration_has_no_form_for_passwords_of_its_own(client: Client, olga: User) -> None:
    """Such a form would end no session and record no event."""
    make.administrator(client, olga)
    typed = {
        "old_password": make.PASSWORD,
        "new_password1": "a new and long one",
        "new_password2": "a new and long one",
    }
    assert client.post("/admin/password_change/", typed)["Location"] == "/account"
    olga.refresh_from_db()
    assert olga.check_password(make.PASSWORD)


def test_signing_out_there_is_signing_out(client: Client, olga: User) -> None:
    make.administrator(client, olga)
    assert client.post("/admin/logout/").status_code == 302
    assert Event.objects.get().verb == "account.signed_out"
