"""Pages that join several apps: what they show to which user; their queries do not grow with their rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.models import AppliedObject, Cluster
from desk.health.catalog_checks import CatalogChecks
from desk.health.queries import health
from desk.home import queries
from tenants.models import Grant, Membership, Namespace, Tenant
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision
from tests.support.rows import make, mirrored, running
from tests.support.rows.usage import file
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def team(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Tenant:
    """A team with a grant of 4, one ready notebook and one notebook whose Job is not sent yet."""
    make.grant(team_a, a100, units=4)
    running.make_ready(running.workload(namespace_a, a100, name="ready-one", by=alice))
    running.workload(namespace_a, a100, name="waits-one", by=alice, units=2)
    return team_a


def test_home_shows_what_the_team_holds_runs_and_waits_for(team: Tenant, namespace_a: Namespace) -> None:
    state = queries.home_state(namespace_a)
    holding = state.holdings[0]
    assert (holding.granted, holding.used, holding.borrowed, holding.queued) == (4, 1, 0, 2)
    assert [(row.name, row.status) for row in state.running] == [("ready-one", "ready")]
    assert [(row.name, row.status) for row in state.waiting] == [("waits-one", "queued")]
    assert state.summary == "1 workload is running or starting, 1 is queued."
    assert not state.is_stale


def test_without_a_mirror_nothing_is_said_to_be_stopped_or_free(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    make.grant(team_a, a100, units=4)
    running.workload(namespace_a, a100, by=alice)
    state = queries.home_state(namespace_a)
    assert [row.status for row in state.running] == ["unknown"]
    assert state.holdings[0].note == "exclusive"
    assert (state.as_of, state.is_stale) == (None, True)


@pytest.mark.parametrize(("is_approved", "sentence"), [(True, "approved"), (False, "denied")])
def test_the_events_tell_how_a_request_was_decided(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, dana: User, is_approved: bool, sentence: str
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    request = file(team_a, alice, **{a100.slug.replace("-", "_"): 2})
    decision = Decision(request.lines.get().pk, approve=is_approved, units=None, reason="So it is.")
    decision_actions.decide_request(request.pk, [decision], by=Actor(dana, "page"))
    shown = queries.home_state(namespace_a).events[0]
    assert (shown.who, shown.sentence) == ("Dana", sentence)


def test_borrowed_is_what_runs_beyond_the_grant(
    team: Tenant, namespace_a: Namespace, alice: User, a100: GpuClass
) -> None:
    for number in range(4):
        running.make_ready(running.workload(namespace_a, a100, name=f"more-{number}", by=alice))
    assert queries.home_state(namespace_a).holdings[0].borrowed == 1


def test_what_runs_on_in_a_grace_is_shown_with_its_end(
    alice: User, namespace_a: Namespace, a100: GpuClass, team_a: Tenant
) -> None:
    now = timezone.now()
    ended = make.grant(team_a, a100, units=1, since=now - timedelta(days=1), until=now - timedelta(hours=1))
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    holding = queries.home_state(namespace_a).holdings[0]
    assert (holding.granted, holding.used, holding.in_grace, holding.borrowed) == (0, 1, 1, 0)
    assert holding.grace_until == ended.period.upper + ended.grace


def test_what_runs_is_shown_and_counted_with_the_class_it_was_started_with(
    team: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User
) -> None:
    """A later change of the declaration applies to the next run only."""
    slice_ = make.gpu_class(cluster, slug="slice", name="A100 slice", partition="1g.10gb")
    Workload.objects.update(gpu_class=slice_)

    state = queries.home_state(namespace_a)

    assert [(one.slug, one.used, one.queued) for one in state.holdings] == [(a100.slug, 1, 2)]
    assert [(row.gpu_class, row.size) for row in [*state.running, *state.waiting]] == [
        (a100.name, "1 GPU"),
        (a100.name, "2 GPUs"),
    ]
    page = signed_in(alice).get("/teams/team-a/workloads/ready-one").content.decode()
    assert a100.name in page
    assert "1 slice of A100 slice" in page


def test_starts_now_is_for_those_who_may_launch(
    team_a: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User, charlie: User
) -> None:
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    make.member(team_a, charlie, Membership.Role.VIEWER)
    words = "up to 4 GPUs on one node"

    assert words in signed_in(alice).get("/teams/team-a").content.decode()
    assert words not in signed_in(charlie).get("/teams/team-a").content.decode()
    Namespace.objects.update(wanted=Namespace.Wanted.SUSPENDED)
    assert words not in signed_in(alice).get("/teams/team-a").content.decode()


def test_the_launch_buttons_say_the_same_of_a_team_without_a_class(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """A grant of a retired class starts nothing."""
    make.grant(team_a, a100, units=4)
    GpuClass.objects.update(life_cycle=GpuClass.LifeCycle.RETIRED)
    client = signed_in(alice)
    for path in ("/teams/team-a", "/teams/team-a/launch", "/teams/team-a/workloads"):
        assert "Your team has no quota yet. Request quota first." in client.get(path).content.decode(), path


@pytest.mark.parametrize("path", ["/teams/team-a", "/teams/team-a/workloads", "/catalog", "/api/v1/workloads"])
def test_queries_do_not_grow_with_rows(
    path: str, team: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    make.grant(team, a100, units=20, kind=Grant.Kind.BOOST)  # at every time some of the quota is unused
    client = signed_in(alice)
    client.get(path)
    counts = []
    for round_number in range(2):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        counts.append(len(captured))
        for number in range(5):
            running.make_ready(running.workload(namespace_a, a100, name=f"x{round_number}-{number}", by=alice))
            make.gpu_class(namespace_a.cluster, slug=f"c{round_number}-{number}")
    assert counts[0] == counts[1]


def test_the_pages_of_a_member(team: Tenant, alice: User, a100: GpuClass) -> None:
    Image.objects.create(name="minimal", reference="quay.io/jupyter/minimal-notebook:1", kind="notebook")
    client = signed_in(alice)
    for path, words in {
        "/teams/team-a": ["ready-one", "waits-one", "A100 80GB whole card"],
        "/teams/team-a/workloads": ["ready-one", "waits-one"],
        "/teams/team-a/workloads?state=ended": ["No workload matches"],
        "/teams/team-a/workloads?q=waits": ["waits-one"],
        "/teams/team-a/workloads/ready-one": ["Ready on a100-1.", "Progress", "curl"],
        "/teams/team-a/workloads/ready-one/actions": ["Open", "Stop"],
        "/teams/team-a/launch": ["A100 80GB whole card", "minimal"],
        "/catalog": ["A100 80GB whole card", "exclusive"],
        "/catalog?only=shared": ["No class matches"],
    }.items():
        response = client.get(path)
        assert response.status_code == 200, path
        for word in words:
            assert word in response.content.decode(), f"{word} on {path}"


def test_where_people_land(team: Tenant, alice: User, charlie: User, olga: User, dana: User) -> None:
    assert signed_in(alice).get("/")["Location"] == "/teams/team-a"
    assert signed_in(charlie).get("/")["Location"] == "/start"
    assert signed_in(olga).get("/")["Location"] == "/operators"
    assert signed_in(dana).get("/")["Location"] == "/inbox"
    assert Client().get("/")["Location"].startswith("/login")
    assert "Welcome, Charlie" in signed_in(charlie).get("/start").content.decode()


def test_launch_by_form(team: Tenant, alice: User, a100: GpuClass) -> None:
    Image.objects.create(name="minimal", reference="quay.io/jupyter/minimal-notebook:1", kind="notebook")
    form: dict[str, Any] = {"kind": "notebook", "name": "new", "gpu_class": a100.slug, "units": 1, "image": "minimal"}
    client = signed_in(alice)
    response = client.post("/teams/team-a/launch", form)
    assert (response.status_code, response["Location"]) == (302, "/teams/team-a/workloads/new")
    again = client.post("/teams/team-a/launch", form)
    assert again.status_code == 422
    assert "already has a workload with this name" in again.content.decode()
    too_many = client.post("/teams/team-a/launch", {**form, "name": "big", "units": 5})
    assert "5 of A100 80GB whole card requested; your team can use at most 4" in too_many.content.decode()
    assert Workload.objects.filter(name="big").count() == 0


def test_a_viewer_sees_and_changes_nothing(team: Tenant, charlie: User) -> None:
    make.member(team, charlie, Membership.Role.VIEWER)
    client = signed_in(charlie)
    assert client.get("/teams/team-a/workloads/ready-one").status_code == 200
    for verb in ("stop", "start", "open"):
        assert client.post(f"/teams/team-a/workloads/ready-one/{verb}").status_code in (403, 409)
    assert client.post("/teams/team-a/workloads/ready-one/delete", {"confirm": "ready-one"}).status_code == 403
    assert not Run.objects.exclude(stop_requested_at=None).exists()


def test_deleting_asks_for_the_name(team: Tenant, alice: User) -> None:
    client = signed_in(alice)
    assert client.post("/teams/team-a/workloads/ready-one/delete", {"confirm": "ready"}).status_code == 422
    assert client.post("/teams/team-a/workloads/ready-one/delete", {"confirm": "ready-one"}).status_code == 302
    assert Workload.objects.get(name="ready-one").delete_requested_at is not None


# ---- health --------------------------------------------------------------------------------------------------------


def test_health_is_for_operators(olga: User, alice: User, team: Tenant) -> None:
    assert signed_in(alice).get("/health").status_code == 404
    assert signed_in(olga).get("/health").status_code == 200


def test_health_lists_what_is_late_astray_and_orphaned(cluster: Cluster, team: Tenant, namespace_a: Namespace) -> None:
    running.known(cluster.pk)
    fits = CatalogChecks("no problems", faults=0, hints=0, lines=(), more=0, as_of=None, is_stale=False, problem="")
    quiet = health(cluster, fits)
    assert (quiet.tone, quiet.overdue, quiet.objects, quiet.orphans) == ("good", [], [], [])

    Namespace.objects.filter(pk=namespace_a.pk).update(
        due_at=timezone.now() - timedelta(minutes=5), error_code="x", error_text="It did not work."
    )
    AppliedObject.objects.create(
        cluster=cluster, owner="tenants.namespace.1", kind="ResourceQuota", name="q", result="refused", text="no"
    )
    Workload.objects.filter(name="ready-one").update(deleted_at=timezone.now())
    found = health(cluster, fits)
    assert found.tone == "bad"
    assert [one.table for one in found.overdue] == ["tenants.namespace"]
    assert [one.error_text for one in found.problems] == ["It did not work."]
    assert [(one.kind, one.result) for one in found.objects] == [("ResourceQuota", "refused")]
    assert {one.kind for one in found.orphans} == {"Job", "Pod"}
