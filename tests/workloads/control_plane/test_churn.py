"""30 random steps while workers and the watcher are killed leave no objects behind, and after each step the portal
agrees with an independent client and with Kueue; `run.py soak churn` takes 200 steps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from devcluster.client.kube import Api
from tenants.models import Namespace
from tests.load.churn import killed_processes, moments, random_steps
from tests.load.churn.audit import Accounts
from workloads.launch.types import LaunchSpec

pytestmark = pytest.mark.timeout(400)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("provisioned")
def test_every_object_has_a_row_and_every_row_its_objects(
    services: dict[str, Any], admin: Api, namespace_a: Namespace, job: LaunchSpec, notebook: LaunchSpec,
    by_alice: Actor, a100: GpuClass, alice: User, tmp_path: Path,
) -> None:  # fmt: skip
    with killed_processes.started(services, tmp_path, namespace=namespace_a.name) as processes:
        wanted = {"job": job, "notebook": notebook}
        world = random_steps.Churn(wanted, by_alice, Accounts(admin, namespace_a), processes, seed=6)
        looks = moments.Moments(admin, namespace_a, a100, alice)
        told = random_steps.run(world, steps=30, worker_every=10, watcher_every=14, look=looks.take)
    assert looks.told["compared"] == 30
    # Enough to be meaningful; the number depends on which process is faster.
    assert looks.told["positions"] >= 5, looks.told
    assert looks.told["units used"] >= 10, looks.told
    assert told["watcher killed"] == 2
    assert told["worker killed in a write"] >= 2, told
    assert all(told[what] for what in ("launch", "stop", "start", "delete", "exit 0", "exit 1", "preempted")), told
