"""The cluster page, for every user: capacity, queue, waits and banner, but no people or work of other teams."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.texts import VERB_TEXTS
from accounts.models import Event, Role, User
from catalog.banner import actions as banner_actions
from catalog.models import Banner, GpuClass
from cluster.models import Cluster
from desk.capacity.queries import ClassCapacity, cluster_page
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from workloads.models import Run

pytestmark = pytest.mark.django_db

CANARY = "canary"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def by(user: User) -> Actor:
    return Actor(user=user, via="page")


@pytest.fixture
def carol(db: None) -> User:
    return make.user("Canary-Carol")


@pytest.fixture
def namespace_b(cluster: Cluster, carol: User, unique: str) -> Namespace:
    """A team whose names all contain CANARY, so that a leak is found."""
    tenant = make.tenant(cluster, slug=f"{CANARY}-team", namespace=f"{CANARY}-{unique}")
    make.member(tenant, carol)
    return tenant.namespaces.get()


def waits(namespace: Namespace, gpu_class: GpuClass, who: User, number: int) -> None:
    for one in range(number):
        name = f"{CANARY}-{one}" if namespace.name.startswith(CANARY) else f"mine-{one}"
        running.workload(namespace, gpu_class, name=name, by=who, origin=f"{name}{namespace.pk}")


def waited(namespace: Namespace, gpu_class: GpuClass, who: User, *seconds: int) -> None:
    """Creates one ended run for each of the given wait times, in seconds."""
    at = timezone.now() - timedelta(days=2)
    for number, one in enumerate(seconds):
        name = f"{CANARY}-w{number}" if namespace.name.startswith(CANARY) else f"w{number}"
        found = running.workload(namespace, gpu_class, name=name, by=who, origin=f"{name}{namespace.pk}")
        times = {"requested_at": at, "admitted_at": at + timedelta(seconds=one), "ended_at": timezone.now()}
        Run.objects.filter(workload=found).update(**times, outcome="stopped")


def line(who: User, gpu_class: GpuClass) -> ClassCapacity:
    page = cluster_page(by(who), gpu_class.cluster)
    return next(one for one in page.lines if one.slug == gpu_class.slug)


def test_what_there_is_and_who_waits(
    a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User, carol: User
) -> None:
    mirrored.hardware_seen(a100.cluster)
    waits(namespace_a, a100, alice, 1)
    waits(namespace_b, a100, carol, 3)
    found = line(alice, a100)
    assert found.free == found.allocatable
    assert found.free
    assert (found.yours, found.others, found.others_text) == (1, 3, "3")
    assert "Queued: 1 run of your teams, 3 of other teams." in " ".join(signed_in(alice).get("/cluster").text.split())


@pytest.mark.parametrize("number", [1, 2])
def test_small_numbers_of_others_are_a_few(
    a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User, carol: User, olga: User, number: int
) -> None:
    mirrored.hardware_seen(a100.cluster)
    waits(namespace_b, a100, carol, number)
    found = line(alice, a100)
    assert (found.yours, found.others, found.others_text) == (0, None, "a few")
    assert line(carol, a100).yours == number, "one's own are told"
    assert line(olga, a100).others == number, "staff see all"


def test_nothing_of_another_team_is_named(
    a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User, carol: User
) -> None:
    mirrored.hardware_seen(a100.cluster)
    waits(namespace_b, a100, carol, 2)
    waited(namespace_b, a100, carol, 7777, 7777)
    for path in ("/cluster", "/api/v1/cluster"):
        answer = signed_in(alice).get(path)
        assert answer.status_code == 200
        assert CANARY not in answer.text.lower()
        assert "7777" not in answer.text
        assert "2 hours" not in answer.text
    [shown] = signed_in(alice).get("/api/v1/cluster").json()["lines"]
    assert (shown["others"], shown["others_text"], shown["median_s"]) == (None, "a few", None)


def test_the_median_leaves_out_a_few_of_others(
    a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User, carol: User, charlie: User
) -> None:
    waited(namespace_a, a100, alice, 10, 20, 30)
    waited(namespace_b, a100, carol, 5000, 6000)
    assert line(alice, a100).median_s == pytest.approx(20)
    assert line(carol, a100).median_s == pytest.approx(30), "three of others may be told"
    assert line(charlie, a100).median_text == "30 seconds"


def test_waits_of_long_ago_and_a_few_say_nothing(a100: GpuClass, namespace_a: Namespace, alice: User) -> None:
    waited(namespace_a, a100, alice, 10, 20, 30)
    Run.objects.filter(workload__name="w0").update(admitted_at=timezone.now() - timedelta(days=31))
    assert line(alice, a100).median_s is None
    assert "Median wait unknown: too few runs." in signed_in(alice).get("/cluster").text


def test_what_is_not_known_is_not_nothing(a100: GpuClass, namespace_a: Namespace, alice: User) -> None:
    found = line(alice, a100)
    assert (found.free, found.yours, found.others, found.others_text) == (None, None, None, "unknown")
    text = signed_in(alice).get("/cluster").text
    assert "Free units unknown." in text
    assert "Queue length unknown." in text


def test_a_class_of_named_teams_is_not_there_for_others(a100: GpuClass, alice: User, olga: User) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(visibility="named")
    assert cluster_page(by(alice), a100.cluster).lines == []
    assert [one.slug for one in cluster_page(by(olga), a100.cluster).lines] == [a100.slug]


def test_a_held_class_says_so(a100: GpuClass, alice: User) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(held_since=timezone.now(), held_reason="a driver update")
    assert "for a driver update" in signed_in(alice).get("/cluster").text


def test_queries_do_not_grow(
    a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User, carol: User, unique: str
) -> None:
    mirrored.hardware_seen(a100.cluster)
    with CaptureQueriesContext(connection) as few:
        cluster_page(by(alice), a100.cluster)
    for number in range(4):
        waits(namespace_b, make.gpu_class(a100.cluster, slug=f"c{number}-{unique}"), carol, 0)
    waits(namespace_b, a100, carol, 4)
    with CaptureQueriesContext(connection) as many:
        cluster_page(by(alice), a100.cluster)
    assert len(few) == len(many) <= 9


# ---- banner on pages -------------------------------------------------------------------------------------------------


def test_everybody_reads_the_banner_at_home_and_on_the_page(namespace_a: Namespace, alice: User, olga: User) -> None:
    put = {"text": "  Nodes restart <tonight>. ", "until": "", "to": "put"}
    assert signed_in(olga).post("/cluster/banner", put).status_code == 302
    for path in ("/teams/team-a", "/cluster"):
        assert "Nodes restart &lt;tonight&gt;." in signed_in(alice).get(path).text
    assert signed_in(alice).get("/api/v1/cluster").json()["banner"] == {
        "text": "Nodes restart <tonight>.",
        "until": None,
    }
    assert ">Publish<" not in signed_in(alice).get("/cluster").text

    Banner.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert "Nodes restart" not in signed_in(alice).get("/teams/team-a").text


def test_each_change_of_the_banner_is_an_event(cluster: Cluster, olga: User) -> None:
    client = signed_in(olga)
    client.post("/cluster/banner", {"text": "One.", "to": "put"})
    client.post("/cluster/banner", {"text": "One.", "to": "put"})
    client.post("/cluster/banner", {"text": "Two.", "to": "put"})
    assert client.post("/cluster/banner", {"to": "removed"}).status_code == 302
    verbs = list(Event.objects.order_by("id").values_list("verb", flat=True))
    assert verbs == ["banner.put", "banner.put", "banner.removed"]
    assert set(verbs) <= VERB_TEXTS.keys()
    assert not Banner.objects.exists()
    assert client.post("/cluster/banner", {"to": "removed"}).status_code == 404


def test_what_cannot_stand_on_a_banner(cluster: Cluster, olga: User) -> None:
    past = timezone.now() - timedelta(minutes=1)
    for text, until, code in (("x" * 301, None, "bad_banner"), ("  ", None, "bad_banner"), ("x", past, "bad_period")):
        with pytest.raises(Refused) as refused:
            banner_actions.put_banner(cluster, text=text, until=until, by=by(olga))
        assert refused.value.code == code
    assert signed_in(olga).post("/cluster/banner", {"text": "", "to": "put"}).status_code == 422
    assert not Banner.objects.exists()


def test_only_operators_put_it_up(cluster: Cluster, team_a: Tenant, alice: User, dana: User) -> None:
    audra = make.user("Audra", roles=[Role.AUDITOR])
    for person in (alice, dana, audra):
        assert signed_in(person).post("/cluster/banner", {"text": "x", "to": "put"}).status_code == 404
        with pytest.raises(Refused):
            banner_actions.put_banner(cluster, text="x", until=None, by=by(person))
    assert not Event.objects.exists()


# ---- banner in the API -----------------------------------------------------------------------------------------------

BANNER = "/api/v1/cluster/banner"


def test_the_api_puts_it_up_and_takes_it_down(namespace_a: Namespace, alice: User, olga: User) -> None:
    client, until = signed_in(olga), timezone.now() + timedelta(hours=3)
    said = {"text": "  Nodes restart <tonight>. ", "until": until.isoformat()}
    for _again in range(2):
        answer = client.put(BANNER, said, content_type="application/json")
        assert (answer.status_code, answer.json()["text"]) == (200, "Nodes restart <tonight>.")
    shown = signed_in(alice).get("/api/v1/cluster").json()["banner"]
    assert shown == answer.json()
    assert "Nodes restart &lt;tonight&gt;." in signed_in(alice).get("/teams/team-a").text

    answer = client.put(BANNER, {"text": "Until further notice."}, content_type="application/json")
    assert answer.json() == {"text": "Until further notice.", "until": None}
    assert client.delete(BANNER).status_code == 204
    assert signed_in(alice).get("/api/v1/cluster").json()["banner"] is None
    assert client.delete(BANNER).status_code == 404
    assert list(Event.objects.order_by("id").values_list("verb", "actor_id")) == [
        ("banner.put", olga.pk),
        ("banner.put", olga.pk),
        ("banner.removed", olga.pk),
    ]


@pytest.mark.parametrize(
    ("said", "code", "field"),
    [
        ({"text": "x" * 301}, "bad_banner", "text"),
        ({"text": "x", "until": "2020-01-01T00:00:00Z"}, "bad_period", "until"),
        ({"text": " "}, "invalid", "text"),
        ({"text": "x", "for": "ever"}, "unknown_field", "for"),
    ],
)
def test_the_api_says_what_cannot_stand_there(
    cluster: Cluster, olga: User, said: dict[str, str], code: str, field: str
) -> None:
    answer = signed_in(olga).put(BANNER, said, content_type="application/json")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field)
    assert not Banner.objects.exists()


def test_for_others_the_banner_is_not_the_apis(cluster: Cluster, alice: User, dana: User) -> None:
    """Users other than operators get 404 from the banner API, also for invalid texts."""
    audra = make.user("Audra", roles=[Role.AUDITOR])
    for person in (alice, dana, audra):
        for said in ({"text": "x"}, {"text": ""}, {}):
            assert signed_in(person).put(BANNER, said, content_type="application/json").status_code == 404
        assert signed_in(person).delete(BANNER).status_code == 404
    assert not Event.objects.exists()
    assert not Banner.objects.exists()
