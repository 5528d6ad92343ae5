"""The Job of a run is built by the site profile of its cluster, for the preview as for the run itself."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from tests.cluster.manifests.test_manifests_run import CPU, NOTEBOOK
from tests.support.rows import mirrored
from workloads.launch import spec as launch_spec
from workloads.launch.form.preview import previewed_objects

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(cluster: Cluster) -> Cluster:
    cluster.site = {"gpu-node-labels": "pool", "pod-priority-class": "batch-low"}
    cluster.save()
    amounts = {"capacity": {"amd.com/gpu": "8"}, "allocatable": {"amd.com/gpu": "8"}}
    node = {"metadata": {"name": "bare", "labels": {"kubernetes.io/hostname": "bare"}}, "spec": {}, "status": amounts}
    mirrored.seen(cluster, Node=[mirrored.ready(node)])
    return cluster


def test_without_gpus_it_avoids_nodes_that_the_profile_or_the_mirror_knows(
    site: Cluster, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        pod = launch_spec.job_manifest(site, CPU)["spec"]["template"]["spec"]

    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"key": "pool", "operator": "DoesNotExist"} in term["matchExpressions"]
    assert {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["bare"]} in term["matchExpressions"]
    assert pod["priorityClassName"] == "batch-low"


def test_with_gpus_it_costs_no_query_and_the_preview_shows_the_same(
    site: Cluster, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        pod = launch_spec.job_manifest(site, NOTEBOOK)["spec"]["template"]["spec"]

    assert pod["priorityClassName"] == "batch-low"
    (job,) = [one for one in previewed_objects(site, NOTEBOOK, volume=None) if one.kind == "Job"]
    assert "priorityClassName: batch-low" in job.text
