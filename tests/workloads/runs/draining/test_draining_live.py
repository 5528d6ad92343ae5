"""Maintenance moves runs off their nodes: on the real control plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from accounts.core.actor import Actor, system_actor
from accounts.models import Delivery, Event
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.queued import WORKLOADS
from tests.support.cluster.worker import Worker
from tests.workloads.cases.live import RUNNING, play, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import help_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run
from workloads.runs.draining import reconcile
from workloads.runs.draining.actions import request_drain

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
MAINTENANCE = system_actor("maintenance")
WAITS = ("queued", "waiting_for_quota")
WHY = "Maintenance of node a100-1: new driver."


def causes() -> list[tuple[str, int]]:
    found = Event.objects.filter(verb="workload.interrupted").order_by("pk")
    return [(str(one.after["reason"]), int(one.after["times"])) for one in found]


def first_half_of(set_active: Callable[..., None]) -> Callable[..., None]:
    return lambda queue, is_active, **more: None if is_active else set_active(queue, is_active, **more)


def drain(name: str) -> int:
    run = Run.objects.get(workload__name=name, ended_at=None)
    return request_drain([run.pk], reason=WHY, by=MAINTENANCE)


def test_a_run_gives_up_its_node_and_keeps_its_place(
    provisioned: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    kubelet, name = ScriptedKubelet(admin), namespace_a.name
    with kubelet.claim(name, is_silent=True):
        actions.launch("team-a", replace(job, name="one", units=2), by=by_alice)
        play(kubelet, worker, name, "one")
        worker(lambda: told()["one"] == RUNNING)
        actions.launch("team-a", replace(job, name="two", units=2), by=by_alice)
        worker(lambda: told()["two"] == WAITS)

        # A worker that stops half-way: the queue has the units back, and the run is still inactive.
        with monkeypatch.context() as half:
            half.setattr(reconcile, "_set_active", first_half_of(reconcile._set_active))
            assert (drain("one"), drain("one")) == (1, 0)
            worker(lambda: told()["one"][1] == "draining" and causes())
            as_written(IN_QUEUE["moved off its node"], shown("one").status, help_of(by_alice, "one"))
            # What it gave up is free for whoever is queued at that moment.
            play(kubelet, worker, name, "two")
            worker(lambda: told()["two"] == RUNNING)
            actions.launch("team-a", replace(job, name="three", units=2), by=by_alice)
            worker(lambda: told()["three"] == WAITS)
        worker(lambda: causes() == [("maintenance", 1)])
        mail = Delivery.objects.get()
        assert "Moved at " in mail.body
        assert (
            "its node is in maintenance. Maintenance of node a100-1: new driver. It restarts automatically" in mail.body
        )

        # It comes before those that were queued later.
        worker(lambda: told()["one"][0] == "queued" and told()["one"][1] != "draining")
        assert "deactivated" not in shown("one").status.sentence, "Kueue says it until it tries again"
        places = {one: shown(one).status.facts.get("position") for one in ("one", "three")}
        assert places == {"one": 1, "three": 2}
        actions.stop("team-a", "two", by=by_alice)
        play(kubelet, worker, name, "one")
        worker(lambda: told()["one"] == RUNNING)
        assert told()["three"][0] == "queued"
        worker(lambda: Run.objects.get(workload__name="one").drain_requested_at is None)
        run = Run.objects.get(workload__name="one")
        assert (run.number, run.drained_at, run.drain_reason) == (1, None, "")
        assert all(one["spec"]["active"] for one in admin.list(WORKLOADS, namespace=name))
        assert Delivery.objects.count() == 1
