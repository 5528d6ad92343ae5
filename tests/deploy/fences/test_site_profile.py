"""What the site profile opens in the pod fence, key by key, and what no profile opens.

Dry runs. The policy is never changed, only its ConfigMap.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster.client.kube import Api, path_of
from tests.deploy.fences.pods import Json, template
from tests.deploy.fences.site_copies import SiteCopy, pod_with, site_copy, wrong_pod
from tests.deploy.fences.test_fence_pods import annotation, container, init_container, spec, toleration
from tests.support.cluster.identities import Impersonating, until

Change = Callable[[Json], None]
LOW = f"fence-low-{uuid.uuid4().hex[:8]}"
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


@pytest.fixture(scope="module")
def site(admin: Api) -> Iterator[SiteCopy]:
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": LOW}, "value": -1}
    admin.create({**low, "preemptionPolicy": "Never"})
    try:
        with site_copy(admin) as found:
            yield found
    finally:
        admin.delete("scheduling.k8s.io/v1/priorityclasses", LOW)


def limits(**more: str) -> Change:
    return container(resources={"limits": {"nvidia.com/gpu": "1", **more}})


def pull_secret(name: str) -> Change:
    return spec(imagePullSecrets=[{"name": name}])


# (key, value, what it opens, similar things that stay closed)
CASES: dict[str, tuple[str, str, list[Change], list[Change]]] = {
    "an annotation": (
        "pod-annotations",
        "# ours\nopenshift.io/scc\n",
        [annotation("openshift.io/scc")],
        [annotation("openshift.io/sccs"), annotation("example.com/whatever")],
    ),
    "annotations of a domain": (
        "pod-annotations",
        "sidecar.istio.io/*",
        [annotation("sidecar.istio.io/status")],
        [annotation("istio.io/rev"), annotation("sidecar.istio.iox/status")],
    ),
    "annotations that give devices": (
        "pod-annotations",
        "cdi.k8s.io/*\nk8s.amd.com/*\n*\nio.kubernetes.cri-o.Devices",
        [],
        [annotation("cdi.k8s.io/gpu"), annotation("k8s.amd.com/gpu"), annotation("io.kubernetes.cri-o.Devices")],
    ),
    "a taint": (
        "gpu-taints",
        "\n\nsku\n\n",
        [toleration(key="sku", operator="Exists")],
        [toleration(operator="Exists"), toleration(key="skus", operator="Exists")],
    ),
    "taints of Kubernetes": (
        "gpu-taints",
        "node-role.kubernetes.io/control-plane\nnode.kubernetes.io/unschedulable\ngpu-portal/class",
        [],
        [
            toleration(key="node-role.kubernetes.io/control-plane", operator="Exists"),
            toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),
            toleration(key="gpu-portal/class", operator="Exists"),
        ],
    ),
    "a priority class": (
        "pod-priority-class",
        f"{LOW}\n",
        [spec(priorityClassName=LOW), spec(priorityClassName="gpu-portal")],
        [spec(priorityClassName="")],
    ),
    "a priority class of the system": (
        "pod-priority-class",
        "system-node-critical",
        [],
        [spec(priorityClassName="system-node-critical")],
    ),
    "pull secrets": (
        "pull-secrets",
        "site-registry\ngpu-portal-dockercfg-*",
        [pull_secret("site-registry"), pull_secret("gpu-portal-dockercfg-x7k2p")],
        [pull_secret("site-registry-2"), pull_secret("default-dockercfg-x7k2p")],
    ),
    "the secrets of other runs": ("pull-secrets", "a*\n*", [], [pull_secret("a-1-pull"), pull_secret("b")]),
    "devices of the class": (
        "class-devices",
        "a100 vpc.amazonaws.com/efa=4\nh100 rdma/hca=1\na100 hugepages-2Mi=512Mi",
        [
            limits(**{"vpc.amazonaws.com/efa": "4"}),
            limits(**{"vpc.amazonaws.com/efa": "1"}),
            limits(**{"hugepages-2Mi": "512Mi", "memory": "1Gi", "cpu": "1"}),
        ],
        [
            limits(**{"vpc.amazonaws.com/efa": "5"}),
            limits(**{"rdma/hca": "1"}),
            limits(**{"hugepages-2Mi": "1Gi", "memory": "1Gi", "cpu": "1"}),
        ],
    ),
    "GPUs as devices of the class": (
        "class-devices",
        "a100 nvidia.com/hostdev=1\na100 devices.kubevirt.io/kvm",
        [],
        [limits(**{"nvidia.com/hostdev": "1"}), limits(**{"devices.kubevirt.io/kvm": "1"})],
    ),
}


def changed(namespace: str, change: Change) -> Json:
    body = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(template())}
    body["metadata"] |= {"name": "probe", "namespace": namespace}
    change(body)
    return body


@pytest.mark.parametrize("case", CASES)
def test_the_profile_opens_what_it_names_and_nothing_else(site: SiteCopy, case: str) -> None:
    key, value, opened, closed = CASES[case]
    site.set_profile({})
    for one in (*opened[:1], *closed):
        assert "gpu-portal fence" in site.answer(changed(site.name, one))[1]
    site.set_profile({key: value})

    for one in opened:
        status, text = site.answer(changed(site.name, one))
        assert status == 201, text
    for one in closed:
        status, text = site.answer(changed(site.name, one))
        assert (status, "gpu-portal fence" in text) == (422, True), text


def test_without_its_profile_nothing_is_admitted_and_a_new_one_is_enough(site: SiteCopy) -> None:
    site.remove_profile()
    try:
        assert site.answer(pod_with(site.name, {}))[0] in (403, 422)
    finally:
        site.set_profile({})

    assert site.answer(pod_with(site.name, {}))[0] == 201
    assert site.answer(wrong_pod(site.name))[0] == 422


# ---- containers without a GPU ------------------------------------------------------------------------------------


NO_GPU: Json = {"resources": {"limits": {"cpu": "1"}}}
# Of the only container, or of a second one: is it admitted?
VISIBLE: dict[str, tuple[Change, bool]] = {
    "a GPU": (container(env=[]), True),
    "a GPU and void": (container(env=[VOID]), False),
    "no GPU": (container(**NO_GPU, env=[]), False),
    "no GPU and void": (container(**NO_GPU, env=[VOID]), True),
    "no GPU and all": (container(**NO_GPU, env=[VOID | {"value": "all"}]), False),
    "no GPU and none": (container(**NO_GPU, env=[VOID | {"value": ""}]), False),
    "no GPU, void and then all": (container(**NO_GPU, env=[VOID, VOID | {"value": "all"}]), False),
    "no GPU, void and capabilities": (
        container(**NO_GPU, env=[VOID, {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}]),
        False,
    ),
    "no GPU and a value from the pod": (
        container(
            **NO_GPU,
            env=[{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        ),
        False,
    ),
    "a limit of 0": (container(resources={"limits": {"nvidia.com/gpu": "0"}}, env=[]), False),
    "a limit of 0 and void": (container(resources={"limits": {"nvidia.com/gpu": "0"}}, env=[VOID]), True),
    "a GPU and an init container": (init_container(**NO_GPU, env=[]), False),
    "a GPU and an init container with void": (init_container(**NO_GPU, env=[VOID]), True),
    "a GPU and a sidecar": (init_container(**NO_GPU, env=[], restartPolicy="Always"), False),
    "a GPU and a sidecar with void": (init_container(**NO_GPU, env=[VOID], restartPolicy="Always"), True),
    "a device through a claim": (
        lambda pod: (
            container(resources={"claims": [{"name": "gpu"}]}, env=[])(pod),
            spec(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "mine"}])(pod),
        )[0],
        True,
    ),
}


def as_job(pod: Json) -> Json:
    inner = {"metadata": {key: pod["metadata"][key] for key in ("labels", "annotations")}, "spec": pod["spec"]}
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "labels")}
    job = {"template": inner, "backoffLimit": 0, "suspend": True}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}


@pytest.mark.parametrize("case", VISIBLE)
def test_a_container_without_a_gpu_says_that_it_gets_none(site: SiteCopy, case: str) -> None:
    change, is_admitted = VISIBLE[case]
    pod = changed(site.name, change)

    for body in (pod, as_job(pod)):
        status, text = site.answer(body)
        assert status == (201 if is_admitted else 422), text


def owned_pod(site: SiteCopy) -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "older", "uid": "1", "controller": True}
    pod = changed(site.name, container(**NO_GPU, env=[]))
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def test_pods_of_an_older_job_and_containers_of_webhooks_are_the_job_controllers(
    site: SiteCopy, services: dict[str, Any]
) -> None:
    controller = Impersonating(
        services["kubeconfigs"]["admin"],
        user="system:serviceaccount:kube-system:job-controller",
        group="system:masters",
    )
    pod = owned_pod(site)

    assert site.answer(pod)[0] == 422, "only the job controller makes pods of Jobs"
    status, text = SiteCopy(controller, site.name).answer(pod)
    assert status == 201, text
    all_devices = copy.deepcopy(pod)
    all_devices["spec"]["containers"][0]["env"] = [VOID | {"value": "all"}]
    assert SiteCopy(controller, site.name).answer(all_devices)[0] == 422


def test_a_job_from_before_this_rule_is_started_and_stopped_but_gets_no_other_containers(
    admin: Api, site: SiteCopy
) -> None:
    mine = {"fence-site": site.name}
    admin.patch("v1/namespaces", site.name, {"metadata": {"labels": dict.fromkeys(mine)}})
    until(lambda: site.answer(wrong_pod(site.name))[0] == 201, "no policy applies to the namespace")
    jobs = {name: as_job(changed(site.name, change)) for name, change in OLDER.items()}
    for name, job in jobs.items():
        admin.create({**job, "metadata": {**job["metadata"], "name": name}})
    admin.patch("v1/namespaces", site.name, {"metadata": {"labels": mine}})
    until(lambda: site.answer(wrong_pod(site.name))[0] == 422, "the policy applies again")

    for is_suspended in (False, True):
        admin.patch("batch/v1/jobs", "without-gpu", {"spec": {"suspend": is_suspended}}, namespace=site.name)
    without = {"spec": {"template": {"spec": {"containers": [{"name": "notebook", "resources": {"limits": None}}]}}}}
    path = path_of("batch/v1/jobs", "with-gpu", namespace=site.name)
    status, data = admin.raw("PATCH", path, without, content_type="application/strategic-merge-patch+json")
    assert (status, "NVIDIA_VISIBLE_DEVICES=void" in data.decode()) == (422, True), data


OLDER = {"without-gpu": container(**NO_GPU, env=[]), "with-gpu": container(env=[])}
