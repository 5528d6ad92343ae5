"""The second admission policy, one field at a time: for each refused pod, one that differs only in that field passes.

Every case is tried as a pod and as the template of a Job; dry runs, so nothing is left behind.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from devcluster.client.kube import Api, ApiError, path_of
from tests.deploy.fences.pods import LABELS, Json, template
from tests.support.cluster.identities import wait_for_default_account

Change = Callable[[Json], None]


def spec(**fields: Any) -> Change:
    return lambda pod: pod["spec"].update(fields)


def label(name: str, value: str | None) -> Change:
    def change(pod: Json) -> None:
        pod["metadata"]["labels"].pop(name, None)
        if value is not None:
            pod["metadata"]["labels"][name] = value

    return change


def annotation(name: str, value: str = "x") -> Change:
    return lambda pod: pod["metadata"]["annotations"].update({name: value})


def toleration(**fields: str) -> Change:
    return lambda pod: pod["spec"]["tolerations"].append(fields)


def container(**fields: Any) -> Change:
    return lambda pod: pod["spec"]["containers"][0].update(fields)


def env(name: str) -> Change:
    return container(env=[{"name": name, "value": "all"}])


def claims(*sources: Json) -> Change:
    return spec(resourceClaims=[{"name": f"gpu-{number}", **source} for number, source in enumerate(sources)])


def init_container(**fields: Any) -> Change:
    def change(pod: Json) -> None:
        pod["spec"]["initContainers"] = [pod["spec"]["containers"][0] | {"name": "fetch"} | fields]

    return change


# (the refused change, a similar one that passes, words of the refusal)
CASES: dict[str, tuple[Change, Change, str]] = {
    "queue label missing": (
        label("kueue.x-k8s.io/queue-name", None),
        label("kueue.x-k8s.io/queue-name", "gpu-portal"),
        "label kueue.x-k8s.io/queue-name",
    ),
    "another queue": (
        label("kueue.x-k8s.io/queue-name", "default"),
        label("kueue.x-k8s.io/queue-name", "gpu-portal"),
        "label kueue.x-k8s.io/queue-name",
    ),
    "class label missing": (
        label("gpu-portal/class", None),
        label("gpu-portal/class", "a100"),
        "label gpu-portal/class",
    ),
    "node chosen": (
        spec(nodeName="sim-a100-0"),
        spec(nodeSelector={"kubernetes.io/hostname": "sim-a100-0"}),
        "nodeName",
    ),
    "another scheduler": (
        spec(schedulerName="my-scheduler"),
        spec(schedulerName="default-scheduler"),
        "own scheduler",
    ),
    "system priority": (
        spec(priorityClassName="system-cluster-critical"),
        spec(priorityClassName="gpu-portal"),
        "priorityClassName",
    ),
    "no priority": (spec(priorityClassName=""), spec(priorityClassName="gpu-portal"), "priorityClassName"),
    "tolerates everything": (
        toleration(operator="Exists"),
        toleration(key="nvidia.com/gpu", operator="Exists"),
        "tolerates",
    ),
    "tolerates every class": (
        toleration(key="gpu-portal/class", operator="Exists"),
        toleration(key="gpu-portal/class", value="a100"),
        "tolerates",
    ),
    "tolerates another class": (
        toleration(key="gpu-portal/class", value="h100"),
        toleration(key="gpu-portal/class", value="a100", effect="NoSchedule"),
        "tolerates",
    ),
    "tolerates a hold": (
        toleration(key="gpu-portal/held", operator="Exists"),
        toleration(key="nvidia.com/mig-1g.10gb", operator="Exists"),
        "tolerates",
    ),
    "tolerates the control plane": (
        toleration(key="node-role.kubernetes.io/control-plane", operator="Exists"),
        toleration(key="amd.com/gpu", operator="Exists"),
        "tolerates",
    ),
    "tolerates a cordon": (
        toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),
        toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
        "tolerates",
    ),
    "tolerates somebody's taint": (
        toleration(key="dedicated", operator="Exists"),
        toleration(key="gpu.intel.com/xe", operator="Exists"),
        "tolerates",
    ),
    "a look-alike of a vendor's taint": (
        toleration(key="nvidia.com/gpux", operator="Exists"),
        toleration(key="habana.ai/gaudi", operator="Exists"),
        "tolerates",
    ),
    "all devices by variable": (env("NVIDIA_VISIBLE_DEVICES"), env("CUDA_VISIBLE_DEVICES"), "NVIDIA_"),
    "driver capabilities by variable": (env("NVIDIA_DRIVER_CAPABILITIES"), env("MY_NVIDIA_NOTES"), "NVIDIA_"),
    "AMD devices by variable": (env("AMD_VISIBLE_DEVICES"), env("HIP_VISIBLE_DEVICES"), "AMD"),
    "Gaudi devices by variable": (env("HABANA_VISIBLE_DEVICES"), env("HABANA_LOGS"), "Habana"),
    "somebody's MPS server": (env("CUDA_MPS_PIPE_DIRECTORY"), env("CUDA_HOME"), "CUDA_MPS_"),
    "preloaded library": (env("LD_PRELOAD"), env("LD_LIBRARY_PATH"), "LD_PRELOAD"),
    "variable of an init container": (
        init_container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
        init_container(env=[{"name": "SOURCE", "value": "all"}]),
        "NVIDIA_",
    ),
    "variables from a Secret": (
        container(envFrom=[{"secretRef": {"name": "n"}}]),
        container(envFrom=[]),
        "envFrom",
    ),
    "devices by CDI annotation": (
        annotation("cdi.k8s.io/gpu", "nvidia.com/gpu=all"),
        annotation("kueue.x-k8s.io/workload"),
        "annotation",
    ),
    "devices by CRI-O annotation": (
        annotation("io.kubernetes.cri-o.Devices", "/dev/nvidia0"),
        annotation("gpu-portal/note"),
        "annotation",
    ),
    "annotation of a vendor": (
        annotation("nvidia.com/gpu.deploy"),
        annotation("kubectl.kubernetes.io/default-container", "notebook"),
        "annotation",
    ),
    "annotation nobody listed": (
        annotation("example.com/whatever"),
        annotation("karpenter.sh/do-not-disrupt", "true"),
        "annotation",
    ),
    "somebody's claim": (
        claims({"resourceClaimName": "theirs"}),
        claims({"resourceClaimTemplateName": "mine"}),
        "claims come from",
    ),
    "one claim of two": (
        claims({"resourceClaimTemplateName": "mine"}, {"resourceClaimName": "theirs"}),
        claims({"resourceClaimTemplateName": "mine"}, {"resourceClaimTemplateName": "mine"}),
        "claims come from",
    ),
}


def as_pod(change: Change, place: str) -> tuple[str, Json]:
    body = {"apiVersion": "v1", "kind": "Pod", **template()}
    change(body)
    body["metadata"] |= {"name": "probe", "namespace": place}
    return path_of("v1/pods", namespace=place), body


def as_job(change: Change, place: str) -> tuple[str, Json]:
    inner = template()
    change(inner)
    metadata = {"name": "probe", "namespace": place, "labels": LABELS}
    return path_of("batch/v1/jobs", namespace=place), {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": inner, "backoffLimit": 0},
    }


def try_out(api: Api, request: tuple[str, Json]) -> tuple[int, str]:
    status, data = api.raw("POST", *request, params={"dryRun": "All"})
    return status, data.decode()


@pytest.mark.parametrize("shape", [as_pod, as_job])
@pytest.mark.parametrize("case", CASES)
def test_one_field_decides(admin: Api, ours: str, case: str, shape: Callable[[Change, str], tuple[str, Json]]) -> None:
    refused, passes, words = CASES[case]

    status, text = try_out(admin, shape(refused, ours))
    assert (status, "gpu-portal fence" in text, words in text) == (422, True, True), text
    status, text = try_out(admin, shape(passes, ours))
    assert status == 201, text


def test_the_job_itself_carries_queue_and_class_too(admin: Api, ours: str) -> None:
    for missing in ("kueue.x-k8s.io/queue-name", "gpu-portal/class"):
        path, job = as_job(lambda _pod: None, ours)
        job["metadata"]["labels"] = {name: value for name, value in LABELS.items() if name != missing}

        status, text = try_out(admin, (path, job))

        assert status == 422, text
        assert missing in text


def test_job_and_pod_are_of_one_class(admin: Api, ours: str) -> None:
    path, job = as_job(lambda _pod: None, ours)
    job["metadata"]["labels"] = LABELS | {"gpu-portal/class": "h100"}

    assert try_out(admin, (path, job))[0] == 422


def test_other_namespaces_are_left_alone(admin: Api, foreign: str) -> None:
    status, text = try_out(admin, as_pod(env("NVIDIA_VISIBLE_DEVICES"), foreign))

    assert status == 201, text


@pytest.fixture(scope="module")
def suspended_job(admin: Api, ours: str) -> str:
    path, job = as_job(lambda _pod: None, ours)
    job = copy.deepcopy(job)
    job["metadata"]["name"], job["spec"]["suspend"] = "waiting", True
    admin.request("POST", path, job)
    return "waiting"


def test_a_waiting_job_cannot_be_changed_into_a_forbidden_one(admin: Api, ours: str, suspended_job: str) -> None:
    pod = {"tolerations": [{"operator": "Exists"}]}
    with pytest.raises(ApiError, match="gpu-portal fence"):
        admin.patch("batch/v1/jobs", suspended_job, {"spec": {"template": {"spec": pod}}}, namespace=ours)


def test_what_kueue_writes_at_admission_passes(admin: Api, ours: str, suspended_job: str) -> None:
    """Kueue starts a Job by writing the flavor's labels and tolerations and its own marks into the template."""
    admitted = {
        "metadata": {
            "labels": {"kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/cluster-queue-name": ours},
            "annotations": {"kueue.x-k8s.io/workload": "job-waiting-1a2b3"},
        },
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "kubernetes.io/arch": "amd64"},
            "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
            "tolerations": [
                {"key": "gpu-portal/class", "operator": "Equal", "value": "a100", "effect": "NoSchedule"},
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "nvidia.com/gpu.shared", "operator": "Exists", "effect": "NoSchedule"},
            ],
        },
    }

    admin.patch("batch/v1/jobs", suspended_job, {"spec": {"template": admitted}}, namespace=ours)


@pytest.fixture(scope="module")
def pod(admin: Api, ours: str) -> str:
    path, body = as_pod(spec(schedulingGates=[{"name": "kueue.x-k8s.io/topology"}]), ours)
    admin.request("POST", path, body | {"metadata": body["metadata"] | {"name": "gated"}})
    return "gated"


def test_a_pod_that_exists_may_be_annotated_but_not_with_devices(admin: Api, ours: str, pod: str) -> None:
    """Network plugins annotate existing pods; no annotation may assign a device that way."""
    admin.patch("v1/pods", pod, {"metadata": {"annotations": {"cni.example.com/address": "10.1.2.3"}}}, namespace=ours)

    for name in ("cdi.k8s.io/gpu", "io.kubernetes.cri-o.Devices", "nvidia.com/device", "k8s.amd.com/device"):
        with pytest.raises(ApiError, match="gpu-portal fence"):
            admin.patch("v1/pods", pod, {"metadata": {"annotations": {name: "all"}}}, namespace=ours)


def test_a_pod_keeps_its_queue_and_class(admin: Api, ours: str, pod: str) -> None:
    for labels in ({"kueue.x-k8s.io/queue-name": None}, {"gpu-portal/class": "h100"}):
        with pytest.raises(ApiError, match="gpu-portal fence"):
            admin.patch("v1/pods", pod, {"metadata": {"labels": labels}}, namespace=ours)


def test_an_ephemeral_container_brings_no_devices(admin: Api, ours: str, pod: str) -> None:
    debugger = {
        "name": "debug",
        "image": "example.org/debug:1",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }

    def add(**fields: Any) -> tuple[int, str]:
        path = path_of("v1/pods", pod, namespace=ours, subresource="ephemeralcontainers")
        body = {"spec": {"ephemeralContainers": [debugger | fields]}}
        content_type = "application/strategic-merge-patch+json"
        status, data = admin.raw("PATCH", path, body, params={"dryRun": "All"}, content_type=content_type)
        return status, data.decode()

    refused = add(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])
    assert refused[0] == 422, refused[1]
    assert "gpu-portal fence" in refused[1]
    assert add()[0] == 200


def test_a_pod_older_than_the_fence_can_still_go_away(admin: Api) -> None:
    name = f"fence-older-{uuid.uuid4().hex[:8]}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        wait_for_default_account(admin, name)
        path, body = as_pod(env("NVIDIA_VISIBLE_DEVICES"), name)
        body["metadata"]["finalizers"] = ["example.com/held"]
        admin.request("POST", path, body)
        admin.patch("v1/namespaces", name, {"metadata": {"labels": {"app.kubernetes.io/managed-by": "gpu-portal"}}})

        released = admin.patch("v1/pods", "probe", {"metadata": {"finalizers": None}}, namespace=name)

        assert "finalizers" not in released["metadata"]
    finally:
        admin.delete("v1/namespaces", name)
