"""A push: a new run replaces the running or queued runs of its group, in this team, if its user may stop them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Image
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.http.callers import WorkloadsCaller
from tests.support.rows import make, running
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_running, run_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs import requeue, restart
from workloads.runs.concurrency import actions as concurrency_actions
from workloads.runs.concurrency.policy import RunRequest
from workloads.status import outcome

pytestmark = pytest.mark.django_db(transaction=True)
MAIN = RunRequest(group="main", cancel_running=True)
Make = Callable[..., Workload]


@pytest.fixture
def declared(namespace_a: Namespace, a100: GpuClass, granted: Tenant, images: list[Image], alice: User) -> Make:
    """`declared(name)`: a job of Alice that is not started, or of `by` if given."""

    def one(name: str, *, by: User = alice, namespace: Namespace = namespace_a) -> Workload:
        found = running.workload(namespace, a100, name=name, by=by, kind="job", image=images[2].reference)
        Run.objects.filter(workload=found).delete()
        return found

    return one


@pytest.fixture
def pushed(declared: Make, by_alice: Actor) -> Make:
    """`pushed(name)`: the same job, running in the group main."""

    def one(name: str, *, group: str = "main", **of: Any) -> Workload:
        found = declared(name, **of)
        by = Actor(found.created_by, via="page")
        concurrency_actions.start_in_group(found.tenant.slug, name, RunRequest(group=group), by=by)
        return found

    return one


def stopping() -> dict[str, bool]:
    rows = Run.objects.filter(ended_at=None).order_by("pk").values_list("workload__name", "stop_requested_at")
    return {name: at is not None for name, at in rows}


def end(name: str) -> Workload:
    Run.objects.filter(workload__name=name, ended_at=None).update(ended_at=timezone.now(), outcome="stopped")
    return Workload.objects.get(name=name)


def verbs() -> list[tuple[str, str]]:
    """Events of runs, without those of the fixtures: (verb, name of the workload)."""
    names = {f"workloads.workload.{pk}": name for pk, name in Workload.objects.values_list("pk", "name")}
    rows = Event.objects.filter(row__startswith="workloads.").order_by("pk").values_list("verb", "row")
    return [(verb.removeprefix("workload."), names[row]) for verb, row in rows]


# ---- other runs of the group ---------------------------------------------------------------------------------------


def test_a_push_stops_what_runs_or_waits_of_its_group_and_nothing_else(
    declared: Make, pushed: Make, by_alice: Actor
) -> None:
    for name, group in (("old", "main"), ("older", "main"), ("other", "fix-7"), ("plain", "")):
        pushed(name, group=group)
    declared("new")
    before = verbs()
    assert concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_alice) == concurrency_actions.RequestedRun(
        1, has_begun=True
    )
    assert stopping() == {"old": True, "older": True, "other": False, "plain": False, "new": False}
    assert verbs()[len(before) :] == [("superseded", "old"), ("superseded", "older"), ("started", "new")]
    because = "Stopped: replaced by a newer run of the group main, new."
    assert (run_of("old").stop_reason, run_of("old").stop_message) == ("superseded", because)
    event = Event.objects.filter(verb="workload.superseded").earliest("pk")
    assert event.after == {"run": 1, "group": "main", "because": because}
    assert (run_of("new").group, Event.objects.latest("pk").after["group"]) == ("main", "main")


def test_what_stops_already_keeps_its_own_reason(declared: Make, pushed: Make, by_alice: Actor) -> None:
    pushed("old")
    actions.stop("team-a", "old", by=by_alice)
    asked = run_of("old").stop_requested_at
    declared("new")
    concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_alice)
    assert (run_of("old").stop_requested_at, run_of("old").stop_reason) == (asked, "")
    assert ("superseded", "old") not in verbs()


def test_without_cancel_running_a_group_is_only_recorded(declared: Make, pushed: Make, by_alice: Actor) -> None:
    pushed("old")
    declared("new")
    concurrency_actions.start_in_group("team-a", "new", RunRequest(group="main"), by=by_alice)
    assert stopping() == {"old": False, "new": False}
    assert run_of("new").group == "main"


def test_the_same_group_of_another_team_is_another_group(
    declared: Make, pushed: Make, by_alice: Actor, namespace_a: Namespace, a100: GpuClass, charlie: User
) -> None:
    theirs = make.tenant(namespace_a.cluster, slug="team-c", namespace=f"{namespace_a.name}-c")
    make.member(theirs, charlie)
    make.grant(theirs, a100, units=2)
    # Alice is in both teams, so that only the team separates the groups.
    make.member(theirs, by_alice.person)
    pushed("theirs", by=charlie, namespace=theirs.namespaces.get())
    pushed("old")
    declared("new")
    concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_alice)
    assert stopping() == {"theirs": False, "old": True, "new": False}


def test_what_one_may_not_stop_refuses_the_push_as_a_whole(
    declared: Make, pushed: Make, bob: User, alice: User
) -> None:
    pushed("bobs", by=bob)
    pushed("hers")
    declared("new", by=bob)
    by_bob = Actor(bob, via="page")
    with pytest.raises(Refused, match="'hers' is queued or running in the group main") as refused:
        concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_bob)
    assert (refused.value.code, refused.value.refusal.status) == ("not_allowed", 403)
    assert stopping() == {"bobs": False, "hers": False}
    # Bob does not need the right to stop a run that is already stopping.
    actions.stop("team-a", "hers", by=Actor(alice, via="page"))
    concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_bob)
    assert stopping() == {"bobs": True, "hers": True, "new": False}


def test_a_push_that_cannot_start_stops_nothing(declared: Make, pushed: Make, by_alice: Actor, a100: GpuClass) -> None:
    pushed("old")
    declared("new")
    GpuClass.objects.update(life_cycle="retiring")
    with pytest.raises(Refused) as refused:
        concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_alice)
    assert refused.value.code == "class_not_active"
    assert stopping() == {"old": False}


def test_a_viewer_stops_nothing(declared: Make, pushed: Make, by_alice: Actor, bob: User) -> None:
    pushed("old")
    declared("new")
    Membership.objects.filter(user=bob).update(role="viewer")
    with pytest.raises(Refused) as refused:
        concurrency_actions.start_in_group("team-a", "new", MAIN, by=Actor(bob, via="page"))
    assert (refused.value.code, stopping()) == ("not_allowed", {"old": False})


def test_what_was_to_follow_a_run_of_the_group_does_not_begin(declared: Make, pushed: Make, by_alice: Actor) -> None:
    """Holds whether the previous run has ended by then or not."""
    pushed("old")
    pushed("ended")
    for name in ("old", "ended"):
        restart.restart("team-a", name, by=by_alice)
    end("ended")
    declared("new")
    concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_alice)
    assert not restart.start_pending(end("old"))
    assert not restart.start_pending(Workload.objects.get(name="ended"))
    assert stopping() == {"new": False}
    # A pending restart whose run has begun and ended is not superseded again.
    assert verbs().count(("superseded", "ended")) == 1


def test_what_a_push_asks(declared: Make, pushed: Make, by_alice: Actor, django_assert_num_queries: Any) -> None:
    declared("same")
    declared("new")
    # transaction, savepoint, both ends; team twice, workload, last run, grants; run, workload, event
    with django_assert_num_queries(12):
        concurrency_actions.start_in_group("team-a", "same", RunRequest(group="fix-7"), by=by_alice)
    # its lock, workload, others, own run beside them
    with django_assert_num_queries(16):
        concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_alice)
    declared("newer")
    # for each stopped run: run, workload, event; and another look
    with django_assert_num_queries(20):
        concurrency_actions.start_in_group("team-a", "newer", MAIN, by=by_alice)


def test_of_two_pushes_at_once_one_stays(declared: Make, by_alice: Actor) -> None:
    for name in ("one", "two"):
        declared(name)

    def push_two() -> None:
        try:
            concurrency_actions.start_in_group("team-a", "two", MAIN, by=by_alice)
        finally:
            connection.close()

    second = threading.Thread(target=push_two)
    with transaction.atomic():
        concurrency_actions.start_in_group("team-a", "one", MAIN, by=by_alice)
        second.start()
        wait_until(lambda: is_somebody_waiting() or not second.is_alive())
    second.join(20)
    assert stopping() == {"one": True, "two": False}


def is_somebody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND database IS NULL)")
        return bool(cursor.fetchone()[0])


# ---- the workload's own run ----------------------------------------------------------------------------------------


def test_a_run_of_the_same_workload_is_followed_by_the_new_one(pushed: Make, by_alice: Actor) -> None:
    old = pushed("train")
    before = verbs()
    for _again in range(2):
        assert concurrency_actions.start_in_group(
            "team-a", "train", MAIN, by=by_alice
        ) == concurrency_actions.RequestedRun(2, has_begun=False)
    assert (stopping(), run_of("train").stop_reason) == ({"train": True}, "superseded")
    assert verbs()[len(before) :] == [("restart_asked", "train")]
    end("train")
    assert restart.start_pending(old)
    assert (run_of("train").number, run_of("train").group) == (2, "main")


def test_a_run_of_another_group_is_not_stopped_for_it(pushed: Make, by_alice: Actor) -> None:
    for name, group, whose in (("other", "fix-7", "It is of the group fix-7"), ("plain", "", "It has no group")):
        pushed(name, group=group)
        with pytest.raises(Refused, match=f"{whose}, so a run of the group main does not stop it") as refused:
            concurrency_actions.start_in_group("team-a", name, MAIN, by=by_alice)
        assert (refused.value.code, refused.value.refusal.status) == ("still_running", 409)
    assert stopping() == {"other": False, "plain": False}


def test_a_run_that_comes_back_is_of_its_group_still(pushed: Make, declared: Make, by_alice: Actor) -> None:
    pushed("train")
    end("train")
    taken_back = outcome.RunOutcome("stopped", outcome.TAKEN_BACK, outcome.UNITS_TAKEN_BACK)
    with transaction.atomic():
        requeue.requeue(run_of("train"), taken_back)
    assert (run_of("train").number, run_of("train").group) == (2, "main")
    declared("new")
    concurrency_actions.start_in_group("team-a", "new", MAIN, by=by_alice)
    assert stopping() == {"train": True, "new": False}


def test_a_wish_that_was_taken_back_at_the_last_moment_begins_nothing(pushed: Make, by_alice: Actor) -> None:
    pushed("train")
    concurrency_actions.start_in_group("team-a", "train", MAIN, by=by_alice)
    end("train")
    last = Run.objects.select_related("next_wanted_by", "workload__tenant").get()
    Run.objects.update(next_wanted_by=None)
    assert not restart._begin(last, by_alice)
    assert Run.objects.count() == 1


@pytest.mark.usefixtures("provisioned", "watcher")
def test_one_push_after_another_in_the_cluster(
    granted: Tenant, job: LaunchSpec, by_alice: Actor, worker: Worker
) -> None:
    actions.declare("team-a", job, by=by_alice)
    concurrency_actions.start_in_group("team-a", "train", MAIN, by=by_alice)
    worker(lambda: is_running("train"))
    assert concurrency_actions.start_in_group("team-a", "train", MAIN, by=by_alice) == concurrency_actions.RequestedRun(
        2, has_begun=False
    )
    worker(lambda: run_of("train").number == 2 and is_running("train"))
    first = Run.objects.get(number=1)
    assert (first.outcome, first.reason, first.group) == ("stopped", "superseded", "main")
    assert first.message == "Stopped: replaced by a newer run of the group main, train."


# ---- the API call --------------------------------------------------------------------------------------------------


@pytest.fixture
def call(declared: Make, alice: User) -> WorkloadsCaller:
    declared("train")
    return WorkloadsCaller(alice, ["read", "launch"])


def test_the_call_says_the_number_that_the_run_has_or_will_have(call: WorkloadsCaller) -> None:
    body = {"group": "main", "cancel_running": True}
    first = call("POST", "/train/runs", body)
    assert (first.status_code, first.json()["run"]["group"]) == (201, "main")
    assert first.headers["Location"].endswith("/train/runs/1?team=team-a")
    second = call("POST", "/train/runs", body)
    assert (second.status_code, second.json()["status"]["phase"]) == (202, "stopping")
    assert second.headers["Location"].endswith("/train/runs/2?team=team-a")
    waits = Client().get(second.headers["Location"], headers=call.headers).json()
    assert (waits["status"]["reason"], waits["group"]) == ("follows", "main")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"cancel_running": True}, "group_missing", "group"),
        ({"group": "a\nb"}, "bad_group", "group"),
        ({"group": "\u202emain"}, "bad_group", "group"),
        ({"group": "x" * 101}, "invalid", "group"),
        ({"group": ""}, "invalid", "group"),
        ({"group": ["main"]}, "invalid", "group"),
        ({"group": "main", "cancel_running": "maybe"}, "invalid", "cancel_running"),
        ({"group": "main", "cancel": True}, "unknown_field", "cancel"),
    ],
)
def test_what_cannot_be_said_starts_nothing(call: WorkloadsCaller, body: dict[str, Any], code: str, field: str) -> None:
    refused = call("POST", "/train/runs", body)
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (422, code, field)
    assert not Run.objects.exists()


def test_a_group_of_a_hundred_characters_is_possible(call: WorkloadsCaller) -> None:
    assert call("POST", "/train/runs", {"group": "x" * 100}).status_code == 201
    assert run_of("train").group == "x" * 100


def test_a_stranger_pushes_nothing(call: WorkloadsCaller, pushed: Make, charlie: User, namespace_a: Namespace) -> None:
    pushed("old")
    make.member(make.tenant(namespace_a.cluster, slug="team-c", namespace=f"{namespace_a.name}-c"), charlie)
    stranger = WorkloadsCaller(charlie, ["read", "launch"])
    for path in ("/train/runs?team=team-a", "/train/runs"):
        for body in ({"group": "main", "cancel_running": True}, {"group": "", "nonsense": 1}):
            refused = stranger("POST", path, body)
            assert refused.status_code == (404 if "team" in path or "nonsense" not in body else 422)
    assert stopping() == {"old": False}


def test_its_page_says_the_group(pushed: Make, alice: User) -> None:
    pushed("train", group="feature/x")
    client = Client()
    client.force_login(alice)
    assert "feature/x" in client.get("/teams/team-a/workloads/train").text
