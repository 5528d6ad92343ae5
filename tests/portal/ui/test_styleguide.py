"""The styleguide shows every component, to staff; the tags and the theme switch that all pages share."""

import re
from datetime import UTC, datetime, timedelta
from enum import Enum

import pytest
from django.http import HttpResponse
from django.template import Context, RequestContext, Template
from django.test import Client, RequestFactory
from django.utils import timezone

from accounts.models import User
from cluster.models import AppliedObject
from portal.templatetags.ui import relative, units
from portal.ui.statuses import STATUSES
from tenants.models import QuotaLine
from workloads.status.types import Phase

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def styleguide(client: Client, user: User) -> HttpResponse:
    client.force_login(user)
    return client.get("/styleguide")


def test_staff_see_every_status_with_its_word(client: Client, olga: User) -> None:
    response = styleguide(client, olga)

    assert response.status_code == 200
    for status in STATUSES.values():
        assert f"{status.word}</span>" in response.content.decode()


def test_it_needs_neither_inline_script_nor_inline_style(client: Client, olga: User) -> None:
    response = styleguide(client, olga)
    html = response.content.decode()

    policy = response["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style\b|\sstyle=|\son[a-z]+=", html)


def test_ids_are_unique(client: Client, olga: User) -> None:
    ids = re.findall(r'\sid="([^"]+)"', styleguide(client, olga).content.decode())
    assert sorted(ids) == sorted(set(ids))


def test_others_find_nothing(client: Client, bob: User) -> None:
    assert styleguide(client, bob).status_code == 404


@pytest.mark.django_db
def test_nobody_is_sent_to_sign_in(client: Client) -> None:
    response = client.get("/styleguide")
    assert response.status_code == 302
    assert response["Location"].startswith("/login")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("theme", "shown"), [("dark", "dark"), ("light", "light"), ("auto", "light"), ("pink", "light")]
)
def test_a_chosen_theme_is_in_the_first_byte_of_the_page(client: Client, theme: str, shown: str) -> None:
    client.post("/theme", {"theme": theme, "next": "/login"})
    assert f'data-bs-theme="{shown}"' in client.get("/login").content.decode()


@pytest.mark.parametrize("target", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"])
def test_the_theme_form_leads_nowhere_else(client: Client, target: str) -> None:
    assert client.post("/theme", {"theme": "dark", "next": target})["Location"] == "/"


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (timedelta(seconds=-3), "just now"),
        (timedelta(seconds=3), "in a moment"),
        (timedelta(seconds=-59), "59 seconds ago"),
        (timedelta(minutes=-1), "1 minute ago"),
        (timedelta(minutes=-119), "1 hour ago"),
        (timedelta(hours=23, minutes=59), "in 23 hours"),
        (timedelta(days=-12), "12 days ago"),
    ],
)
def test_relative_times_use_the_largest_whole_unit(offset: timedelta, words: str) -> None:
    assert relative(NOON + offset, now=NOON) == words


def test_a_moment_carries_its_absolute_time() -> None:
    html = Template('{% load ui %}{% when at "date" %}').render(Context({"at": NOON}))
    assert 'datetime="2026-11-21T12:00:00+00:00"' in html
    assert 'title="21 Nov 2026, 12:00:00 UTC"' in html
    assert ">21 Nov 2026</time>" in html


def test_a_streams_fragment_does_not_change_by_the_passing_of_time_alone() -> None:
    parts = Template("{% load ui %}{% when at %}{% as_of at %}")
    in_stream = parts.render(Context({"at": NOON}))
    on_page = parts.render(RequestContext(RequestFactory().get("/"), {"at": NOON}))
    assert ">21 Nov, 12:00</time>" in in_stream
    assert "Last updated" not in in_stream
    assert "Last updated" in on_page
    assert "21 Nov, 12:00</time>" not in on_page


def test_a_moment_that_did_not_come_is_a_dash_or_what_the_page_says() -> None:
    assert Template('{% load ui %}{% when at "relative" "never" %}').render(Context({"at": None})) == "never"


@pytest.mark.parametrize(("count", "words"), [(0, "0 GPUs"), (1, "1 GPU"), (2.5, "2.5 GPUs"), (None, "–")])
def test_numbers_carry_their_unit_and_unknown_is_no_zero(count: float | None, words: str) -> None:
    assert units(count, "GPU") == words


def test_a_status_outside_the_vocabulary_is_an_error() -> None:
    with pytest.raises(KeyError):
        Template('{% load ui %}{% status "creating" %}').render(Context())


def test_what_people_typed_is_escaped() -> None:
    html = Template('{% load ui %}{% status "failed" words %}').render(Context({"words": "<b>x</b>"}))
    assert "<b>" not in html


@pytest.mark.parametrize("words", [Phase, QuotaLine.State, AppliedObject.Result], ids=lambda words: words.__qualname__)
def test_every_word_that_rows_use_is_in_the_vocabulary(words: type[Enum]) -> None:
    said_otherwise = {"terminating"}  # shown as "stopping"
    assert {str(word.value) for word in words} - said_otherwise <= STATUSES.keys()


def test_a_moment_of_another_year_has_its_year() -> None:
    soon, late = timezone.now() + timedelta(days=0.1), timezone.now() + timedelta(days=3650)
    shown = Template('{% load ui %}{% when soon "minute" %}|{% when late "minute" %}')
    first, second = shown.render(Context({"soon": soon, "late": late})).split("|")
    assert f">{late:%-d %b %Y, %H:%M}<" in second
    assert str(soon.year) not in first.partition(">")[2] or soon.year != timezone.localdate().year
