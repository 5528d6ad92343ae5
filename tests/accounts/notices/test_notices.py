"""The list of notices: who gets which, what is kept, preferences; as page and API."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor, system_actor
from accounts.events import actions, kinds
from accounts.events import queries as event_queries
from accounts.events.texts import VERB_TEXTS
from accounts.models import Delivery, Event, Notice, NoticeChannel, NoticeKind, NoticePreference, User
from accounts.notices import actions as notice_actions
from accounts.notices import queries
from tenants.members import actions as member_actions
from tenants.models import Membership, Tenant
from tests.support.rows import make
from tests.support.source import ROOT, product_modules

pytestmark = pytest.mark.django_db


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def notify(
    user: User, verb: str = "member.changed", *, by: Actor | None = None, about: User | None = None, subject: str = "S"
) -> Event:
    event = actions.record(by or system_actor("test"), verb, about or user)
    actions.deliver(event, [user], subject=subject, body="Text.\n\nhttp://testserver/catalog")
    return event


def subjects(user: User) -> list[str]:
    return list(queries.notices_of(user.pk).order_by(*queries.KEYS).values_list("subject", flat=True))


# ---- what is written ----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def portal(settings: object) -> None:
    settings.PORTAL_URL = "http://testserver"  # type: ignore[attr-defined]


def test_a_mail_is_also_a_notice_that_leads_to_the_page_of_the_mail(bob: User) -> None:
    event = notify(bob, subject="Your role\nchanged")

    notice = Notice.objects.get()
    assert (notice.user, notice.event, notice.kind) == (bob, event, NoticeKind.TEAM)
    assert (notice.subject, notice.link, notice.read_at) == ("Your role changed", "/catalog", None)
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "link"),
    [
        ("Text.\n\nhttp://testserver/requests/1", "/requests/1"),
        ("Decide it: http://testserver/inbox", "/inbox"),
        ("http://testserver/inbox, says somebody.", ""),
        ("http://testserver.example.org/inbox", ""),
        ("http://testserver@example.org/", ""),
        ("https://example.org/", ""),
        ("", ""),
    ],
)
def test_a_notice_leads_only_to_pages_of_this_portal(body: str, link: str) -> None:
    assert kinds.page_of(body, "http://testserver") == link


@pytest.mark.parametrize(
    ("channel", "notices", "mails"), [(NoticeChannel.MAIL, 1, 1), (NoticeChannel.PAGE, 1, 0), (NoticeChannel.OFF, 0, 0)]
)
def test_the_preference_for_the_kind_decides(bob: User, channel: NoticeChannel, notices: int, mails: int) -> None:
    NoticePreference.objects.create(user=bob, kind=NoticeKind.TEAM, channel=channel)
    NoticePreference.objects.create(user=bob, kind=NoticeKind.WAITING, channel=NoticeChannel.OFF)

    notify(bob)

    assert (Notice.objects.count(), Delivery.objects.count()) == (notices, mails)


def test_nobody_turns_off_what_shows_that_an_account_was_taken_over(bob: User) -> None:
    NoticePreference.objects.create(user=bob, kind=NoticeKind.ACCOUNT, channel=NoticeChannel.OFF)

    notify(bob, "account.password_changed")

    assert (Notice.objects.count(), Delivery.objects.count()) == (1, 1)


def test_preferences_of_others_do_not_count(alice: User, bob: User) -> None:
    NoticePreference.objects.create(user=alice, kind=NoticeKind.TEAM, channel=NoticeChannel.OFF)
    event = actions.record(system_actor("test"), "member.changed", bob)

    actions.deliver(event, [alice, bob], subject="S", body="B")

    assert [notice.user for notice in Notice.objects.all()] == [bob]
    assert [mail.user for mail in Delivery.objects.all()] == [bob]


def test_the_same_again_replaces_what_was_not_read(alice: User, bob: User, dana: User) -> None:
    for number in range(3):
        notify(bob, by=page(alice), about=alice, subject=f"{number} of Alice")
    notify(bob, by=page(dana), about=alice, subject="of Dana")
    notify(bob, by=page(alice), about=dana, subject="about Dana")
    assert subjects(bob) == ["about Dana", "of Dana", "2 of Alice"]

    notice_actions.mark_read(bob.pk)
    notify(bob, by=page(alice), about=alice, subject="3 of Alice")

    assert len(subjects(bob)) == 4


def test_old_notices_are_removed_when_new_ones_come(bob: User) -> None:
    notify(bob, subject="old")
    notify(bob, "member.added", subject="newer")
    notice_actions.mark_read(bob.pk)
    Notice.objects.filter(subject="old").update(at=timezone.now() - timedelta(days=91))
    Notice.objects.filter(subject="newer").update(at=timezone.now() - timedelta(days=89))

    notify(bob)

    assert subjects(bob) == ["S", "newer"]


def test_a_plan_made_while_the_tables_were_empty_compares_no_notice_with_each_event(bob: User) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE accounts_event, accounts_notice")
    event = Event(row="workloads.workload.1", verb="run.idle_told")

    plan = event_queries.outdated_notices(event, [bob.pk], NoticeKind.STOPPED).explain()

    assert "SubPlan" in plan
    assert not re.search("Join|Nested Loop", plan), plan


def test_a_reminder_is_shown_on_its_date_and_goes_with_its_token(bob: User) -> None:
    token, _ = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=30, by=page(bob))
    notice = Notice.objects.get()
    assert (notice.kind, subjects(bob)) == (NoticeKind.EXPIRING, [])

    Notice.objects.update(at=timezone.now() - timedelta(seconds=1))
    assert subjects(bob) == [notice.subject]

    api_token_actions.revoke_token(token.prefix, by=page(bob))
    assert not Notice.objects.exists()


def test_who_leaves_a_team_keeps_none_of_its_notices(team_a: Tenant, alice: User, bob: User) -> None:
    member_actions.set_role("team-a", user_id=bob.pk, role=Membership.Role.VIEWER, by=page(alice))
    notify(bob, "account.restored")
    assert len(subjects(bob)) == 2

    member_actions.remove_member("team-a", user_id=bob.pk, by=page(alice))

    assert subjects(bob) == ["S"]


@pytest.mark.parametrize(
    ("verb", "after", "kind"),
    [
        ("request.decided", {"lines": [{"approved": False}, {"approved": True}]}, NoticeKind.APPROVED),
        ("request.decided", {"lines": [{"approved": False}]}, NoticeKind.DENIED),
        ("team.decided", {"approved": True}, NoticeKind.APPROVED),
        ("team.decided", {"approved": False}, NoticeKind.DENIED),
        ("account.second_factor_dropped", {}, NoticeKind.ACCOUNT),
        ("deputy.named", {}, NoticeKind.ACCOUNT),
        ("token.created", {}, NoticeKind.EXPIRING),
        ("member.added", {}, NoticeKind.TEAM),
    ],
)
def test_the_kind_follows_from_the_event(verb: str, after: dict, kind: NoticeKind) -> None:
    assert kinds.kind_of(verb, after) == kind


def test_every_verb_with_a_kind_exists() -> None:
    used = {
        node.value
        for path in product_modules()
        if path != ROOT / "accounts/events/kinds.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(kinds.KINDS) | kinds.DECISIONS <= used
    assert set(kinds.KINDS) | kinds.DECISIONS <= set(VERB_TEXTS)


# ---- the page -----------------------------------------------------------------------------------------------------


def test_the_page_lists_own_notices_and_marks_them_as_read(client: Client, alice: User, bob: User) -> None:
    notify(bob, subject="First")
    notify(bob, "member.added", subject="Second")
    notify(alice, subject="Of Alice")
    client.force_login(bob)

    text = client.get("/notices").content.decode()
    assert text.index("Second") < text.index("First")
    assert "Of Alice" not in text
    assert 'href="/catalog"' in text

    first = Notice.objects.get(subject="First")
    read = client.post("/notices/read?show=unread", {"notice": first.pk})
    assert (read.status_code, read.headers["location"]) == (302, "/notices?show=unread")
    unread = client.get("/notices?show=unread").content.decode()
    assert ("First" in unread, "Second" in unread) == (False, True)

    others = Notice.objects.get(user=alice)
    client.post("/notices/read", {"notice": others.pk})
    client.post("/notices/read")
    assert [one.subject for one in Notice.objects.filter(read_at=None)] == ["Of Alice"]


def test_the_page_costs_the_same_whatever_the_number(
    client: Client, bob: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(bob)
    event = notify(bob)
    for number in (1, 60):
        Notice.objects.bulk_create(Notice(user=bob, event=event, kind="team", subject="n") for _ in range(number))
        with django_assert_num_queries(6):
            answer = client.get("/notices")
    assert "cursor=" in answer.content.decode()


def test_every_page_has_the_number_of_unread_notices(client: Client, bob: User) -> None:
    notify(bob)
    notify(bob, "member.added")
    client.force_login(bob)
    assert '2<span class="visually-hidden"> unread' in client.get("/catalog").content.decode()

    client.post("/notices/read")
    assert " unread</span>" not in client.get("/catalog").content.decode()


def test_preferences_are_kept_where_they_differ_and_recorded(client: Client, bob: User) -> None:
    client.force_login(bob)
    wanted = {str(one.kind): str(one.channel) for one in queries.preferences_of(bob.pk) if one.may_change}

    client.post("/notices/preferences", wanted)
    assert (NoticePreference.objects.count(), Event.objects.count()) == (0, 0)

    client.post("/notices/preferences", wanted | {"team": "off", "account": "off"})
    assert list(NoticePreference.objects.values_list("user", "kind", "channel")) == [(bob.pk, "team", "off")]
    event = Event.objects.get()
    assert (event.verb, event.before, event.after) == ("account.notices_set", {"team": "mail"}, {"team": "off"})
    assert '<option value="off" selected>' in client.get("/notices").content.decode()

    client.post("/notices/preferences", wanted)
    assert not NoticePreference.objects.exists()
    assert client.post("/notices/preferences", wanted | {"team": "pigeon"}).status_code == 422


# ---- API --------------------------------------------------------------------------------------------------------


def test_the_api_lists_marks_and_sets(client: Client, alice: User, bob: User) -> None:
    notify(bob, subject="First")
    notify(bob, "member.added", subject="Second")
    notify(alice, subject="Of Alice")
    client.force_login(bob)

    found = client.get("/api/v1/me/notices?limit=1").json()
    assert [(one["subject"], one["url"]) for one in found["items"]] == [("Second", "http://testserver/catalog")]
    assert [one["subject"] for one in client.get(found["next"]).json()["items"]] == ["First"]

    ids = [found["items"][0]["id"], Notice.objects.get(user=alice).pk]
    answer = client.post("/api/v1/me/notices/read", {"ids": ids}, content_type="application/json")
    assert answer.json() == {"unread": 1}
    unread = client.get("/api/v1/me/notices?show=unread").json()["items"]
    assert [one["subject"] for one in unread] == ["First"]
    assert Notice.objects.filter(user=alice, read_at=None).exists()
    assert client.get("/api/v1/me/notices?show=read").json()["code"] == "invalid"

    address, kind = "/api/v1/me/notices/preferences", "application/json"
    put = client.put(address, {"team": "page"}, content_type=kind).json()
    assert put == client.get(address).json()
    assert {one["kind"]: one["channel"] for one in put["items"]}["team"] == "page"
    refused = client.put(address, {"account": "off"}, content_type=kind)
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_field")


def test_a_teams_token_sees_no_notices_of_its_maker(client: Client, team_a: Tenant, alice: User) -> None:
    _, text = api_token_actions.create_token(
        name="ci", scopes=["read"], expires_in_days=1, tenant="team-a", by=page(alice)
    )
    answer = client.get("/api/v1/me/notices", headers={"Authorization": f"Bearer {text}"})
    assert answer.json()["code"] == "team_token"


def test_what_is_due_later_is_not_counted(bob: User) -> None:
    event = actions.record(system_actor("test"), "member.changed", bob)
    actions.deliver(event, [bob], subject="Later", body="B", at=datetime(2099, 1, 1, tzinfo=UTC))
    assert list(queries.unread_count_of(bob.pk)) == []
    assert notice_actions.mark_read(bob.pk) == 0


def test_a_person_of_no_team_has_the_number_too(client: Client) -> None:
    nora = make.user("Nora")
    notify(nora)
    client.force_login(nora)
    assert '1<span class="visually-hidden"> unread' in client.get("/start").content.decode()
