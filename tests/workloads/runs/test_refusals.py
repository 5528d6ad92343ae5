"""Objects beside the Job that the cluster refuses: the run waits for them, and the worker tries again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.mirror.writer import MirrorWriter
from cluster.models import AppliedObject, Cluster
from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from portal.core import due
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.runs.reconcile import reconcile

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned")]


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(services["kubeconfigs"]["worker"], tmp_path) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def mirror(cluster: Cluster) -> MirrorWriter:
    return mirrored.seen(cluster)


@pytest.fixture
def look(proxy: ApiProxy) -> Callable[[], Workload]:
    """One pass of a worker over the workload, five minutes after the previous one."""
    kube = Kube(str(proxy.kubeconfig))

    def once() -> Workload:
        AppliedObject.objects.update(sent_at=F("sent_at") - timedelta(minutes=6))
        Workload.objects.update(due_at=Now())
        claimed = due.claim(Workload)
        assert claimed is not None
        due.run_claimed(claimed, partial(reconcile, kube=kube))
        return Workload.objects.get(pk=claimed.row.pk)

    return once


def test_a_secret_that_was_refused_once_is_made_later(
    notebook: LaunchSpec,
    by_alice: Actor,
    namespace_a: Namespace,
    proxy: ApiProxy,
    look: Callable[[], Workload],
    admin: Api,
) -> None:
    """Otherwise the pod would wait on its node for ever, without a report."""
    proxy.when("create", "secrets").status(403)
    actions.launch("team-a", notebook, by=by_alice)
    look()
    assert admin.find("v1/secrets", "one-1", namespace=namespace_a.name) is None

    look()
    assert admin.get("v1/secrets", "one-1", namespace=namespace_a.name)


def test_a_run_gets_the_volume_that_it_was_started_with(
    notebook: LaunchSpec, by_alice: Actor, namespace_a: Namespace, look: Callable[[], Workload], admin: Api
) -> None:
    """The pod waits for that claim, even if the workload has been declared with another volume since."""
    actions.launch("team-a", replace(notebook, volume="data"), by=by_alice)
    actions.declare("team-a", replace(notebook, volume="other"), by=by_alice)
    look()

    claims = admin.list("v1/persistentvolumeclaims", namespace=namespace_a.name)
    assert [claim["metadata"]["name"] for claim in claims] == ["data"]


def test_a_job_does_not_come_without_its_claim_template(
    job: LaunchSpec,
    by_alice: Actor,
    cluster: Cluster,
    team_a: Tenant,
    namespace_a: Namespace,
    unique: str,
    proxy: ApiProxy,
    look: Callable[[], Workload],
    admin: Api,
) -> None:
    """Kueue permanently sets aside a Job whose ResourceClaimTemplate it cannot read."""
    h100: GpuClass = make.gpu_class(
        cluster,
        slug=f"h100-{unique}",
        interface="dra",
        resource="dra.portal/h100",
        device_class="gpu.nvidia.com",
        device_selector='device.driver == "gpu.nvidia.com"',
        node_labels={},
    )
    make.grant(team_a, h100, units=1)
    proxy.when("create", "resourceclaimtemplates").status(403)
    actions.launch("team-a", replace(job, gpu_class=h100.slug), by=by_alice)

    assert look().error_code == "claim_template_refused"
    assert admin.list("batch/v1/jobs", namespace=namespace_a.name) == []

    assert look().error_code == ""
    assert [item["metadata"]["name"] for item in admin.list("batch/v1/jobs", namespace=namespace_a.name)] == ["train-1"]
    assert admin.get("resource.k8s.io/v1/resourceclaimtemplates", "train-1", namespace=namespace_a.name)
