"""What the API server refuses by a limit, a quota or a change of a site, on the real control plane."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.manifests.namespace import SERVICE_ACCOUNT
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from devcluster.client.types import Json
from tenants.models import Namespace, Tenant
from tests.support.cluster.policies import JOBS, OF_WORKLOAD, PODS, changes, refusal, trial_pod
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, is_open, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.staged import until_as_written
from tests.workloads.cases.steps_followed import by_hand, follow
from tests.workloads.situations.refusals.written import REFUSALS
from tests.workloads.situations.test_problems_live import cpu
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.runs.reconcile import REFUSED_AGAIN

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# Fixtures of other modules, by name.
__all__ = ["by_hand", "cpu"]

ACCOUNTS, QUOTAS, LIMITS = "v1/serviceaccounts", "v1/resourcequotas", "v1/limitranges"
NO_CLASS, NO_LIMIT = "no PriorityClass with name none was found", "spec.backoffLimit: Invalid value: -1"


def trial_job(namespace: str) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "none", "image": "none"}]}}
    meta = {"name": "odd-1", "namespace": namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def uncounted(admin: Api, namespace: str) -> None:
    """Creates a quota whose usage is unknown, as each one is for a moment, until its spec changes."""
    hard = {"count/configmaps": "50", "requests.cpu": "100"}
    meta = {"name": "uncounted", "namespace": namespace}
    admin.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}})
    wait_until(lambda: admin.get(QUOTAS, "uncounted", namespace=namespace).get("status", {}).get("hard"))
    admin.patch(QUOTAS, "uncounted", {"status": {"used": None}}, namespace=namespace, subresource="status")
    trial = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trial", "namespace": namespace}}
    wait_until(lambda: "status unknown for quota: uncounted" in refusal(admin, trial))


def test_what_the_api_server_refuses(
    cpu: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, by_hand: Client, worker: Worker, admin: Api, unique: str,
) -> None:  # fmt: skip
    """Each is refused while another run of the same scene is accepted."""
    make.grant(team_a, cpu, units=50)
    provision(namespace_a, kube_worker)
    space = namespace_a.name

    def ask(name: str, *, units: int = 2) -> None:
        actions.launch("team-a", replace(job, name=name, gpu_class=cpu.slug, units=units), by=by_alice)

    def found(**written: str) -> None:
        until_as_written(worker, by_alice, {name: REFUSALS[key] for name, key in written.items()})

    # The policies of a site give a pod a priority class that does not exist, and a Job a limit that no Job may have.
    ranks = changes(
        admin, space, f"ranks-{unique}", rules=PODS, when=OF_WORKLOAD.format("ranked"),
        to='Object{spec: Object.spec{priorityClassName: "none"}}',
        until=lambda: NO_CLASS in refusal(admin, trial_pod(space, "ranked")),
    )  # fmt: skip
    spoils = changes(
        admin, space, f"spoils-{unique}", rules=JOBS, when="object.metadata.name == 'odd-1'",
        to="Object{spec: Object.spec{backoffLimit: -1}}",
        until=lambda: NO_LIMIT in refusal(admin, trial_job(space)),
    )  # fmt: skip
    least = {"limits": [{"type": "Container", "min": {"cpu": "2"}}]}
    admin.create(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "least", "namespace": space}, "spec": least}
    )
    wait_until(
        lambda: "minimum cpu usage" in refusal(admin, trial_pod(space, "small")), what="the LimitRange is in force"
    )
    with ranks, spoils:
        ask("small", units=1)
        for name in ("ranked", "odd", "sound"):
            ask(name)
        written = {
            "small": "below LimitRange",
            "ranked": "unknown refusal of the pod",
            "odd": "unknown refusal of the Job",
        }
        first = until_as_written(worker, by_alice, {name: REFUSALS[key] for name, key in written.items()})
        raw = {name: next(step.raw for step in shown(name).steps if step.raw) for name in ("ranked", "odd")}
        assert (NO_CLASS in raw["ranked"], NO_LIMIT in raw["odd"]) == (True, True), raw
        follow(by_hand, first["small"].steps[0].href)
        worker(lambda: all(told()[name] == RUNNING for name in ("small", "sound")))
    # The API server goes by a policy for a moment after its end.
    wait_until(lambda: NO_LIMIT not in refusal(admin, trial_job(space)))
    AppliedObject.objects.filter(name="odd-1").update(sent_at=timezone.now() - REFUSED_AGAIN)
    Workload.objects.filter(name="odd").update(due_at=timezone.now())

    admin.delete(ACCOUNTS, SERVICE_ACCOUNT, namespace=space)
    ask("nobody")
    found(nobody="no service account")
    wait_until(lambda: is_open(namespace_a, kube_worker))

    uncounted(admin, space)
    ask("early")
    found(early="quota not counted")
    admin.patch(QUOTAS, "uncounted", {"spec": {"hard": {"requests.cpu": "99"}}}, namespace=space)
    everything = ("small", "sound", "ranked", "odd", "nobody", "early")
    worker(lambda: told() == dict.fromkeys(everything, RUNNING), within_s=120)
