"""A worker that dies between a write and its record leaves no object behind, even if the run is stopped next."""

from __future__ import annotations

from dataclasses import replace

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
from tests.workloads.cases.run_state import shown
from workloads.gateway.queries import log_source
from workloads.launch import actions
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile
from workloads.status.types import Phase

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


def with_identity(found: Workload, identity: str) -> RunSpec:
    """The spec of its run, with this identity as recorded."""
    spec = replace(RunSpec.from_json(found.runs.get().spec), identity=identity)
    Run.objects.filter(workload=found).update(spec=spec.to_json())
    return spec


@pytest.mark.parametrize("theirs", ["", "a-later-run"])
def test_a_job_of_another_run_with_the_same_owner_and_name_is_never_ours(
    namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor, kube_worker: Kube, admin: Api, theirs: str
) -> None:
    """As after a restore: a workload that the backup does not have had the same primary key, name and number."""
    found = running.workload(namespace_a, a100, by=alice, kind="job")
    spec = with_identity(found, "of-this-row")
    other = kube_worker.create(manifests.job(replace(spec, image="docker.io/library/other:1", identity=theirs)))

    look(found, kube_worker)
    sent = AppliedObject.objects.get(kind="Job", name="one-1")
    assert (sent.result, sent.uid, sent.owner) == (AppliedObject.Result.FOREIGN, "", spec.owner)

    actions.stop("team-a", "one", by=by_alice)
    ended = look(found, kube_worker)
    assert (ended.outcome, ended.admitted_at) == ("stopped", None)
    there = admin.get("batch/v1/jobs", "one-1", namespace=namespace_a.name)["metadata"]
    assert (there["uid"], "deletionTimestamp" in there) == (other.uid, False)


def test_a_job_of_the_same_run_that_was_not_written_down_is_ours(
    namespace_a: Namespace, a100: GpuClass, alice: User, kube_worker: Kube
) -> None:
    """As after a restore: the run is in the backup, and its Job was created after it."""
    found = running.workload(namespace_a, a100, by=alice, kind="job")
    made = kube_worker.create(manifests.job(with_identity(found, "of-this-row")))

    look(found, kube_worker)

    sent = AppliedObject.objects.get(kind="Job", name="one-1")
    assert (sent.result, sent.uid) == (AppliedObject.Result.APPLIED, made.uid)


@pytest.mark.parametrize(("label", "phase"), [("of-this-row", Phase.STARTING), ("a-later-run", Phase.QUEUED)])
def test_pods_of_another_run_with_the_same_owner_and_name_are_not_shown(
    namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor, label: str, phase: Phase
) -> None:
    found = running.workload(namespace_a, a100, by=alice)
    with_identity(found, "of-this-row")
    running.make_ready(found)
    Run.objects.update(admitted_at=None, started_at=None, ready_at=None)
    for model in (MirrorJob, MirrorPod):
        one = model.objects.get()
        one.record["labels"] = {**one.record["labels"], "gpu-portal/identity": label}
        one.save()

    assert shown("one").status.phase is phase
    assert (log_source(by_alice, "team-a", "one")[1] is not None) is (phase is Phase.STARTING)


def test_a_stop_before_it_was_sent_does_not_delete_the_job_of_another_run(
    namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor, kube_worker: Kube, admin: Api
) -> None:
    found = running.workload(namespace_a, a100, by=alice, kind="job")
    other = kube_worker.create(manifests.job(replace(with_identity(found, "of-this-row"), identity="a-later-run")))

    actions.stop("team-a", "one", by=by_alice)
    assert look(found, kube_worker).outcome == "stopped"

    there = admin.get("batch/v1/jobs", "one-1", namespace=namespace_a.name)["metadata"]
    assert (there["uid"], "deletionTimestamp" in there) == (other.uid, False)
