"""Announcements in the API: operators publish, change and withdraw; everybody reads and acknowledges their own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from tenants.models import Announcement, Tenant
from tests.support.rows import make
from tests.tenants.announcements.test_announcements import announced, shown_to, signed_in

pytestmark = pytest.mark.django_db
OWN, ALL = "/api/v1/announcements", "/api/v1/operators/announcements"


def publish(client: Client, headers: dict[str, str] | None = None, **values: Any) -> Any:
    ends = timezone.now() + timedelta(days=1)
    given = {"title": "Tonight", "body": "Save your work.", "audience": "everybody", "ends_at": ends.isoformat()}
    return client.post(ALL, given | values, content_type="application/json", headers=headers or {})


def change(client: Client, row: Announcement, ends: datetime) -> Any:
    return client.patch(f"{ALL}/{row.pk}", {"ends_at": ends.isoformat()}, content_type="application/json")


def post(client: Client, path: str) -> Any:
    return client.post(path, {}, content_type="application/json")


def own(who: User) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = signed_in(who).get(OWN).json()["items"]
    return found


def test_an_operator_publishes_changes_and_withdraws(team_a: Tenant, olga: User, bob: User, charlie: User) -> None:
    api = signed_in(olga)
    made = publish(api, audience="teams", teams=["team-a"], severity="warning", wants_acknowledgement=True)
    assert made.status_code == 201
    row, told = Announcement.objects.get(), made.json()
    assert (told["state"], told["teams"], told["classes"], told["created_by"]) == ("now", ["team-a"], [], "Olga")
    assert (told["people"], told["acknowledged"]) == (2, 0)
    assert (shown_to(bob), shown_to(charlie)) == (["Tonight"], [])

    later = timezone.now() + timedelta(days=3)
    assert change(api, row, later).json()["ends_at"][:19] == later.isoformat()[:19]
    assert change(api, row, later).status_code == 200, "again changes nothing"
    assert Event.objects.filter(verb="announcement.changed").count() == 1
    assert change(api, row, timezone.now() - timedelta(hours=1)).json()["code"] == "bad_period"

    assert post(signed_in(bob), f"{OWN}/{row.pk}/acknowledge").status_code == 200
    assert api.get(f"{ALL}/{row.pk}").json()["acknowledged"] == 1
    done = post(api, f"{ALL}/{row.pk}/withdraw")
    assert (done.status_code, done.json()["state"]) == (200, "withdrawn")
    for over in (post(api, f"{ALL}/{row.pk}/withdraw"), change(api, row, later)):
        assert (over.status_code, over.json()["code"]) == (409, "is_over")
    assert own(bob) == []


def test_the_same_key_publishes_once(team_a: Tenant, olga: User, bob: User) -> None:
    key, ends = {"Idempotency-Key": "tonight"}, (timezone.now() + timedelta(days=1)).isoformat()
    first, again = (publish(signed_in(olga), key, ends_at=ends) for _time in range(2))
    assert (first.status_code, again.content, again["Idempotent-Replayed"]) == (201, first.content, "true")
    assert Announcement.objects.count() == 1
    assert publish(signed_in(bob), key, ends_at=ends).status_code == 404


def test_open_ones_and_those_that_are_over(olga: User) -> None:
    now, api = timezone.now(), signed_in(olga)
    running = announced(olga, title="now")
    coming = announced(olga, title="later", starts=now + timedelta(hours=1), ends=now + timedelta(hours=2))
    gone = announced(olga, title="gone")
    post(api, f"{ALL}/{gone.pk}/withdraw")
    ids = {
        asked: [one["id"] for one in api.get(f"{ALL}{asked}").json()["items"]]
        for asked in ("", "?open=true", "?open=false")
    }
    assert ids == {
        "": [gone.pk, coming.pk, running.pk],
        "?open=true": [coming.pk, running.pk],
        "?open=false": [gone.pk],
    }
    states = [one["state"] for one in api.get(ALL).json()["items"]]
    assert states == ["withdrawn", "later", "now"]
    assert api.get(f"{ALL}?open=maybe").json()["code"] == "invalid"


def test_each_person_lists_and_acknowledges_their_own(team_a: Tenant, olga: User, bob: User, charlie: User) -> None:
    of_all = announced(olga, title="All", wants_acknowledgement=False)
    of_team = announced(olga, title="Team", audience="teams", teams=["team-a"])
    assert [one["title"] for one in own(bob)] == ["Team", "All"]
    assert [one["title"] for one in own(charlie)] == ["All"]
    client = signed_in(bob)
    for _again in range(2):
        done = post(client, f"{OWN}/{of_team.pk}/acknowledge")
        assert (done.status_code, done.json()["id"]) == (200, of_team.pk)
    assert [one["acknowledged_at"] for one in own(bob)] == [done.json()["acknowledged_at"], None]
    assert shown_to(bob) == ["All"]
    assert post(client, f"{OWN}/{of_all.pk}/acknowledge").status_code == 404, "it asks for no acknowledgement"
    assert post(signed_in(charlie), f"{OWN}/{of_team.pk}/acknowledge").status_code == 404


def test_for_others_there_is_no_list_of_all(olga: User, bob: User) -> None:
    row, client = announced(olga), signed_in(bob)
    answers = [
        client.get(ALL), client.get(f"{ALL}/{row.pk}"), publish(client), post(client, f"{ALL}/{row.pk}/withdraw"),
        change(client, row, timezone.now() + timedelta(days=3)),
    ]  # fmt: skip
    assert {answer.status_code for answer in answers} == {404}
    assert Announcement.objects.get().withdrawn_at is None


@pytest.mark.parametrize("number", [1, 5])
def test_queries_do_not_grow_with_the_rows(
    team_a: Tenant, a100: GpuClass, olga: User, bob: User, number: int, django_assert_max_num_queries: Any
) -> None:
    for _one in range(number):
        announced(olga, audience="classes", classes=[a100.slug])
    for who, path, most in ((bob, OWN, 4), (olga, ALL, 6)):
        client = signed_in(who)
        with django_assert_max_num_queries(most):
            assert len(client.get(path).json()["items"]) == number


# ---- classes that are being retired ------------------------------------------------------------------------------


@pytest.fixture
def heir(a100: GpuClass) -> GpuClass:
    found = make.gpu_class(a100.cluster, slug="h100", name="H100", node_labels={"gpu": "h100"})
    GpuClass.objects.filter(pk=a100.pk).update(
        life_cycle="retiring", successor=found, runs_until=timezone.now() + timedelta(days=9)
    )
    a100.refresh_from_db()
    return found


def test_an_announcement_links_the_successor_of_its_classes(
    team_a: Tenant, a100: GpuClass, heir: GpuClass, olga: User, bob: User
) -> None:
    row = announced(olga, audience="classes", classes=[a100.slug, heir.slug])
    advice = (
        f"Launch on H100 instead, and request quota of it if your team has none. Save what runs on {a100.name} before "
        "it is stopped."
    )
    assert own(bob)[0]["retiring"] == [
        {"gpu_class": a100.slug, "name": a100.name, "successor": "h100", "advice": advice}
    ]
    link = '<a href="/catalog/h100">See H100</a>'
    page = signed_in(bob).get("/notices").content.decode()
    assert (link in page, advice in page) == (True, True)
    assert link in signed_in(olga).get(f"/announcements/{row.pk}").content.decode()
    mail = Delivery.objects.get(user=bob)
    pages = f"{settings.PORTAL_URL}/catalog/h100\n\n{settings.PORTAL_URL}/announcements/{row.pk}"
    assert mail.body.endswith(f"{a100.name}: {advice}\n{pages}")


def test_a_successor_is_named_to_those_alone_who_may_see_it(
    team_a: Tenant, a100: GpuClass, heir: GpuClass, olga: User, bob: User, charlie: User
) -> None:
    GpuClass.objects.filter(pk=heir.pk).update(visibility="named")
    row = announced(olga, audience="everybody")
    row.classes.add(a100)
    team_a.class_access.create(gpu_class=heir)
    named = {who.name: [one["successor"] for one in own(who)[0]["retiring"]] for who in (bob, charlie)}
    assert named == {"Bob": ["h100"], "Charlie": [""]}
    assert "H100" not in signed_in(charlie).get("/notices").content.decode()
    GpuClass.objects.filter(pk=a100.pk).update(visibility="named")
    assert own(charlie)[0]["retiring"] == [], "nor a class that the person may not see"
    GpuClass.objects.update(visibility="everyone", life_cycle="retired")
    assert own(bob)[0]["retiring"] == []


@pytest.mark.parametrize("life_cycle", ["draft", "retired"])
def test_a_successor_that_is_not_open_is_not_named(
    team_a: Tenant, a100: GpuClass, heir: GpuClass, olga: User, bob: User, life_cycle: str
) -> None:
    GpuClass.objects.filter(pk=heir.pk).update(life_cycle=life_cycle)
    announced(olga, audience="classes", classes=[a100.slug])
    [one] = own(bob)[0]["retiring"]
    assert (one["successor"], "Choose another class from the catalog" in one["advice"]) == ("", True)
    mail = Delivery.objects.get(user=bob)
    assert "H100" not in mail.body
