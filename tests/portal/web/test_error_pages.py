"""What people, htmx and API clients get when something went wrong."""

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django import DjangoAssertNumQueries

from portal.web import error_pages

pytestmark = pytest.mark.django_db


def raised(error: Exception, path: str = "/somewhere") -> HttpResponse:
    """server_error as Django calls it: while the exception is being handled."""
    request: HttpRequest = RequestFactory().get(path)
    try:
        raise error
    except type(error):
        return error_pages.server_error(request)


def test_an_unknown_address_says_what_it_may_have_been(client: Client) -> None:
    response = client.get("/no-such-page")
    assert response.status_code == 404
    assert "you are not a member of its team" in response.content.decode()


def test_htmx_gets_the_sentence_not_a_page(client: Client) -> None:
    response = client.get("/no-such-page", headers={"HX-Request": "true"})
    assert "data-refusal" in response.content.decode()
    assert "<html" not in response.content.decode()


def test_the_api_gets_its_one_error_body(client: Client) -> None:
    response = client.get("/api/v1/no-such-thing")
    assert response.status_code == 404
    assert set(response.json()) == {"code", "message", "field"}


def test_a_form_without_token_is_explained() -> None:
    response = Client(enforce_csrf_checks=True).post("/theme", {"theme": "dark"})
    assert response.status_code == 403
    assert "Form expired" in response.content.decode()


def test_our_own_mistake_is_a_page_that_needs_no_database(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        response = raised(ValueError("a bug"))
    assert response.status_code == 500
    assert "This is an error in the portal." in response.content.decode()
    assert "a bug" not in response.content.decode()


def test_a_lost_database_is_503_and_says_when_to_come_back() -> None:
    response = raised(OperationalError("server closed the connection"))
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert "server closed" not in response.content.decode()


def test_mistakes_in_the_api_have_its_body() -> None:
    response = raised(ValueError("a bug"), path="/api/v1/me")
    assert response.status_code == 500
    assert b'"code": "internal_error"' in response.content
