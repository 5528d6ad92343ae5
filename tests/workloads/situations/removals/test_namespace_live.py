"""A namespace is deleted while a run is admitted in it, on the real control plane: nothing starts there any more."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import RUNNING, play, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import help_of
from tests.workloads.situations.test_problems_live import cpu
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.status.explain.admission import NAMESPACE_ENDING

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
# A fixture of another module, by name.
__all__ = ["cpu"]
JOBS = "batch/v1/jobs"


def test_a_run_in_a_namespace_that_is_being_deleted(
    cpu: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, worker: Worker, admin: Api, alice: User,
) -> None:  # fmt: skip
    """A finalizer of somebody else keeps its Job while its pod is deleted, without an exit code that would fail it."""
    make.grant(team_a, cpu, units=2)
    provision(namespace_a, kube_worker)
    space = namespace_a.name
    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(space, is_silent=True):
        actions.launch("team-a", replace(job, gpu_class=cpu.slug), by=by_alice)
        play(kubelet, worker, space, "train")
        worker(lambda: told()["train"] == RUNNING)
        [name] = [one["metadata"]["name"] for one in admin.list(JOBS, namespace=space)]
        admin.patch(JOBS, name, {"metadata": {"finalizers": ["example.org/stays"]}}, namespace=space)
        try:
            admin.delete("v1/namespaces", space)
            worker(lambda: told()["train"] == ("blocked", "namespace_ending"))
            as_written(IN_QUEUE["namespace ending"], shown("train").status, help_of(by_alice, "train"))
            client = Client()
            client.force_login(alice)
            home, form = (unescape(client.get(f"/teams/team-a{path}").content.decode()) for path in ("", "/launch"))
            assert NAMESPACE_ENDING in home
            assert "Available now" not in home
            assert f"{NAMESPACE_ENDING} New workloads wait." in form
            assert "; starts now" not in form
        finally:
            admin.patch(JOBS, name, {"metadata": {"finalizers": None}}, namespace=space)
