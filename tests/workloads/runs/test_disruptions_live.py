"""A kubelet evicts a pod, an operator drains a queue, somebody deactivates a Workload: on the real control plane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.core.actor import Actor
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

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"


def causes() -> list[str]:
    return [str(one.after["reason"]) for one in Event.objects.filter(verb="workload.interrupted").order_by("pk")]


def test_interruptions_that_are_no_preemptions(
    provisioned: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    kubelet, name = ScriptedKubelet(admin), namespace_a.name
    # The pods ignore the stop: with an exit code the Job could fail, and another run would follow.
    with kubelet.claim(name, is_silent=True):
        actions.launch("team-a", replace(job, name="one"), by=by_alice)
        play(kubelet, worker, name, "one")
        worker(lambda: told()["one"] == RUNNING)

        kubelet.evicted(kubelet.bound(name))
        worker(lambda: causes() == ["evicted"])
        assert "evicted it" in Delivery.objects.get().body
        play(kubelet, worker, name, "one")
        worker(lambda: told()["one"] == RUNNING)
        worker(lambda: Event.objects.filter(verb="workload.resumed").exists())

        admin.patch(QUEUES, name, {"spec": {"stopPolicy": "HoldAndDrain"}})
        worker(lambda: causes() == ["evicted", "queue_stopped"])
        admin.patch(QUEUES, name, {"spec": {"stopPolicy": "None"}})
        play(kubelet, worker, name, "one")
        worker(lambda: told()["one"] == RUNNING)

        [workload] = admin.list(WORKLOADS, namespace=name)
        theirs = workload["metadata"]["name"]
        admin.patch(WORKLOADS, theirs, {"spec": {"active": False}}, namespace=name)
        worker(lambda: causes() == ["evicted", "queue_stopped", "deactivated"])
        worker(lambda: told()["one"] == ("blocked", "deactivated"))
        as_written(IN_QUEUE["Workload deactivated"], shown("one").status, help_of(by_alice, "one"))
        assert Delivery.objects.count() == 3

        admin.patch(WORKLOADS, theirs, {"spec": {"active": True}}, namespace=name)
        play(kubelet, worker, name, "one")
        worker(lambda: told()["one"] == RUNNING)
        last = shown("one").interrupted
        assert last is not None
        assert last.times == 3
