"""A restart: requested while a run is active, started by the worker when that run has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.models import MirrorPod
from devcluster.client.kube import Api
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.rows import running
from tests.workloads.cases.run_state import is_running, named, run_of, shown
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume, Workload
from workloads.runs import restart
from workloads.status.types import Phase

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def one(namespace_a: Namespace, a100: GpuClass, granted: Tenant, alice: User) -> Workload:
    """Alice's ready notebook."""
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    return found


def verbs() -> list[str]:
    return list(Event.objects.filter(row__startswith="workloads.").order_by("pk").values_list("verb", flat=True))


def end_it() -> None:
    Run.objects.filter(ended_at=None).update(ended_at=timezone.now(), outcome="stopped", message="Stopped.")


def test_the_next_run_begins_once_and_as_declared_when_the_last_has_ended(one: Workload, by_alice: Actor) -> None:
    restart.restart("team-a", "one", by=by_alice)
    assert (run_of("one").number, run_of("one").stop_requested_at is None) == (1, False)
    assert "Then it restarts with its current configuration." in shown("one").status.sentence
    assert not restart.start_pending(one)

    Workload.objects.update(units=2)
    end_it()
    one.refresh_from_db()
    assert restart.start_pending(one)
    assert not restart.start_pending(one)
    run = run_of("one")
    assert (run.number, run.spec["units"], run.requested_by) == (2, 2, by_alice.user)
    assert verbs() == ["workload.restart_asked", "workload.started"]
    end_it()
    assert not restart.start_pending(one)


def test_asking_twice_is_asking_once_and_a_stop_takes_it_back(one: Workload, by_alice: Actor) -> None:
    restart.restart("team-a", "one", by=by_alice)
    asked = run_of("one").stop_requested_at
    restart.restart("team-a", "one", by=by_alice)
    assert verbs() == ["workload.restart_asked"]
    actions.stop("team-a", "one", by=by_alice)
    assert (run_of("one").stop_requested_at, run_of("one").next_wanted_by) == (asked, None)
    actions.stop("team-a", "one", by=by_alice)
    assert verbs() == ["workload.restart_asked", "workload.stopped"]
    end_it()
    assert not restart.start_pending(one)
    assert run_of("one").number == 1


def test_what_is_stopping_may_still_be_followed_and_what_ended_starts_at_once(one: Workload, by_alice: Actor) -> None:
    actions.stop("team-a", "one", by=by_alice)
    restart.restart("team-a", "one", by=by_alice)
    end_it()
    restart.restart("team-a", "one", by=by_alice)
    assert run_of("one").number == 2
    assert not restart.start_pending(one)


def test_what_is_deleted_is_not_followed(one: Workload, by_alice: Actor) -> None:
    restart.restart("team-a", "one", by=by_alice)
    actions.delete("team-a", "one", by=by_alice)
    end_it()
    one.refresh_from_db()
    assert not restart.start_pending(one)
    assert not Delivery.objects.exists()


def test_what_is_in_the_way_by_then_is_said_once_to_its_people(one: Workload, by_alice: Actor) -> None:
    restart.restart("team-a", "one", by=by_alice)
    GpuClass.objects.update(life_cycle="retiring")
    end_it()
    assert not restart.start_pending(one)
    assert not restart.start_pending(one)
    assert run_of("one").number == 1
    said = "Stopped. It was not restarted: A100 80GB whole card is retiring: new runs cannot start on it."
    assert run_of("one").message.startswith(said)
    assert shown("one").status.sentence.startswith(said)
    assert verbs() == ["workload.restart_asked", "workload.not_followed"]
    assert list(Delivery.objects.values_list("user", flat=True)) == [by_alice.person.pk]


@pytest.mark.parametrize("left", ["suspended", "viewer"])
def test_nothing_starts_for_somebody_who_may_not_launch_any_more(left: str, one: Workload, by_alice: Actor) -> None:
    restart.restart("team-a", "one", by=by_alice)
    if left == "suspended":
        User.objects.filter(pk=by_alice.user_id).update(is_active=False)
    else:
        Membership.objects.filter(user=by_alice.person).update(role="viewer")
    end_it()
    assert not restart.start_pending(one)
    assert run_of("one").number == 1
    assert "It was not restarted" in run_of("one").message


def test_what_is_known_to_be_in_the_way_is_refused_before_anything_stops(
    one: Workload, a100: GpuClass, namespace_a: Namespace, alice: User, bob: User, by_alice: Actor
) -> None:
    volume = Volume.objects.create(namespace=namespace_a, name="data", size_gib=1)
    Workload.objects.update(volume=volume)
    other = running.workload(namespace_a, a100, name="other", by=alice, volume=volume)
    with pytest.raises(Refused) as refused:
        restart.restart("team-a", "one", by=by_alice)
    assert refused.value.code == "volume_in_use"
    Run.objects.filter(workload=other).update(ended_at=timezone.now(), outcome="stopped")
    with pytest.raises(Refused) as refused:
        restart.restart("team-a", "one", by=Actor(bob, via="page"))
    assert (refused.value.code, refused.value.refusal.status) == ("not_allowed", 403)
    assert not Run.objects.exclude(stop_requested_at=None).exists()
    restart.restart("team-a", "one", by=by_alice)


def test_the_buttons_by_page_and_the_call(one: Workload, by_alice: Actor) -> None:
    client = Client()
    client.force_login(by_alice.person)
    page = "/teams/team-a/workloads/one"
    assert "Restart or change…" in client.get(page).text
    client.post(f"{page}/stop")
    assert "Restart when stopped" in client.get(page).text
    assert client.post(f"{page}/restart").status_code == 302
    text = client.get(page).text
    assert "Cancel restart" in text
    assert "Restart when stopped" not in text
    client.post(f"{page}/stop")
    assert "Cancel restart" not in client.get(page).text
    answer: Any = client.post("/api/v1/workloads/one/restart", content_type="application/json")
    assert (answer.status_code, answer.json()["status"]["phase"]) == (202, "stopping")
    assert run_of("one").next_wanted_by == by_alice.user


@pytest.mark.usefixtures("provisioned", "watcher")
def test_a_change_of_size_takes_one_click(
    granted: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    actions.launch("team-a", replace(job, volume="data"), by=by_alice)
    worker(lambda: is_running("train"))
    client = Client()
    client.force_login(by_alice.person)
    sent = {"gpu_class": job.gpu_class, "units": 2, "image": "python", "volume": "data"}
    answer = client.post("/teams/team-a/workloads/train/change", sent, follow=True)
    assert "was asked to stop and starts again automatically with them." in answer.text
    worker(lambda: run_of("train").number == 2 and is_running("train"))
    assert run_of("train").spec["units"] == 2
    assert shown("train").status.phase is Phase.RUNNING
    assert Run.objects.get(number=1).outcome == "stopped"
    assert named(admin, "batch/v1/jobs", namespace_a.name) == ["train-2"]


def test_what_would_help_has_a_button(one: Workload, by_alice: Actor) -> None:
    client = Client()
    client.force_login(by_alice.person)
    link = 'href="/live/logs/team-a/one">Log</a>'
    assert link not in client.get("/teams/team-a/workloads/one").text
    pod = MirrorPod.objects.get()
    clone = {**pod.record["containers"][0], "name": "clone", "ready": False}
    waiting = {**pod.record["containers"][0], "state": "waiting", "reason": "PodInitializing", "since": None}
    record = {
        **pod.record,
        "init_containers": [clone],
        "containers": [waiting],
        "conditions": pod.record["conditions"][:1],
    }
    MirrorPod.objects.update(record=record, phase="Pending")
    Run.objects.update(started_at=None, ready_at=None)
    assert shown("one").status.actions == ("stop", "log")
    assert link in client.get("/teams/team-a/workloads/one/actions").text
    waiting |= {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    MirrorPod.objects.update(record={**record, "init_containers": [], "containers": [waiting]})
    assert "change" in shown("one").status.actions
    change = 'class="btn btn-soft" href="/teams/team-a/workloads/one/change"'
    assert change in client.get("/teams/team-a/workloads/one/actions").text
