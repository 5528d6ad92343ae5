"""A chosen secret on the real control plane: the container sees the value, and the Secret is deleted with the Job."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from accounts.core.actor import Actor
from devcluster.client.kube import Api
from tenants.models import Namespace
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_ready
from workloads.credentials.secrets import actions as secret_actions
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
SAID = Options(secrets=("SEALED_CANARY",))


def test_a_notebook_sees_the_value_and_nothing_of_it_stays(
    namespace_a: Namespace, notebook: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, unique: str
) -> None:
    secret_actions.put_secret("team-a", "SEALED_CANARY", f"live-{unique}", by=by_alice)
    actions.launch("team-a", replace(notebook, options=SAID), by=by_alice)
    worker(lambda: is_ready("one"))
    wait_until(lambda: some_process_has(f"SEALED_CANARY=live-{unique}"))

    actions.stop("team-a", "one", by=by_alice)
    worker(lambda: admin.find("v1/secrets", "one-1", namespace=namespace_a.name) is None)


def test_a_job_has_a_secret_of_its_own_that_goes_with_it_whoever_deleted_it(
    namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, unique: str
) -> None:
    secret_actions.put_secret("team-a", "SEALED_CANARY", f"live-{unique}", by=by_alice)
    actions.launch("team-a", replace(job, options=SAID), by=by_alice)
    worker(lambda: admin.find("v1/secrets", "train-1", namespace=namespace_a.name))
    data = admin.get("v1/secrets", "train-1", namespace=namespace_a.name)["data"]
    assert data == {"secret.SEALED_CANARY": base64.b64encode(f"live-{unique}".encode()).decode()}

    # No worker runs now: the cluster's garbage collector deletes it.
    admin.delete("batch/v1/jobs", "train-1", namespace=namespace_a.name)
    wait_until(lambda: admin.find("v1/secrets", "train-1", namespace=namespace_a.name) is None)


def some_process_has(variable: str) -> bool:
    """Searches processes of this machine: the notebook runner starts its containers as such."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable.encode() in path.read_bytes().split(b"\0"):
                return True
        except OSError:
            # The process belongs to another user or has ended.
            continue
    return False
