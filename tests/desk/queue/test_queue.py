"""The queue page: Kueue's order, what blocks each run, who may see it and who may hold it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Event, Role, User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorJob, MirrorWorkload
from desk.queue import queries
from desk.queue.queries import QueuedRun, QueueFilter
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.support.rows import make, running
from workloads.core import workload_sql
from workloads.models import Run, Workload
from workloads.status import queries as workloads

pytestmark = pytest.mark.django_db

NEEDED = (
    "couldn't assign flavors to pod set main: "
    "insufficient unused quota for nvidia.com/gpu in flavor a100-1, 2 more needed"
)
OVER = (
    "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100-1, "
    "previously considered podsets requests (0) + current podset request (9) > maximum capacity (4)"
)


def waits(
    namespace: Namespace, gpu_class: GpuClass, name: str, by: User, *, minutes: int, priority: int = 0, **more: Any
) -> Workload:
    """A run that was handed to Kueue that many minutes ago and is pending with `message`."""
    message, units, held = more.get("message", NEEDED), more.get("units", 2), more.get("conditions", ())
    found = running.workload(namespace, gpu_class, name=name, by=by, units=units, origin=f"n{name}{namespace.pk}")
    running.make_ready(found).delete()
    at = timezone.now() - timedelta(minutes=minutes)
    Run.objects.filter(workload=found).update(admitted_at=None, started_at=None, ready_at=None, requested_at=at)
    job = MirrorJob.objects.get(uid=f"job-{found.pk}")
    MirrorJob.objects.filter(pk=job.pk).update(created_at=at, record={**job.record, "suspend": True})
    pending = {
        "type": "QuotaReserved",
        "status": "False",
        "reason": "Pending",
        "message": message,
        "since": at.isoformat(),
    }
    MirrorWorkload.objects.create(
        cluster_id=namespace.cluster_id,
        namespace=namespace.name,
        name=f"job-{found.pk}",
        uid=f"queued-{found.pk}",
        resource_version=1,
        created_at=at,
        job_uid=f"job-{found.pk}",
        record={
            "active": True,
            "conditions": [*held] or [pending],
            "priority": priority,
            "priority_class": "",
            "cluster_queue": "",
            "flavors": {},
            "usage": {},
            "pods": 0,
            "checks": {},
            "requeue_count": 0,
            "requeue_at": None,
            "evictions": {},
            "preemptions": 0,
        },
    )
    return found


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def namespace_b(cluster: Cluster, unique: str) -> Namespace:
    return make.tenant(cluster, slug="team-b", namespace=f"team-b-{unique}").namespaces.get()


def names(rows: list[QueuedRun]) -> list[tuple[str, str, int]]:
    return [(row.team, row.workload, row.place) for row in rows]


def test_of_one_second_the_lower_uid_is_first_on_every_page(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, alice: User
) -> None:
    for name in ("z", "y", "x"):
        found = waits(namespace_a, a100, name, alice, minutes=5)
        MirrorWorkload.objects.filter(uid=f"queued-{found.pk}").update(uid=f"{name}-uid")
    MirrorWorkload.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    seen, cursor = [], ""
    for _ in range(3):
        page = queries.read_queue(cluster, QueueFilter(), cursor=cursor, limit=1)
        seen += names(page.rows)
        cursor = page.next_cursor or ""
    assert seen == [("team-a", "x", 1), ("team-a", "y", 2), ("team-a", "z", 3)]


def test_the_order_is_kueues(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User
) -> None:
    waits(namespace_a, a100, "late", alice, minutes=5)
    waits(namespace_a, a100, "early", alice, minutes=50)
    waits(namespace_a, a100, "urgent", alice, minutes=1, priority=900)
    waits(namespace_b, a100, "other", alice, minutes=2)
    running.workload(namespace_b, a100, name="fresh", by=alice)
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "", "message": "", "since": None}
    waits(namespace_b, a100, "assigned", alice, minutes=90, conditions=[reserved])
    found = queries.read_queue(cluster, QueueFilter())
    assert names(found.rows) == [
        ("team-a", "urgent", 1),
        ("team-a", "early", 2),
        ("team-a", "late", 3),
        ("team-b", "other", 1),
        ("team-b", "fresh", 2),
    ]
    assert found.rows[0].priority == 900
    line = next(one for one in found.lines if one.slug == a100.slug)
    assert (line.runs, line.units) == (5, 9)


def test_each_says_what_its_own_team_reads(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, alice: User
) -> None:

    waits(namespace_a, a100, "one", alice, minutes=5)
    waits(namespace_a, a100, "two", alice, minutes=3, message=OVER, units=9)
    rows = workloads.workload_rows(workload_sql.with_related(Workload.objects.all()))
    of_team = {row.workload.name: (row.status.reason, row.status.sentence) for row in rows}
    of_staff = {
        row.workload: (row.status.reason, row.status.sentence)
        for row in queries.read_queue(cluster, QueueFilter()).rows
    }
    assert of_staff == of_team
    assert {reason for reason, _ in of_staff.values()} == {"waiting_for_quota", "exceeds_maximum"}


def test_an_interrupted_run_waits_again_and_one_that_stops_does_not(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, alice: User
) -> None:
    waits(namespace_a, a100, "one", alice, minutes=5)
    waits(namespace_a, a100, "two", alice, minutes=5)
    now = timezone.now()
    Run.objects.filter(workload__name="one").update(admitted_at=now - timedelta(minutes=3), preemptions=1)
    Run.objects.filter(workload__name="two").update(stop_requested_at=now)
    assert [row.workload for row in queries.read_queue(cluster, QueueFilter()).rows] == ["one"]


def test_without_a_mirror_it_says_that_nobody_knows(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, alice: User, olga: User
) -> None:
    running.workload(namespace_a, a100, name="one", by=alice)
    [row] = queries.read_queue(cluster, QueueFilter()).rows
    assert (str(row.status.phase), row.status.reason) == ("unknown", "cluster_not_read")
    assert "The cluster has not been read yet" in signed_in(olga).get("/queue").text


def test_filters_and_pages(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User
) -> None:
    for number in range(5):
        waits(namespace_a, a100, f"a{number}", alice, minutes=50 - number)
    waits(namespace_b, a100, "b", alice, minutes=5, message=OVER, units=9)
    everything = names(queries.read_queue(cluster, QueueFilter()).rows)
    paged: list[tuple[str, str, int]] = []
    cursor = None
    for _ in range(3):
        found = queries.read_queue(cluster, QueueFilter(), cursor=cursor, limit=2)
        paged += names(found.rows)
        cursor = found.next_cursor
    assert paged == everything
    assert len(paged) == 6
    assert cursor is None

    assert [row.workload for row in queries.read_queue(cluster, QueueFilter(team="team-b")).rows] == ["b"]
    assert [row.workload for row in queries.read_queue(cluster, QueueFilter(reason="exceeds_maximum")).rows] == ["b"]
    assert queries.read_queue(cluster, QueueFilter(gpu_class="other")).rows == []
    assert len(queries.read_queue(cluster, QueueFilter(gpu_class=a100.slug)).rows) == 6


def test_a_reason_is_looked_for_in_the_whole_queue(
    cluster: Cluster,
    a100: GpuClass,
    namespace_a: Namespace,
    alice: User,
    olga: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Finds a reason in the whole queue, regardless of the number of runs before it, and page by page."""
    monkeypatch.setattr(queries, "CHUNK", 3)
    monkeypatch.setattr(queries, "LOOKED_AT_MOST", 12)
    for number in range(11):
        over = {"message": OVER, "units": 9} if number in (2, 7, 8, 10) else {}
        waits(namespace_a, a100, f"a{number:02}", alice, minutes=50 - number, **over)
    chosen = QueueFilter(reason="exceeds_maximum")
    first = queries.read_queue(cluster, chosen, limit=2)
    assert [row.workload for row in first.rows] == ["a02", "a07"]
    second = queries.read_queue(cluster, chosen, limit=2, cursor=first.next_cursor)
    assert [row.workload for row in second.rows] == ["a08", "a10"]
    assert second.next_cursor is None
    assert [row.place for row in second.rows] == [9, 11], "its place is of the whole queue"
    counted = queries.reason_counts(cluster, chosen)
    assert (counted.runs, counted.looked_at, counted.is_all) == (
        {"waiting_for_quota": 7, "exceeds_maximum": 4},
        11,
        True,
    )

    text = signed_in(olga).get("/queue?reason=exceeds_maximum").text
    assert "Exceeds maximum (4)" in text
    assert "Waiting for quota (7)" in text
    assert "a10" in text
    assert "Counts cover" not in text


def test_one_answer_looks_at_so_many_and_says_so(
    cluster: Cluster,
    a100: GpuClass,
    namespace_a: Namespace,
    alice: User,
    olga: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queries, "CHUNK", 2)
    monkeypatch.setattr(queries, "LOOKED_AT_MOST", 4)
    for number in range(6):
        waits(namespace_a, a100, f"a{number}", alice, minutes=50 - number, **({"message": OVER} if number == 5 else {}))
    chosen = QueueFilter(reason="exceeds_maximum")
    first = queries.read_queue(cluster, chosen)
    assert (first.rows, first.next_cursor is None) == ([], False)
    second = queries.read_queue(cluster, chosen, cursor=first.next_cursor)
    assert ([row.workload for row in second.rows], second.next_cursor) == (["a5"], None)
    counted = queries.reason_counts(cluster, chosen)
    assert (counted.runs, counted.looked_at, counted.is_all) == ({"waiting_for_quota": 4}, 4, False)
    text = signed_in(olga).get("/queue?reason=exceeds_maximum").text
    assert "Counts cover the first 4 runs." in text
    assert "Exceeds maximum (0)" in text
    assert "None of the runs checked so far match." in text


@pytest.mark.parametrize("cursor", ["x", "e30", "WyJxdWV1ZSJd", "é"])
def test_what_is_no_cursor_is_refused(cluster: Cluster, cursor: str) -> None:
    with pytest.raises(Refused) as refused:
        queries.read_queue(cluster, QueueFilter(), cursor=cursor)
    assert refused.value.code == "bad_cursor"


def test_queries_do_not_grow(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, namespace_b: Namespace, alice: User
) -> None:
    waits(namespace_a, a100, "one", alice, minutes=5)
    running.workload(namespace_a, a100, name="fresh", by=alice)
    with CaptureQueriesContext(connection) as few:
        queries.read_queue(cluster, QueueFilter())
    for number in range(4):
        waits(namespace_b, a100, f"b{number}", alice, minutes=5)
    with CaptureQueriesContext(connection) as many:
        queries.read_queue(cluster, QueueFilter())
    assert len(few) == len(many) == 7


# ---- roles and access ----------------------------------------------------------------------------------------------


def test_staff_read_it_and_nobody_else(cluster: Cluster, olga: User, dana: User, alice: User, team_a: Tenant) -> None:
    audra = make.user("Audra", roles=[Role.AUDITOR])
    for person, expected in ((olga, 200), (audra, 200), (dana, 404), (alice, 404)):
        for path in ("/queue", "/api/v1/queue"):
            assert signed_in(person).get(path).status_code == expected, (person, path)


def test_the_page_shows_the_sentence_and_the_buttons_only_to_operators(
    a100: GpuClass, namespace_a: Namespace, alice: User, olga: User
) -> None:
    waits(namespace_a, a100, "one", alice, minutes=5)
    audra = make.user("Audra", roles=[Role.AUDITOR])
    for person, has_buttons in ((olga, True), (audra, False)):
        text = signed_in(person).get("/queue").text
        assert "cannot be borrowed from other teams (borrowing limit 0), even if units are free" in text
        assert (f"/queue/classes/{a100.slug}" in text) is has_buttons
        assert ("/queue/teams/team-a" in text) is has_buttons


def test_a_class_is_held_and_released(a100: GpuClass, namespace_a: Namespace, alice: User, olga: User) -> None:
    waits(namespace_a, a100, "one", alice, minutes=5)
    client = signed_in(olga)
    assert client.post(f"/queue/classes/{a100.slug}", {"to": "held", "reason": "a driver update"}).status_code == 302
    a100.refresh_from_db()
    assert (a100.held_reason, a100.held_since is not None) == ("a driver update", True)
    text = client.get("/queue").text
    assert text.count("has been paused since") == 2, "at the class, and at what waits for it"
    assert client.post(f"/queue/classes/{a100.slug}", {"to": "released"}).status_code == 302
    a100.refresh_from_db()
    assert a100.held_since is None
    assert list(Event.objects.order_by("id").values_list("verb", flat=True))[-2:] == ["class.held", "class.released"]


def test_a_hold_needs_a_reason(a100: GpuClass, olga: User) -> None:
    assert signed_in(olga).post(f"/queue/classes/{a100.slug}", {"to": "held"}).status_code == 422
    a100.refresh_from_db()
    assert a100.held_since is None


def test_a_teams_queue_is_held_and_opened(namespace_a: Namespace, olga: User) -> None:
    client = signed_in(olga)
    for to, wanted in (("suspended", "suspended"), ("resumed", "active")):
        assert client.post("/queue/teams/team-a", {"to": to}).status_code == 302
        namespace_a.refresh_from_db()
        assert namespace_a.wanted == wanted
    assert list(Event.objects.values_list("verb", flat=True)) == ["namespace.changed"] * 2


def test_who_only_reads_changes_nothing(a100: GpuClass, namespace_a: Namespace) -> None:
    client = signed_in(make.user("Audra", roles=[Role.AUDITOR]))
    assert client.post(f"/queue/classes/{a100.slug}", {"to": "held", "reason": "x"}).status_code == 404
    assert client.post("/queue/teams/team-a", {"to": "suspended"}).status_code == 404
    assert not Event.objects.exists()


def test_the_api_tells_the_same(a100: GpuClass, namespace_a: Namespace, alice: User, olga: User) -> None:
    waits(namespace_a, a100, "one", alice, minutes=5)
    waits(namespace_a, a100, "two", alice, minutes=4)
    first = signed_in(olga).get("/api/v1/queue?limit=1").json()
    [item] = first["items"]
    assert (item["team"], item["workload"], item["place"], item["reason"]) == (
        "team-a",
        "one",
        1,
        "waiting_for_quota",
    )
    assert first["is_current"] is True
    second = signed_in(olga).get(first["next"]).json()
    assert [one["workload"] for one in second["items"]] == ["two"]
    assert second["next"] is None
    assert first["classes"] == second["classes"]
