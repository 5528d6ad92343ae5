"""What people, htmx and programs get from a process of web that is full."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from portal.core.errors import DATABASE_AWAY, to_refusal
from portal.core.postgresql.base import DatabaseWrapper
from portal.web import error_pages
from portal.web.admission import gate as gates
from portal.web.admission.gate import BOUNDS
from portal.web.admission.kinds import Kind
from portal.web.admission.middleware import AdmissionMiddleware, caller_of
from portal.web.session_cookie import signed_cookie
from tests.support.rows import make

pytestmark = pytest.mark.django_db
FULL = (Kind.COSTLY, Kind.USUAL)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process of web has as many lists and pages as it may."""
    monkeypatch.setattr(
        gates, "BOUNDS", {kind: gates.Bounds(of.running, 0, 0, of.of_caller) for kind, of in BOUNDS.items()}
    )
    begin = AdmissionMiddleware.__init__

    def begin_full(self: AdmissionMiddleware, get_response: Any) -> None:
        begin(self, get_response)
        for number in range(BOUNDS[Kind.USUAL].running):
            assert self.gate.enter(Kind.USUAL, f"other {number}") is None

    monkeypatch.setattr(AdmissionMiddleware, "__init__", begin_full)


@pytest.fixture
def alice() -> User:
    return make.user("Alice")


@pytest.fixture
def of_alice(full: None, alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def test_a_list_is_refused_in_words_without_the_database(
    of_alice: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        answer = of_alice.get("/queue")

    assert answer.status_code == 503
    assert 2 <= int(answer["Retry-After"]) <= 6
    assert "The portal is busy" in answer.content.decode()
    assert f"Try again in {answer['Retry-After']} s." in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"
    assert answer["Content-Security-Policy"]
    assert answer["X-Request-ID"]


def test_a_program_gets_its_body_and_when(of_alice: Client) -> None:
    answer = of_alice.get("/api/v1/workloads")

    assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
    assert set(answer.json()) == {"code", "message", "field"}
    assert int(answer["Retry-After"]) >= 2


def test_a_form_is_told_that_what_was_typed_is_still_there(of_alice: Client) -> None:
    answer = of_alice.post("/start/join", {"team": "x"})

    assert answer.status_code == 503
    assert "Reload this page to send the form again" in answer.content.decode()


def test_htmx_gets_a_sentence_that_replaces_nothing(of_alice: Client) -> None:
    answer = of_alice.get("/queue", headers={"HX-Request": "true"})

    assert answer.status_code == 503
    assert 'data-refusal="overloaded"' in answer.content.decode()
    assert "<html" not in answer.content.decode()


@pytest.mark.parametrize("path", ["/login", "/start", "/livez", "/readyz"])
def test_sign_in_and_probes_go_through(of_alice: Client, path: str) -> None:
    expected = 503 if path == "/start" else 200
    assert Client().get(path).status_code == expected


def test_home_and_stop_go_through(of_alice: Client, alice: User) -> None:
    assert of_alice.get("/").status_code in (200, 302)
    # There is no such team; what matters is who answers.
    assert of_alice.post("/teams/nowhere/workloads/nb/stop").status_code == 404
    assert of_alice.post("/requests/1/decide").status_code == 404


def test_the_slot_is_free_after_a_failure() -> None:
    def fails(_request: Any) -> HttpResponse:
        raise ValueError("a bug")

    middleware = AdmissionMiddleware(fails)
    for _ in range(2 * BOUNDS[Kind.COSTLY].running + BOUNDS[Kind.COSTLY].waiting):
        with pytest.raises(ValueError, match="a bug"):
            middleware(RequestFactory().get("/queue"))


def test_a_forged_cookie_is_nobody_and_a_session_somebody() -> None:
    def caller(**cookies: str) -> str:
        factory = RequestFactory()
        for name, text in cookies.items():
            factory.cookies[name] = text
        request: WSGIRequest = factory.get("/queue")
        return caller_of(request, Kind.COSTLY)

    assert caller(session="abc:forged") == "127.0.0.1"
    assert caller(session=signed_cookie("abc")) == "abc"
    assert caller() == "127.0.0.1"


def test_a_header_is_no_other_caller_than_the_session_and_a_token_is_one_however_it_is_written() -> None:
    def caller(header: str, kind: Kind = Kind.COSTLY) -> str:
        request: WSGIRequest = RequestFactory().get("/queue", headers={"Authorization": header})
        return caller_of(request, kind)

    assert caller("Bearer t") == caller("bearer  t ") == caller("BEARER t") != caller("Bearer u")
    assert caller("Basic x") == "127.0.0.1"
    assert caller("Bearer made up", Kind.FIRST) == caller("Bearer made up, too", Kind.FIRST) == "127.0.0.1"
    factory = RequestFactory()
    factory.cookies["session"] = signed_cookie("abc")
    assert caller_of(factory.get("/queue", headers={"Authorization": "Bearer t"}), Kind.COSTLY) == "abc"


# ---- no connection to the database ---------------------------------------------------------------------------------


def answer_to(error: Exception) -> HttpResponse:
    try:
        raise error
    except type(error):
        return error_pages.server_error(RequestFactory().get("/"))


def test_a_pool_that_is_used_up_is_503_in_words() -> None:
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 0, "max_size": 1, "timeout": 0.2}}
    asked = {**connection.settings_dict, "OPTIONS": options}
    first, second = DatabaseWrapper(asked, "default"), DatabaseWrapper(asked, "default")
    try:
        first.ensure_connection()
        with pytest.raises(OperationalError) as found:
            second.ensure_connection()
    finally:
        first.close()
        first.close_pool()
    is_503_in_words(found.value)


def test_a_server_without_a_free_connection_is_503_in_words(unique: str) -> None:
    role, password = f"full_{unique}", "password of a test"
    with psycopg.connect(**own_server(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}' CONNECTION LIMIT 0")
        try:
            asked = {**connection.settings_dict, "USER": role, "PASSWORD": password}
            with pytest.raises(OperationalError) as found:
                DatabaseWrapper(asked, "default").ensure_connection()
        finally:
            admin.execute(f"DROP ROLE {role}")
    assert getattr(found.value.__cause__, "sqlstate", None) in ("53300", None)
    assert "too many connections" in str(found.value)
    is_503_in_words(found.value)


def own_server() -> dict[str, Any]:
    params = connection.get_connection_params()
    return {name: params[name] for name in ("host", "port", "user", "password", "dbname") if params.get(name)}


def is_503_in_words(error: Exception) -> None:
    assert to_refusal(error) is DATABASE_AWAY
    answer = answer_to(error)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "cannot reach its database" in answer.content.decode()
