"""Announcements: who sees them, until when, who acknowledged them, and what they cost on every page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.core.actor import Actor
from accounts.models import Event, NoticePreference, User
from catalog.models import GpuClass
from desk.home.fragments import people_fragments, versions
from desk.navigation.queries import page_facts
from portal.core import hints
from portal.core.errors import Refused
from portal.core.hints import person_channel
from tenants.announcements import actions, queries
from tenants.models import Announcement, ClassAccess, Namespace, Tenant
from tests.support.rows import make, running

pytestmark = pytest.mark.django_db
TITLE = "Maintenance of <b>switches</b>"


def announced(olga: User, **values: Any) -> Announcement:
    now = timezone.now()
    given: dict[str, Any] = {
        "title": TITLE, "body": "Save your work.", "severity": "warning", "audience": "everybody", "classes": [],
        "teams": [], "starts": now - timedelta(hours=1), "ends": now + timedelta(hours=1),
        "wants_acknowledgement": True,
    }  # fmt: skip
    return actions.announce(**given | values, by=Actor(user=olga, via="page"))


def shown_to(who: User) -> list[str]:
    return [one["title"] for one in page_facts(who).announcements]


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


def test_everybody_sees_it_as_text_on_every_page(team_a: Tenant, olga: User, bob: User, charlie: User) -> None:
    announced(olga)
    for who in (bob, charlie):
        said = signed_in(who).get("/catalog").content.decode()
        assert said.count("Maintenance of &lt;b&gt;switches&lt;/b&gt;") == 1
    assert TITLE not in Client().get("/login").content.decode()


def test_a_team_sees_its_own_and_a_stranger_finds_nothing(team_a: Tenant, olga: User, bob: User, charlie: User) -> None:
    row = announced(olga, audience="teams", teams=["team-a"])
    assert (shown_to(bob), shown_to(charlie)) == ([TITLE], [])
    address = f"/announcements/{row.pk}"
    assert signed_in(bob).get(address).status_code == 200
    assert signed_in(charlie).get(address).status_code == 404
    assert signed_in(charlie).post(f"{address}/acknowledge").status_code == 404


def test_users_of_a_class_by_visibility_access_grant_or_workload(
    namespace_a: Namespace, a100: GpuClass, olga: User, alice: User, charlie: User
) -> None:
    announced(olga, audience="classes", classes=[a100.slug])
    assert (shown_to(alice), shown_to(charlie)) == ([TITLE], [])  # Charlie is in no team
    GpuClass.objects.update(visibility=GpuClass.Visibility.NAMED)
    assert shown_to(alice) == []

    access = ClassAccess.objects.create(tenant=namespace_a.tenant, gpu_class=a100)
    assert shown_to(alice) == [TITLE]
    access.delete()

    grant = make.grant(namespace_a.tenant, a100, units=1)
    assert shown_to(alice) == [TITLE]
    now = timezone.now()
    grant.period = DateTimeTZRange(now - timedelta(days=2), now - timedelta(days=1))
    grant.save()
    assert shown_to(alice) == []

    held = running.workload(namespace_a, a100, by=alice)
    assert shown_to(alice) == [TITLE]
    held.deleted_at = now
    held.save()
    assert shown_to(alice) == []


@pytest.mark.parametrize(("since", "until"), [(1, 2), (-2, -1)])
def test_nobody_sees_it_outside_of_its_period(olga: User, charlie: User, since: int, until: int) -> None:
    row, now = announced(olga), timezone.now()
    row.period = DateTimeTZRange(now + timedelta(hours=since), now + timedelta(hours=until))
    row.save()
    assert shown_to(charlie) == []
    assert signed_in(charlie).get(f"/announcements/{row.pk}").status_code == 404


def test_withdrawn_it_vanishes_at_once(olga: User, charlie: User) -> None:
    row = announced(olga)
    assert signed_in(olga).post(f"/announcements/{row.pk}/withdraw").status_code == 302
    assert shown_to(charlie) == []
    assert signed_in(charlie).get(f"/announcements/{row.pk}").status_code == 404
    with pytest.raises(Refused) as refused:
        actions.withdraw_announcement(row.pk, by=Actor(user=olga, via="page"))
    assert refused.value.code == "is_over"


def test_acknowledged_it_goes_away_for_this_person_and_is_counted_once(
    team_a: Tenant, olga: User, alice: User, bob: User
) -> None:
    row = announced(olga, audience="teams", teams=["team-a"])
    for _again in range(2):
        assert signed_in(bob).post(f"/announcements/{row.pk}/acknowledge").status_code == 302
    assert (shown_to(bob), shown_to(alice)) == ([], [TITLE])
    reached = team_a.memberships.count()
    assert queries.acknowledged_of(row) == (1, reached)
    assert f"Acknowledged by 1 of {reached} people" in signed_in(olga).get(f"/announcements/{row.pk}").content.decode()
    assert Event.objects.filter(verb="announcement.acknowledged").count() == 1


def test_without_the_wish_there_is_nothing_to_acknowledge(olga: User, bob: User) -> None:
    row = announced(olga, wants_acknowledgement=False)
    assert signed_in(bob).post(f"/announcements/{row.pk}/acknowledge").status_code == 404
    assert "Acknowledge" not in signed_in(bob).get("/catalog").content.decode()


def test_one_query_whatever_the_number_of_announcements_and_teams(
    team_a: Tenant, olga: User, bob: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    cluster = team_a.namespaces.get().cluster
    for number in range(5):
        team = make.tenant(cluster, slug=f"more-{number}")
        make.member(team, bob)
        announced(olga, audience="teams", teams=["team-a", team.slug])
    with django_assert_num_queries(1):
        facts = page_facts(bob)
    assert (len(facts.teams), len(facts.announcements)) == (6, 5)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"title": " "}, "bad_announcement"),
        ({"body": "x" * 2001}, "bad_announcement"),
        ({"audience": "teams"}, "bad_announcement"),
        ({"teams": ["team-a"]}, "bad_announcement"),
        ({"audience": "classes", "classes": ["nothing"]}, "unknown_class"),
        ({"audience": "teams", "teams": ["nothing"]}, "unknown_team"),
        ({"ends": timezone.now() - timedelta(minutes=1)}, "bad_period"),
    ],
)
def test_refused(team_a: Tenant, olga: User, values: dict[str, Any], code: str) -> None:
    with pytest.raises(Refused) as refused:
        announced(olga, **values)
    assert refused.value.code == code
    assert not Announcement.objects.exists()


def test_only_operators_announce(team_a: Tenant, bob: User) -> None:
    with pytest.raises(Refused) as refused:
        announced(bob)
    assert refused.value.code == "not_allowed"
    assert signed_in(bob).get("/operators/announcements").status_code == 404


# ---- live --------------------------------------------------------------------------------------------------------


def seen_of(who: User) -> str:
    return page_facts(who).announced or "-"


def test_the_part_of_pages_is_fetched_only_if_it_changed(team_a: Tenant, olga: User, bob: User) -> None:
    client, row = signed_in(bob), announced(olga, audience="teams", teams=["team-a"])
    page = client.get("/catalog").content.decode()
    assert f'<input type="hidden" name="announced" value="{seen_of(bob)}">' in page
    assert client.get("/announcements/now", {"announced": seen_of(bob)}).status_code == 204
    fetched = client.get("/announcements/now", {"announced": "-"}).content.decode()
    assert "Maintenance of &lt;b&gt;switches&lt;/b&gt;" in fetched
    assert f'value="{seen_of(bob)}"' in fetched
    client.post(f"/announcements/{row.pk}/acknowledge")
    assert 'name="announced" value="-"' in client.get("/announcements/now", {"announced": "x"}).content.decode()
    assert client.get("/announcements/now", {"announced": "-"}).status_code == 204


@pytest.mark.parametrize("change", ["begins", "ends", "withdrawn", "acknowledged", "retired", "left"])
def test_the_stream_of_a_page_sees_each_change(
    team_a: Tenant, a100: GpuClass, olga: User, bob: User, alice: User, change: str
) -> None:
    """Also those of the clock, which no hint reports."""
    row, now = announced(olga, audience="teams", teams=["team-a"]), timezone.now()
    row.classes.add(a100)
    later = DateTimeTZRange(now + timedelta(hours=1), now + timedelta(hours=2))
    if change == "begins":
        Announcement.objects.update(period=later)
    channels = [person_channel(who.pk) for who in (alice, bob)]
    before = versions(channels)
    assert versions(channels) == before
    if change == "begins":
        Announcement.objects.update(period=DateTimeTZRange(now - timedelta(hours=1), now + timedelta(hours=2)))
    elif change == "ends":
        Announcement.objects.update(period=DateTimeTZRange(now - timedelta(hours=2), now - timedelta(hours=1)))
    elif change == "withdrawn":
        Announcement.objects.update(withdrawn_at=now)
    elif change == "acknowledged":
        row.acknowledgements.create(user=bob)
    elif change == "retired":
        GpuClass.objects.update(life_cycle="retiring")
    else:
        team_a.memberships.filter(user=bob).delete()
    after = versions(channels)
    assert after[channels[1]] != before[channels[1]]
    is_for_all = change not in ("acknowledged", "left")
    assert (after[channels[0]] != before[channels[0]]) == is_for_all
    parts, _version = people_fragments(channels)[channels[1]]
    assert parts["state_announcements"].decode() == seen_of(bob), "as the page computes it in another query"


def test_open_pages_of_the_audience_are_told_at_once(
    team_a: Tenant, olga: User, bob: User, alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    told: list[set[int]] = []
    monkeypatch.setattr(hints, "_send_person_hints", lambda pks: told.append(set(pks)))
    NoticePreference.objects.create(user=bob, kind="announced", channel="off")
    team = {alice.pk, bob.pk}

    def hinted(done: Callable[[], object]) -> set[int]:
        told.clear()
        with django_capture_on_commit_callbacks(execute=True):
            done()
        return set().union(*told)

    assert hinted(lambda: announced(olga, audience="teams", teams=["team-a"])) == team
    row, by = Announcement.objects.get(), Actor(user=olga, via="page")
    assert hinted(lambda: actions.acknowledge(row.pk, by=Actor(user=bob, via="page"))) == {bob.pk}
    later = timezone.now() + timedelta(days=2)
    assert hinted(lambda: actions.change_end(row.pk, ends=later, by=by)) == team
    assert hinted(lambda: actions.change_end(row.pk, ends=later, by=by)) == set()
    assert hinted(lambda: actions.withdraw_announcement(row.pk, by=by)) == team
