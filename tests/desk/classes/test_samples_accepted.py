"""The API server of a real control plane accepts every sample manifest of the class pages in a team's namespace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from accounts.core.actor import system_actor
from catalog.classes import queries as class_queries
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.manifests.samples import DEPLOYMENT, JOB, POD, sample_yaml
from cluster.models import Cluster
from devcluster.client.kube import Api, path_of
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import provision
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db(transaction=True)
IMAGE = "docker.io/library/python:3.14-slim"
RESOURCES = {
    "Pod": "v1/pods",
    "Job": "batch/v1/jobs",
    "Deployment": "apps/v1/deployments",
    "ResourceClaimTemplate": "resource.k8s.io/v1/resourceclaimtemplates",
}


@pytest.fixture
def classes(cluster: Cluster, unique: str) -> list[GpuClass]:
    """One class for each kind of capacity of the simulated hardware, as discovery proposes it, with own slugs."""
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    proposals = [replace(one, slug=f"{one.slug[:28]}-{index}-{unique}") for index, one in enumerate(found.proposals)]
    return actions.accept_proposals(proposals, by=system_actor("test"), cluster=cluster)


@pytest.fixture
def namespace(
    classes: list[GpuClass], team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None
) -> str:
    """A provisioned namespace; team A holds one unit of each class."""
    for one in classes:
        make.grant(team_a, one, units=1)
    Pool.objects.all().delete()  # created with the first class; `provision` creates its own
    provision(namespace_a, kube_worker)
    return namespace_a.name


def answer(admin: Api, manifest: dict[str, Any], namespace: str) -> tuple[int, str]:
    path = path_of(RESOURCES[manifest["kind"]], namespace=namespace)
    status, data = admin.raw("POST", path, manifest, params={"dryRun": "All", "fieldValidation": "Strict"})
    return status, data.decode()


@pytest.mark.timeout(300)
def test_every_kind_of_class_as_pod_job_and_deployment(admin: Api, classes: list[GpuClass], namespace: str) -> None:
    assert len(classes) >= 14
    refused = {}
    for one in classes:
        texts = sample_yaml(class_queries.pod_spec(one, units=1, image=IMAGE, namespace=namespace))
        assert set(texts) == {POD, JOB, DEPLOYMENT}
        for kind, text in texts.items():
            for manifest in yaml.safe_load_all(text):
                status, said = answer(admin, manifest, namespace)
                if status != 201 or "Warning" in said:
                    refused[f"{kind} of {one.slug}"] = said
    assert refused == {}


@pytest.mark.timeout(300)
def test_only_the_job_is_taken_by_the_queue(admin: Api, classes: list[GpuClass], namespace: str) -> None:
    """As the page states: Kueue suspends the Job, adds no scheduling gate to the pod, and ignores the Deployment."""
    one = next(one for one in classes if one.resource == "nvidia.com/gpu.shared")
    texts = sample_yaml(class_queries.pod_spec(one, units=1, image=IMAGE, namespace=namespace))
    seen = {}
    for kind, text in texts.items():
        status, said = answer(admin, yaml.safe_load(text), namespace)
        assert status == 201, said
        seen[kind] = yaml.safe_load(said)
    assert seen[JOB]["spec"]["suspend"] is True
    assert "schedulingGates" not in seen[POD]["spec"]
    assert "schedulingGates" not in seen[DEPLOYMENT]["spec"]["template"]["spec"]
    # The API server sets the request from the limit, as the comment in the sample states.
    assert seen[POD]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu.shared"] == "1"


@pytest.mark.timeout(300)
def test_a_manifest_without_its_labels_or_with_another_taint_is_refused(
    admin: Api, classes: list[GpuClass], namespace: str
) -> None:
    """Shows that the first test proves something: the same manifest with one part missing is refused."""
    one = next(one for one in classes if one.resource == "nvidia.com/gpu.shared")
    text = sample_yaml(class_queries.pod_spec(one, units=1, image=IMAGE, namespace=namespace))[POD]
    for change in ("labels", "tolerations", "securityContext", "priorityClassName"):
        manifest = yaml.safe_load(text)
        if change == "labels":
            manifest["metadata"].pop("labels")
        elif change == "tolerations":
            manifest["spec"]["tolerations"] = [{"operator": "Exists"}]
        else:
            manifest["spec"].pop(change)
        status, said = answer(admin, manifest, namespace)
        assert status in (403, 422), (change, said)
