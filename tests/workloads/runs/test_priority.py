"""Operators change the priority of queued work: rights, limits, notifications, persistence, and the effect in Kueue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Role, User
from catalog.models import GpuClass, Image
from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from portal.core.due import TryLater
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.rows import make, running
from workloads.core.observation import Observation
from workloads.core.unit_sql import RANK, priority_of, rank
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs import requeue
from workloads.runs.priority import actions as priority_actions
from workloads.runs.priority import reconcile as priority_reconcile
from workloads.status import outcome

PATH = "/api/v1/workloads/two/priority?team=team-a"
QUEUES = "kueue.x-k8s.io/v1beta2/workloads"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def team(team_a: Tenant, a100: GpuClass) -> Tenant:
    make.grant(team_a, a100, units=4)
    return team_a


@pytest.fixture
def two(team: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User) -> Workload:
    """Bob's queued job."""
    return running.workload(namespace_a, a100, name="two", by=bob, kind="job", units=2)


@pytest.fixture
def by_olga(olga: User) -> Actor:
    return Actor(olga, "page")


def moved(to: str, by: Actor, because: str = "The paper is due.") -> Run:
    return priority_actions.set_priority("team-a", "two", to, because=because, by=by)


@pytest.mark.django_db
def test_an_operator_lets_it_go_first_and_its_people_are_told(two: Workload, bob: User, by_olga: Actor) -> None:
    generation = two.generation
    moved("production", by_olga, because="  The paper \n is due. ")
    moved("production", by_olga)
    run = Run.objects.get()
    assert (run.priority, priority_of(run), rank(run)) == ("production", "production", 0)
    assert run.spec["priority"] == "batch", "what was launched is not rewritten"
    [event] = Event.objects.all()
    assert (event.verb, event.tenant, event.before) == (
        "workload.priority_changed",
        "team-a",
        {"priority": "batch"},
    )
    assert event.after == {"run": 1, "priority": "production", "because": "The paper is due."}
    [letter] = Delivery.objects.all()
    assert letter.user == bob
    assert "Olga changed the priority of two, run 1, from batch to production: The paper is due." in letter.body
    two.refresh_from_db()
    assert (two.generation, two.due_at is not None) == (generation + 1, True), "a worker carries it out"
    assert "production, changed by operators for this run" in signed_in(bob).get("/teams/team-a/workloads/two").text


def ordered() -> list[str]:
    """The same in SQL and in Python."""
    statement = f"""
        SELECT workload.name FROM workloads_run run JOIN workloads_workload workload ON workload.id = run.workload_id
         ORDER BY {RANK}, run.requested_at"""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found = [name for (name,) in cursor.fetchall()]
    runs = sorted(Run.objects.select_related("workload"), key=lambda run: (rank(run), run.requested_at))
    assert found == [run.workload.name for run in runs]
    return found


@pytest.mark.django_db
def test_what_waits_is_put_in_its_order_everywhere(
    two: Workload, namespace_a: Namespace, a100: GpuClass, bob: User, by_olga: Actor
) -> None:
    running.workload(namespace_a, a100, name="book", by=bob)
    running.workload(namespace_a, a100, name="usual", by=bob, kind="job")
    assert ordered() == ["book", "two", "usual"]
    moved("production", by_olga)
    assert ordered() == ["two", "book", "usual"]
    priority_actions.set_priority("team-a", "book", "batch", because="Not urgent.", by=by_olga)
    assert rank(Run.objects.get(workload__name="book")) == 2


@pytest.mark.django_db
def test_nobody_else_may(two: Workload, alice: User, bob: User, charlie: User, dana: User, by_olga: Actor) -> None:
    audra = make.user("Audra", roles=[Role.AUDITOR])
    for person, status in ((alice, 403), (bob, 403), (dana, 403), (audra, 403), (charlie, 404)):
        with pytest.raises(Refused) as refused:
            moved("production", Actor(person, "page"))
        assert refused.value.refusal.status == status
        for said in ({"priority": "production", "because": "x"}, {"priority": "no", "x": 1}):
            answer = signed_in(person).post(PATH, said, content_type="application/json")
            assert answer.status_code == (404 if person is charlie else answer.status_code), person
            assert answer.status_code >= 400
        page = signed_in(person).post("/queue/teams/team-a/two/priority", {"priority": "production", "because": "x"})
        assert page.status_code == 404
    assert not Event.objects.exists()
    assert Run.objects.get().priority == ""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("to", "because", "run", "expected"),
    [
        ("urgent", "x", {}, ("bad_priority", "priority", 422)),
        ("production", " ", {}, ("reason_missing", "because", 422)),
        ("production", "x" * 201, {}, ("reason_missing", "because", 422)),
        ("production", "x", {"admitted_at": "now"}, ("not_waiting", "", 409)),
        ("production", "x", {"stop_requested_at": "now"}, ("not_running", "", 409)),
        ("production", "x", {"ended_at": "now", "outcome": "stopped"}, ("not_running", "", 409)),
    ],
)
def test_what_is_refused(
    two: Workload, by_olga: Actor, to: str, because: str, run: dict[str, Any], expected: tuple[str, str, int]
) -> None:
    Run.objects.update(**{name: timezone.now() if value == "now" else value for name, value in run.items()})
    with pytest.raises(Refused) as refused:
        moved(to, by_olga, because)
    found = refused.value.refusal
    assert (found.code, found.field or "", found.status) == expected
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_what_was_interrupted_waits_and_may_be_moved(two: Workload, by_olga: Actor) -> None:
    Run.objects.update(admitted_at=timezone.now(), put_back_at=timezone.now())
    assert moved("interactive", by_olga).priority == "interactive"


@pytest.mark.django_db
def test_production_keeps_to_what_the_team_has(
    two: Workload, namespace_a: Namespace, a100: GpuClass, bob: User, by_olga: Actor
) -> None:
    running.workload(namespace_a, a100, name="first", by=bob, kind="job", options={"priority": "production"})
    GpuClass.objects.update(production_limit=2)
    with pytest.raises(Refused, match=r"at most 2 of .* 2 requested, 1 already running or queued"):
        moved("production", by_olga)
    GpuClass.objects.update(production_limit=3)
    moved("production", by_olga)

    large = running.workload(namespace_a, a100, name="large", by=bob, kind="job", units=5)
    with pytest.raises(Refused) as refused:
        priority_actions.set_priority("team-a", large.name, "production", because="x", by=by_olga)
    assert refused.value.refusal.code == "priority_beyond_grant"


@pytest.mark.django_db
def test_it_is_of_this_run_and_of_those_that_bring_it_back(
    two: Workload, by_alice: Actor, by_olga: Actor, images: list[Image]
) -> None:
    run = moved("interactive", by_olga)
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now(), outcome="failed")
    end = outcome.RunOutcome(outcome.FAILED, outcome.REMOVED, "Its pod was taken off its node.", None, timezone.now())
    assert requeue.requeue(run, end).priority == "interactive"
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    assert actions.start("team-a", "two", by=by_alice).priority == ""


@pytest.mark.django_db
def test_page_and_api_do_the_same(two: Workload, olga: User) -> None:
    client = signed_in(olga)
    running.known(two.namespace.cluster_id)
    assert "/queue/teams/team-a/two/priority" in client.get("/queue").text
    assert "<option selected>batch</option>" in client.get("/queue").text
    said = {"priority": "interactive", "because": "A course."}
    assert client.post("/queue/teams/team-a/two/priority", said).status_code == 302
    assert "changing to interactive" in client.get("/queue").text
    item = client.get("/api/v1/queue").json()["items"][0]
    assert (item["goes_as"], item["moving_to"]) == ("interactive", "interactive")
    answer = client.post(PATH, {**said, "priority": "production"}, content_type="application/json")
    assert answer.status_code == 202
    assert Run.objects.get().priority == "production"
    assert Event.objects.count() == 2
    unknown = client.post(PATH, {**said, "x": 1}, content_type="application/json")
    assert (unknown.status_code, unknown.json()["code"]) == (422, "unknown_field")


# ---- applying a priority to the cluster ------------------------------------------------------------------------------


class Told:
    """Counts the requests to the cluster and gives the configured answer."""

    def __init__(self, answer: Exception | None = None) -> None:
        self.answer, self.asked = answer, 0

    def relabel(self, *_: object, **__: object) -> None:
        self.asked += 1
        if self.answer is not None:
            raise self.answer


@pytest.mark.parametrize(
    ("changed_to", "known_as", "answer", "asked", "fails"),
    [
        ("", "batch", None, 0, False),
        ("production", "production", None, 0, False),
        ("production", "batch", None, 1, False),
        ("production", None, None, 0, False),
        ("production", "batch", NotFound(404, "NotFound", "gone"), 1, False),
        ("production", "batch", Conflict(409, "Conflict", "another"), 1, False),
        ("production", "batch", ClusterRefused(403, "Forbidden", "no"), 1, True),
    ],
)
def test_the_cluster_is_asked_until_kueue_says_the_same(
    changed_to: str, known_as: str | None, answer: Exception | None, asked: int, *, fails: bool
) -> None:
    from cluster.reads.observed import KueueWorkload as Queued

    queued = object.__new__(Queued)
    object.__setattr__(queued, "priority_class", known_as)
    kube, job = Told(answer), AppliedObject(kind="Job", name="two-1", namespace="team-a", uid="u")
    seen = Observation(queue=queued if known_as is not None else None)

    def carries_out() -> None:
        priority_reconcile.apply_priority(Run(priority=changed_to), job, seen, kube=kube)  # type: ignore[arg-type]

    if fails:
        with pytest.raises(TryLater, match="no"):
            carries_out()
    else:
        carries_out()
    assert kube.asked == asked


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("provisioned", "watcher")
def test_kueue_lets_go_first_what_operators_moved(
    namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, by_olga: Actor, worker: Worker, admin: Api
) -> None:
    """One run holds all units; of two queued runs the later is moved up, and starts when the first run ends."""
    sleeps = replace(job, command=("sleep", "600"), units=2)
    urgent = Options(priority="interactive")
    actions.launch("team-a", replace(sleeps, name="holds", options=urgent), by=by_alice)
    worker(lambda: Run.objects.get(workload__name="holds").admitted_at)
    actions.launch("team-a", replace(sleeps, name="earlier"), by=by_alice)
    worker(lambda: named_as(admin, namespace_a, "earlier-1") == "batch")
    actions.launch("team-a", replace(sleeps, name="two"), by=by_alice)
    worker(lambda: named_as(admin, namespace_a, "two-1") == "batch")

    moved("interactive", by_olga)

    worker(lambda: named_as(admin, namespace_a, "two-1") == "interactive")
    found = next(one for one in admin.list(QUEUES, namespace=namespace_a.name) if owner(one) == "two-1")
    assert found["spec"]["priority"] == 500
    assert Run.objects.get(workload__name="holds").ended_at is None, "nothing of the same priority is interrupted"
    actions.stop("team-a", "holds", by=by_alice)
    worker(lambda: Run.objects.get(workload__name="two").admitted_at)
    assert Run.objects.get(workload__name="earlier").admitted_at is None


def owner(queued: dict[str, Any]) -> str:
    return str(queued["metadata"]["ownerReferences"][0]["name"])


def named_as(admin: Api, namespace: Namespace, job_name: str) -> str:
    """Returns the priority class of the Job's Workload, or "" if Kueue has not seen the Job."""
    found = [one for one in admin.list(QUEUES, namespace=namespace.name) if owner(one) == job_name]
    return str(found[0]["spec"].get("priorityClassRef", {}).get("name", "")) if found else ""
