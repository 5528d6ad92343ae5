"""200 random launches, stops, starts, deletes, ends and crashes while the portal's processes are killed: nothing is
left.

After each step the portal's answers match an independent client's lists at the same resource version, and Kueue's. Then
20 ends of pods: their units are free within 5 s, as an independent client and the portal count them.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from tenants.models import Namespace
from tests.load.churn import killed_processes, moments, pod_ends, random_steps
from tests.load.churn.audit import Accounts
from tests.load.churn.killed_processes import Processes
from tests.support.waiting import wait_until
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned")]
STEPS = int(os.environ.get("SOAK_STEPS", "200"))
SEED = int(os.environ.get("SOAK_SEED", "2026"))
ENDS = 20
FREE_WITHIN_S = 5.0


@pytest.fixture
def processes(
    services: dict[str, Any], namespace_a: Namespace, provisioned: object, tmp_path: Path
) -> Iterator[Processes]:
    with killed_processes.started(services, tmp_path, namespace=namespace_a.name) as found:
        yield found


def test_nothing_is_left_over(
    admin: Api, namespace_a: Namespace, a100: GpuClass, job: LaunchSpec, notebook: LaunchSpec, alice: User,
    by_alice: Actor, processes: Processes, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    wanted = {"job": job, "notebook": notebook}
    world = random_steps.Churn(wanted, by_alice, Accounts(admin, namespace_a), processes, seed=SEED)
    looks = moments.Moments(admin, namespace_a, a100, alice)
    told = random_steps.run(world, steps=STEPS, worker_every=9, watcher_every=25, look=looks.take)
    with capsys.disabled():
        print(f"\n{STEPS} steps, seed {SEED}: {dict(told)}")
        print(f"moments: {dict(looks.told)}")
    assert looks.told["compared"] == STEPS
    assert told["preempted"]
    assert told["worker killed in a write"] >= STEPS // 20, told
    assert told["free after ms"] <= 1000 * FREE_WITHIN_S


def test_units_are_free_soon_after_the_pods_end(
    admin: Api, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, processes: Processes,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    kubelet, accounts = ScriptedKubelet(admin), Accounts(admin, namespace_a)
    took = []

    def wait(is_so: Callable[[], object]) -> None:
        wait_until(is_so, within_s=180, every_s=0.02, story=processes.story)

    with kubelet.claim(namespace_a.name, script=runs), pod_ends.heard(accounts) as ends:
        for number in range(ENDS):
            name = f"w{number}"
            actions.launch("team-a", replace(job, name=name, units=2), by=by_alice)
            wait(lambda: accounts.holders() == {"pods": 1, "ResourceQuota": 2, "ClusterQueue": 2, "portal": 2})
            pod = kubelet.bound(namespace_a.name)
            wait(lambda: _is_running(accounts))
            if number % 3 == 0:
                actions.stop("team-a", name, by=by_alice)
            else:
                kubelet.exited(pod, number % 3 - 1)
            took.append(ends.freed_after_s(pod["metadata"]["name"], wait))
    with capsys.disabled():
        print(f"\n{ENDS} ends: units free after {statistics.median(took):.2f} s, at most {max(took):.2f} s")
    assert max(took) <= FREE_WITHIN_S


def _is_running(accounts: Accounts) -> bool:
    pods = accounts.admin.list("v1/pods", namespace=accounts.namespace.name)
    return any(pod["status"]["phase"] == "Running" for pod in pods)
