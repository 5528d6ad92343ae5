"""The administration has no way in of its own."""

import pytest
from django.test import Client

from accounts.models import User


@pytest.mark.django_db
def test_nobody_is_sent_to_the_one_sign_in_page(client: Client) -> None:
    response = client.get("/admin/", follow=True)
    assert response.redirect_chain[-1][0] == "/login?next=/admin/"


def test_guessing_at_the_administrations_own_form_is_not_possible(client: Client, olga: User) -> None:
    response = client.post("/admin/login/", {"username": olga.email, "password": "guess"})
    assert response["Location"] == "/login?next=/admin/"


def test_people_without_administration_find_nothing(client: Client, bob: User) -> None:
    client.force_login(bob)
    assert client.get("/admin/", follow=True).status_code == 404


def test_staff_get_in(client: Client, olga: User) -> None:
    client.force_login(olga)
    assert client.get("/admin/").status_code == 200
    assert client.get("/admin/login/")["Location"] == "/admin/"
