"""One refusal, three renderings; and what other libraries raise, in our words."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django import forms
from django.db import IntegrityError, OperationalError, connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory
from django_htmx.middleware import HtmxDetails
from rest_framework import exceptions as drf

from accounts.models import ApiToken, User
from portal.core import errors
from portal.core.errors import NOT_FOUND, NOT_SIGNED_IN, Refusal, Refused, get_or_refuse, refuse, refuse_if, to_refusal
from portal.web import refusals
from portal.web.refusals import RefusalMiddleware, refusal_in_form
from tests.support.rows import make

EXCEEDS = Refusal("exceeds_grant", "6 A100 asked, at most 4 possible here.", "units")


# ---- raising refusals ----------------------------------------------------------------------------------------------


def test_a_refusal_is_raised_and_none_is_not() -> None:
    refuse_if(None)
    with pytest.raises(Refused, match="at most 4 possible") as refused:
        refuse_if(EXCEEDS)
    assert (refused.value.code, refused.value.refusal.status) == ("exceeds_grant", 422)


@pytest.mark.parametrize("pk", ["x", None, 2**80, -1, "\0", 3.5])
def test_a_key_that_cannot_be_one_finds_nothing(db: None, pk: object) -> None:
    with pytest.raises(Refused) as refused:
        get_or_refuse(User.objects.all(), pk=pk)
    assert refused.value.refusal is NOT_FOUND


def test_text_that_postgresql_cannot_hold_finds_nothing(db: None) -> None:
    with pytest.raises(Refused):
        get_or_refuse(ApiToken.objects.all(), prefix="a\0b")


def test_the_row_is_returned(alice: User) -> None:
    assert get_or_refuse(User.objects.all(), email="alice@example.org") == alice


# ---- refusals beside a form field ----------------------------------------------------------------------------------


class UnitsForm(forms.Form):
    units = forms.IntegerField()


def test_a_refusal_stands_beside_the_field_it_names() -> None:
    form = UnitsForm({"units": "6"})
    assert form.is_valid()

    with refusal_in_form(form):
        raise Refused(EXCEEDS)

    assert form.errors == {"units": ["6 A100 asked, at most 4 possible here."]}


def test_a_refusal_of_a_field_that_the_form_lacks_stands_above_it() -> None:
    form = UnitsForm({"units": "6"})

    with refusal_in_form(form):
        raise refuse("name_taken", "This name is taken.", field="name", status=409)

    assert form.non_field_errors() == ["This name is taken."]


@pytest.mark.parametrize("refusal", [NOT_FOUND, NOT_SIGNED_IN, Refusal("not_allowed", "No.", status=403)])
def test_what_is_not_about_the_input_stays_a_page(refusal: Refusal) -> None:
    with pytest.raises(Refused), refusal_in_form(UnitsForm({"units": "6"})):
        raise Refused(refusal)


# ---- exceptions of Django and PostgreSQL ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exception", "status", "code", "field"),
    [
        (Http404(), 404, "not_found", None),
        (drf.NotFound(), 404, "not_found", None),
        (drf.NotAuthenticated(), 401, "not_signed_in", None),
        (drf.AuthenticationFailed(), 401, "not_signed_in", None),
        (drf.PermissionDenied(), 403, "not_allowed", None),
        (drf.Throttled(wait=12), 429, "too_many_requests", None),
        (drf.ParseError(), 400, "parse_error", None),
        (drf.MethodNotAllowed("PUT"), 405, "method_not_allowed", None),
        (drf.UnsupportedMediaType("text/plain"), 415, "unsupported_media_type", None),
        (drf.ValidationError({"lines": [{}, {"units": ["A whole number."]}]}), 422, "invalid", "lines[1].units"),
        (drf.ValidationError({"non_field_errors": ["Both or neither."]}), 422, "invalid", None),
        (drf.ValidationError(["Not valid."]), 422, "invalid", None),
    ],
)
def test_every_exception_of_the_framework_has_a_refusal(
    exception: Exception, status: int, code: str, field: str | None
) -> None:
    refusal = to_refusal(exception)

    assert refusal is not None
    assert (refusal.status, refusal.code, refusal.field) == (status, code, field)


def test_a_mistake_of_ours_is_no_refusal() -> None:
    assert to_refusal(ZeroDivisionError()) is None


def caused(change: Callable[[], object]) -> Exception:
    with pytest.raises((IntegrityError, OperationalError)) as raised, transaction.atomic():
        change()
    return raised.value


def test_a_constraint_with_a_sentence_says_it(alice: User) -> None:
    refusal = to_refusal(caused(lambda: make.user("Alice")))

    assert refusal is not None
    assert (refusal.status, refusal.code, refusal.field) == (409, "email_taken", "email")


def test_a_constraint_without_a_sentence_is_a_conflict(alice: User) -> None:
    refusal = to_refusal(caused(lambda: User.objects.filter(pk=alice.pk).update(roles=["emperor"])))

    assert refusal is errors.CONFLICT


def test_a_missing_value_is_our_mistake_and_not_a_conflict(alice: User) -> None:
    assert to_refusal(caused(lambda: User.objects.filter(pk=alice.pk).update(name=None))) is None


def test_a_row_that_is_locked_too_long_is_busy(alice: User) -> None:
    def raise_lock_not_available() -> None:
        with connection.cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION 'busy' USING ERRCODE = 'lock_not_available'; END $$")

    refusal = to_refusal(caused(raise_lock_not_available))

    assert refusal is errors.BUSY
    assert refusal.retry_after_s == 2


def test_a_database_that_is_away_is_said_to_be() -> None:
    assert to_refusal(OperationalError("connection refused")) is errors.DATABASE_AWAY


# ---- rendering of errors -------------------------------------------------------------------------------------------


def rendered(exception: Exception, **headers: str) -> HttpResponse | None:
    request: HttpRequest = RequestFactory().get("/teams/a?tab=quota", headers=headers)
    request.htmx = HtmxDetails(request)  # type: ignore[attr-defined]
    return RefusalMiddleware(lambda _: HttpResponse()).process_exception(request, exception)


def test_a_page_says_the_sentence(db: None) -> None:
    response = rendered(Refused(EXCEEDS))

    assert response is not None
    assert response.status_code == 422
    assert "6 A100 asked, at most 4 possible here." in response.text
    assert "<html" in response.text


def test_a_fragment_says_the_same_sentence(db: None) -> None:
    response = rendered(Refused(EXCEEDS), hx_request="true")

    assert response is not None
    assert response.status_code == 422
    assert "6 A100 asked, at most 4 possible here." in response.text
    assert "<html" not in response.text


def test_the_api_says_the_same_sentence(db: None) -> None:
    response = refusals.api_exception_handler(Refused(EXCEEDS), {})

    assert response is not None
    assert response.status_code == 422
    assert response.data == {
        "code": "exceeds_grant",
        "message": "6 A100 asked, at most 4 possible here.",
        "field": "units",
    }
    assert json.loads(refusals.json_refusal(EXCEEDS).content) == response.data


def test_what_is_worth_waiting_for_says_how_long(db: None) -> None:
    page = rendered(Refused(errors.BUSY))
    api = refusals.api_exception_handler(drf.Throttled(wait=12), {})

    assert page is not None
    assert page["Retry-After"] == "2"
    assert api is not None
    assert api["Retry-After"] == "13"


def test_nobody_is_sent_to_sign_in_and_back(db: None) -> None:
    page = rendered(Refused(NOT_SIGNED_IN))
    fragment = rendered(Refused(NOT_SIGNED_IN), hx_request="true")
    api = refusals.api_exception_handler(drf.NotAuthenticated(), {})

    assert page is not None
    assert (page.status_code, page["Location"]) == (302, "/login?next=/teams/a%3Ftab%3Dquota")
    assert fragment is not None
    # Navigating there would lose what somebody typed.
    assert (fragment.status_code, "HX-Redirect" in fragment.headers) == (401, False)
    assert 'href="/login" target="_blank"' in fragment.content.decode()
    assert api is not None
    assert (api.status_code, api["WWW-Authenticate"]) == (401, "Bearer")


def test_a_mistake_of_ours_and_a_lost_database_go_on_to_the_plain_page() -> None:
    assert rendered(ZeroDivisionError()) is None
    assert rendered(OperationalError("connection refused")) is None
