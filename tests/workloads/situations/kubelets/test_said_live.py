"""What kubelets, container runtimes and programs say, on the real control plane: through API server, Job controller,
mirror and the record of a run, each has the reason that the message alone has.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import on_nodes, told
from tests.workloads.cases.problems import PROBLEMS, pulled_in_vain
from tests.workloads.situations.kubelets.replay import replay
from tests.workloads.situations.test_problems_live import COURSE, cpu
from tests.workloads.status.explain.messages import MESSAGES
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.status import silence

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# A fixture of another module, by name.
__all__ = ["cpu"]

# Each with the first case of the tables that has it. Without pods that are replaced at once: they are seen by chance.
_REASONS = """
    volume_not_attached volume_denied volume_damaged storage_driver_missing node_volume_limit
    device_driver_missing devices_not_prepared gpu_driver_down gpu_runtime_missing
    gpu_not_injected gpu_lost node_disk_full node_runtime_down
    pod_not_set_up no_pod_address
    image_not_pulled bad_image_name image_wrong_platform image_wrong_format image_runs_as_root registry_unknown
    registry_unavailable registry_limit registry_untrusted container_config
    bus_error terminated gpu_fault gpu_not_visible image_needs_newer_driver image_wrong_gpu
    command_not_executable working_directory clone_failed clone_out_of_memory no_git repository_private
    repository_unreachable reference_not_found
"""
SAID = frozenset(_REASONS.split())
# Texts that nothing in the portal knows, as they may come from a later version.
UNKNOWN = {
    "image_not_pulled": pulled_in_vain("the moon is full"),
}
OF_TABLES = [(one.reason, one.seen) for one in (*PROBLEMS, *MESSAGES) if one.seen.pods and one.seen.pods[-1].node]
CASES = {reason: seen for reason, seen in reversed(OF_TABLES) if reason in SAID} | UNKNOWN


def test_each_of_them_has_a_case() -> None:
    assert CASES.keys() == SAID


def test_what_kubelets_say(
    cpu: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, worker: Worker, admin: Api, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One kubelet says nothing at all."""
    make.grant(team_a, cpu, units=len(CASES) + 1)
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)

    def all_heard() -> bool:
        heard = told()
        return all(heard[named(reason)][1] == reason for reason in CASES)

    monkeypatch.setattr(silence, "FIRST_REPORT", timedelta(hours=1))
    with kubelet.claim(space):
        for reason, seen in CASES.items():
            options = Options(repository=COURSE if seen.pods[-1].init_containers else "")
            actions.launch("team-a", replace(job, name=named(reason), gpu_class=cpu.slug, options=options), by=by_alice)
        actions.launch("team-a", replace(job, name="unheard", gpu_class=cpu.slug), by=by_alice)
        worker(lambda: {"unheard", *(named(reason) for reason in CASES)} <= set(on_nodes(admin, space)), within_s=120)
        for reason, seen in CASES.items():
            replay(kubelet, kubelet.bound(space, labels=f"gpu-portal/workload={named(reason)}"), seen)
        worker(all_heard, within_s=120)
        assert told()["unheard"] == ("preparing", "preparing")
        monkeypatch.setattr(silence, "FIRST_REPORT", timedelta(seconds=1))
        assert told()["unheard"] == ("blocked", "kubelet_silent")


def named(reason: str) -> str:
    """The name of the workload: underscores are not allowed there."""
    return reason.replace("_", "-")
