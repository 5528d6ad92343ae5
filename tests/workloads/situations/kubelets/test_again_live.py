"""What ends each pod that a Job starts, on the real control plane, until the cause is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.manifests.run import WORKLOAD_LABEL
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import RUNNING, told
from tests.workloads.cases.problems import disrupted, rejected
from tests.workloads.cases.staged import until_as_written
from tests.workloads.cases.steps_followed import by_hand, follow
from tests.workloads.situations.kubelets.replay import pending, replay, runs_latest
from tests.workloads.situations.kubelets.test_said_live import OF_TABLES, named, said
from tests.workloads.situations.kubelets.written_again import ENDINGS
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# Fixtures of other modules, by name.
__all__ = ["by_hand", "said"]

# What later versions of Kubernetes may say.
LATER = {
    "node_refused": rejected("UnsupportedPodSpec", "Pod was rejected: this node is too old for it"),
    "disrupted": disrupted("DeletionBySomething", "a controller of the site"),
}
CASES = {reason: seen for reason, seen in reversed(OF_TABLES) if reason in ENDINGS} | LATER

# What a person types into the form of the first step. The others wait.
CHANGED = {"share-limit": {}, "too-many-files": {"shared_memory_gib": "2"}}


def test_each_of_them_has_a_case() -> None:
    assert CASES.keys() == ENDINGS.keys()


def test_what_ends_each_pod(
    said: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, by_hand: Client, worker: Worker, admin: Api,
) -> None:  # fmt: skip
    """Kubernetes waits longer before each further pod, so each end is seen sooner or later."""
    make.grant(team_a, said, units=20)
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    seen_of = {named(reason): seen for reason, seen in CASES.items()}

    def ending(until: Callable[[], object], *, within_s: float = 60) -> None:
        def step() -> object:
            for pod in pending(admin, space):
                replay(kubelet, pod, seen_of[pod["metadata"]["labels"][WORKLOAD_LABEL]])
            return until()

        worker(step, within_s=within_s)

    with kubelet.claim(space):
        for reason in ENDINGS:
            units = 2 if reason == "share_limit" else 1
            actions.launch("team-a", replace(job, name=named(reason), gpu_class=said.slug, units=units), by=by_alice)
        first = until_as_written(ending, by_alice, {named(reason): one for reason, one in ENDINGS.items()})

        for name, typed in CHANGED.items():
            follow(by_hand, first[name].steps[0].href, **typed)
        everything = set(seen_of)
        worker(lambda: runs_latest(kubelet, space, everything), within_s=120)
        worker(lambda: told() == dict.fromkeys(everything, RUNNING))
    numbers = {run.workload.name: run.number for run in Run.objects.select_related("workload").order_by("number")}
    assert numbers == {name: 2 if name in CHANGED else 1 for name in everything}
