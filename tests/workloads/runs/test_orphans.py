"""A worker that dies between a write and its record leaves no object behind, even if the run is stopped next."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from cluster.models import AppliedObject, Cluster, MirrorJob, MirrorPod
from devcluster.client.kube import Api
from portal.core.due import Deadline
from tenants.models import Namespace
from tests.support.rows import make, running
from workloads.launch import actions
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("provisioned")]


def look(found: Workload, kube: Kube) -> Run:
    Workload.objects.update(observed_generation=1)
    reconcile(Workload.objects.get(pk=found.pk), Deadline(), kube=kube)
    return Run.objects.get()


@pytest.mark.parametrize("owner", ["ours", "somebody's"])
def test_a_claim_template_that_was_not_written_down(
    cluster: Cluster, namespace_a: Namespace, alice: User, by_alice: Actor, kube_worker: Kube, admin: Api, owner: str
) -> None:
    dra = make.gpu_class(
        cluster,
        slug="dra",
        interface="dra",
        resource="dra.portal/h100",
        device_class="gpu.nvidia.com",
        device_selector="device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'",
    )
    found = running.workload(namespace_a, dra, by=alice)
    template = manifests.claim_template(RunSpec.from_json(found.runs.get().spec))
    if owner != "ours":
        template["metadata"]["labels"]["gpu-portal/owner"] = owner.replace("'", "-")
    admin.create(template)

    actions.stop("team-a", "one", by=by_alice)
    assert look(found, kube_worker).outcome == "stopped"

    left = admin.find("resource.k8s.io/v1/resourceclaimtemplates", "one-1", namespace=namespace_a.name)
    assert (left is None) is (owner == "ours")
    assert not AppliedObject.objects.filter(name="one-1").exists()


def test_a_job_that_was_not_written_down_and_came_to_its_end(
    namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor, kube_worker: Kube, admin: Api
) -> None:
    found = running.workload(namespace_a, a100, by=alice, kind="job")
    kube_worker.create(manifests.job(RunSpec.from_json(found.runs.get().spec)))
    running.make_ready(found)
    MirrorPod.objects.all().delete()
    job = MirrorJob.objects.get()
    job.record["conditions"] = [
        {"type": "Failed", "status": "True", "reason": "", "message": "", "since": timezone.now().isoformat()}
    ]
    job.save()

    actions.delete("team-a", "one", by=by_alice)
    assert look(found, kube_worker).ended_at is not None

    # Kueue may still hold it for a moment.
    left = admin.find("batch/v1/jobs", "one-1", namespace=namespace_a.name)
    assert left is None or "deletionTimestamp" in left["metadata"]
