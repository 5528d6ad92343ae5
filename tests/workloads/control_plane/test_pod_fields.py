"""Pod fields that could give a pod more than its class: no form or API accepts them, and the cluster refuses them too.

Each field is tried through the API and the form. Then dry runs send it to the cluster with the three identities that
could: the worker and a team member, who may not create pods, the worker with a Job, and the Job controller, which
creates the pods of Jobs. Dry runs leave nothing behind.

Left out, because they change only the pod itself: hostAliases, dnsPolicy, dnsConfig, hostname, shareProcessNamespace,
activeDeadlineSeconds, topologySpreadConstraints and schedulingGates (the pod itself waits), nodeSelector and
nodeAffinity (fewer nodes; taints close those of other classes), `spec.suspend` of a Job (Kueue sets it again),
parallelism (Kueue counts it).
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.test import Client

from accounts.models import Event, User
from catalog.models import GpuClass, Image
from cluster.manifests import namespace as walls
from cluster.manifests import run as manifests
from cluster.manifests import workers
from cluster.manifests.run_spec import RunSpec
from cluster.manifests.specs import NamespaceSpec, QuotaSpec
from devcluster.client.kube import Api, ApiError, path_of
from tenants.models import Tenant
from tests.support.cluster.identities import Impersonating, wait_for_default_account
from tests.support.waiting import wait_until
from workloads.models import Workload

Json = dict[str, Any]
Change = Callable[[Json], object]
GROUP = "gpu-portal:pod-fields"
PLUGIN = "nvidia.com/gpu"


@dataclass(frozen=True)
class Field:
    """`change` puts the field into a pod template; `words` are in the cluster's refusal of the pod.

    `key` is the name that a user would send to form or API; `env` is the name of a variable that a user would set.
    `on_job`: the cluster refuses the Job already, not only its pods.
    """

    key: str
    change: Change
    words: str
    on_job: bool = True
    env: str = ""


# ---- ways to change a pod ----------------------------------------------------------------------------------------


def spec(**fields: Any) -> Change:
    return lambda pod: pod["spec"].update(fields)


def of_pod(**fields: Any) -> Change:
    return lambda pod: pod["spec"]["securityContext"].update(fields)


def container(**fields: Any) -> Change:
    return lambda pod: pod["spec"]["containers"][0].update(fields)


def of_container(**fields: Any) -> Change:
    return lambda pod: pod["spec"]["containers"][0].update(
        securityContext={**pod["spec"]["containers"][0]["securityContext"], **fields}
    )


def init_container(**fields: Any) -> Change:
    def change(pod: Json) -> None:
        first = {**pod["spec"]["containers"][0], "name": "before", **fields}
        pod["spec"]["initContainers"] = [
            {key: value for key, value in first.items() if key not in ("readinessProbe", "ports")}
        ]

    return change


def volume(**source: Any) -> Change:
    return lambda pod: pod["spec"]["volumes"].append({"name": "more", **source})


def toleration(**fields: str) -> Change:
    return lambda pod: pod["spec"]["tolerations"].append(fields)


def variable(name: str) -> Change:
    return lambda pod: pod["spec"]["containers"][0]["env"].append({"name": name, "value": "all"})


def limit(name: str) -> Change:
    def change(pod: Json) -> None:
        for key in ("requests", "limits"):
            pod["spec"]["containers"][0]["resources"][key][name] = "1"

    return change


def label(name: str, value: str | None) -> Change:
    def change(pod: Json) -> None:
        pod["metadata"]["labels"].pop(name, None)
        if value is not None:
            pod["metadata"]["labels"][name] = value

    return change


def annotation(name: str, value: str = "x") -> Change:
    return lambda pod: pod["metadata"].setdefault("annotations", {}).update({name: value})


def others(**terms: Any) -> Json:
    """An affinity, or anti-affinity, to the pods of all namespaces."""
    everybody = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    return {name: {"requiredDuringSchedulingIgnoredDuringExecution": [everybody]} for name in terms}


def security(key: str, change: Change, words: str) -> Field:
    """Pod Security checks pods only: the Job is accepted, its pods are refused."""
    return Field(key, change, words, on_job=False)


def device_variable(name: str) -> Field:
    return Field(name, variable(name), "gpu-portal fence: NVIDIA_*", env=name)


NO_CAPABILITIES = {"drop": ["ALL"]}
FIELDS: dict[str, Field] = {
    # ---- Pod Security
    "hostPath": security("hostPath", volume(hostPath={"path": "/"}), 'volume type "hostPath"'),
    "hostNetwork": security("hostNetwork", spec(hostNetwork=True), "hostNetwork=true"),
    "hostPID": security("hostPID", spec(hostPID=True), "hostPID=true"),
    "hostIPC": security("hostIPC", spec(hostIPC=True), "hostIPC=true"),
    "hostPort": security(
        "hostPort", container(ports=[{"name": "http", "containerPort": 8888, "hostPort": 8888}]), "hostPort"
    ),
    "privileged": security("privileged", of_container(privileged=True, allowPrivilegeEscalation=True), "privileged"),
    "allowPrivilegeEscalation": security(
        "allowPrivilegeEscalation", of_container(allowPrivilegeEscalation=True), "allowPrivilegeEscalation != false"
    ),
    "capabilities.add": security(
        "capabilities", of_container(capabilities={"add": ["SYS_ADMIN"], "drop": ["ALL"]}), "SYS_ADMIN"
    ),
    "capabilities kept": security("capabilities", of_container(capabilities={}), "unrestricted capabilities"),
    "seccompProfile of the pod": security("seccompProfile", of_pod(seccompProfile={"type": "Unconfined"}), "seccomp"),
    "seccompProfile of a container": security(
        "seccompProfile", of_container(seccompProfile={"type": "Unconfined"}), "seccomp"
    ),
    "procMount": Field("procMount", of_container(procMount="Unmasked"), "procMount", on_job=True),
    "runAsUser of the pod": security("runAsUser", of_pod(runAsUser=0), "runAsUser=0"),
    "runAsUser of a container": security("runAsUser", of_container(runAsUser=0), "runAsUser=0"),
    "runAsNonRoot": security("runAsNonRoot", of_pod(runAsNonRoot=False), "runAsNonRoot != true"),
    "sysctls": security("sysctls", of_pod(sysctls=[{"name": "kernel.msgmax", "value": "65536"}]), "forbidden sysctls"),
    "seLinuxOptions.type": security("seLinuxOptions", of_pod(seLinuxOptions={"type": "spc_t"}), "seLinuxOptions"),
    "seLinuxOptions.role": security(
        "seLinuxOptions", of_container(seLinuxOptions={"role": "system_r"}), "seLinuxOptions"
    ),
    "appArmorProfile": security("appArmorProfile", of_pod(appArmorProfile={"type": "Unconfined"}), "AppArmor"),
    "windowsOptions.hostProcess": security(
        "windowsOptions",
        lambda pod: pod["spec"].update(
            hostNetwork=True,
            securityContext={**pod["spec"]["securityContext"], "windowsOptions": {"hostProcess": True}},
        ),
        "hostProcess",
    ),
    "host of a probe": security(
        "livenessProbe", container(livenessProbe={"httpGet": {"path": "/", "port": 80, "host": "10.0.0.1"}}), "10.0.0.1"
    ),
    "host of a lifecycle hook": security(
        "lifecycle",
        container(lifecycle={"preStop": {"httpGet": {"path": "/", "port": 80, "host": "10.0.0.1"}}}),
        "10.0.0.1",
    ),
    "privileged init container": security(
        "initContainers",
        init_container(securityContext={"privileged": True, "capabilities": NO_CAPABILITIES}),
        "privileged",
    ),
    "capabilities of an init container": security(
        "initContainers",
        init_container(securityContext={"allowPrivilegeEscalation": False, "capabilities": {"add": ["NET_RAW"]}}),
        "NET_RAW",
    ),
    "nfs": security("nfs", volume(nfs={"server": "10.0.0.1", "path": "/"}), 'volume type "nfs"'),
    "iscsi": security(
        "iscsi",
        volume(iscsi={"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}),
        'volume type "iscsi"',
    ),
    "fc": security("fc", volume(fc={"targetWWNs": ["50060e801049cfd1"], "lun": 0}), 'volume type "fc"'),
    "flexVolume": security("flexVolume", volume(flexVolume={"driver": "example.com/any"}), 'volume type "flexVolume"'),
    # ---- volumes and rights that the fence adds
    "csi": Field("csi", volume(csi={"driver": "secrets-store.csi.k8s.io"}), "volumes of type csi"),
    "ephemeral": Field(
        "ephemeral",
        volume(
            ephemeral={
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            }
        ),
        "volumes of type csi",
    ),
    "token in a volume": Field(
        "projected", volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}), "no token"
    ),
    "automountServiceAccountToken": Field(
        "automountServiceAccountToken", spec(automountServiceAccountToken=True), "no token"
    ),
    "serviceAccountName": Field("serviceAccountName", spec(serviceAccountName="robot"), "no other account"),
    "os": Field(
        "os",
        lambda pod: (
            pod["spec"].update(os={"name": "windows"}, securityContext={"runAsNonRoot": True}),
            pod["spec"]["containers"][0].pop("securityContext"),
        ),
        "os must be linux",
    ),
    # ---- scheduling
    "nodeName": Field("nodeName", spec(nodeName="sim-a100-0"), "nodeName"),
    "schedulerName": Field("schedulerName", spec(schedulerName="mine"), "own scheduler"),
    "tolerations of everything": Field("tolerations", toleration(operator="Exists"), "a pod tolerates no others"),
    "tolerations of another class": Field(
        "tolerations", toleration(key="gpu-portal/class", value="h100"), "a pod tolerates no others"
    ),
    "tolerations of a hold": Field(
        "tolerations", toleration(key="gpu-portal/held", operator="Exists"), "a pod tolerates no others"
    ),
    "tolerations of a cordon": Field(
        "tolerations",
        toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),
        "a pod tolerates no others",
    ),
    "tolerations of the control plane": Field(
        "tolerations",
        toleration(key="node-role.kubernetes.io/control-plane", operator="Exists"),
        "a pod tolerates no others",
    ),
    "priorityClassName of the system": Field(
        "priorityClassName", spec(priorityClassName="system-node-critical"), "priorityClassName"
    ),
    "priorityClassName left out": Field("priorityClassName", spec(priorityClassName=""), "priorityClassName"),
    "priority": security("priority", spec(priority=1_000_000), "priority"),
    "preemptionPolicy": security("preemptionPolicy", spec(preemptionPolicy="PreemptLowerPriority"), "PreemptionPolicy"),
    "podAntiAffinity": Field("affinity", spec(affinity=others(podAntiAffinity=1)), "podAntiAffinity"),
    "podAffinity": Field("affinity", spec(affinity=others(podAffinity=1)), "podAffinity"),
    "runtimeClassName": Field("runtimeClassName", spec(runtimeClassName="nvidia"), "untimeClass"),
    "imagePullSecrets": Field(
        "imagePullSecrets",
        spec(imagePullSecrets=[{"name": "theirs-1-pull"}]),
        "may name only the Secret of the pod's own run",
    ),
    "overhead": security("overhead", spec(overhead={"cpu": "1"}), "verhead"),
    "terminationGracePeriodSeconds": Field(
        "terminationGracePeriodSeconds", spec(terminationGracePeriodSeconds=86_400), "must be at most 300"
    ),
    # ---- devices
    "NVIDIA_VISIBLE_DEVICES": device_variable("NVIDIA_VISIBLE_DEVICES"),
    "NVIDIA_DRIVER_CAPABILITIES": device_variable("NVIDIA_DRIVER_CAPABILITIES"),
    "NVIDIA_MIG_CONFIG_DEVICES": device_variable("NVIDIA_MIG_CONFIG_DEVICES"),
    "NVIDIA_IMEX_CHANNELS": device_variable("NVIDIA_IMEX_CHANNELS"),
    "AMD_VISIBLE_DEVICES": device_variable("AMD_VISIBLE_DEVICES"),
    "HABANA_VISIBLE_DEVICES": device_variable("HABANA_VISIBLE_DEVICES"),
    "CUDA_MPS_PIPE_DIRECTORY": device_variable("CUDA_MPS_PIPE_DIRECTORY"),
    "LD_PRELOAD": device_variable("LD_PRELOAD"),
    "LD_AUDIT": device_variable("LD_AUDIT"),
    "variable of an init container": Field(
        "initContainers", init_container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]), "NVIDIA_*"
    ),
    "envFrom": Field("envFrom", container(envFrom=[{"secretRef": {"name": "another"}}]), "envFrom"),
    "CDI annotation": Field("annotations", annotation("cdi.k8s.io/gpu", "nvidia.com/gpu=all"), "annotation"),
    "CRI-O annotation": Field("annotations", annotation("io.kubernetes.cri-o.Devices", "/dev/nvidia0"), "annotation"),
    "annotation of a vendor": Field("annotations", annotation("nvidia.com/gpu.deploy"), "annotation"),
    "annotation for AppArmor": Field(
        "annotations", annotation("container.apparmor.security.beta.kubernetes.io/notebook", "unconfined"), "annotation"
    ),
    "resourceClaims of others": Field(
        "resourceClaims", spec(resourceClaims=[{"name": "gpu", "resourceClaimName": "theirs"}]), "claims come from"
    ),
    "devices of another class": security("resources", limit("nvidia.com/mig-1g.10gb"), "exceeded quota"),
    "a resource that is all devices": Field("resources", limit("gpu.intel.com/i915_monitoring"), "other devices"),
    "a resource of no class": Field("resources", limit("devices.kubevirt.io/kvm"), "other devices"),
    "devices by a mount": Field(
        "volumeMounts",
        lambda pod: pod["spec"]["containers"][0]["volumeMounts"].append(
            {"name": "home", "mountPath": "/var/run/nvidia-container-devices/all"}
        ),
        "nvidia-container-devices",
    ),
    # ---- Kueue
    "another queue": Field("labels", label("kueue.x-k8s.io/queue-name", "theirs"), "queue-name"),
    "no queue": Field("labels", label("kueue.x-k8s.io/queue-name", None), "queue-name"),
    "no class": Field("labels", label("gpu-portal/class", None), "gpu-portal/class"),
    "priority-class": Field("labels", label("kueue.x-k8s.io/priority-class", "production"), "batch or interactive"),
    "managed": Field("labels", label("kueue.x-k8s.io/managed", "true"), "start pods without its accounting"),
    "prebuilt-workload-name": Field(
        "labels", label("kueue.x-k8s.io/prebuilt-workload-name", "theirs"), "start pods without its accounting"
    ),
    "pod-group-name": Field(
        "labels", label("kueue.x-k8s.io/pod-group-name", "group"), "start pods without its accounting"
    ),
    "pod-suspending-parent": Field(
        "annotations",
        annotation("kueue.x-k8s.io/pod-suspending-parent", "deployment"),
        "start pods without its accounting",
    ),
    "elastic-job": Field(
        "annotations", annotation("kueue.x-k8s.io/elastic-job", "true"), "start pods without its accounting"
    ),
}
KEYS = sorted({one.key for one in FIELDS.values()})
# Also a field of the portal: the queue's priority, which sets only a label of the Job.
OURS = frozenset({"priority"})


def test_the_table_is_as_long_as_it_has_to_be() -> None:
    assert len(FIELDS) >= 45
    assert len({(one.key, one.words) for one in FIELDS.values()}) >= 45


# ---- API and form ------------------------------------------------------------------------------------------------


@pytest.fixture
def alices(granted: Tenant, images: list[Image], alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def body(a100: GpuClass) -> Json:
    return {"name": "one", "kind": "notebook", "gpu_class": a100.slug, "units": 1, "image": "minimal"}


def nothing_happened() -> bool:
    return not Workload.objects.exists() and not Event.objects.filter(verb__startswith="workload.").exists()


def sent(client: Client, method: str, path: str, body: Json) -> tuple[int, str, str]:
    answer = client.generic(method, f"/api/v1/workloads{path}", json.dumps(body), content_type="application/json")
    told = answer.json()
    return answer.status_code, told["code"], told["field"]


@pytest.mark.django_db
def test_the_api_refuses_each_with_its_name(alices: Client, body: Json) -> None:
    declared = {key: value for key, value in body.items() if key != "name"}
    for key in KEYS:
        unknown = (422, "unknown_field", key)
        assert sent(alices, "POST", "", {**body, key: "x"}) == unknown
        assert sent(alices, "PUT", "/one", {**declared, key: "x"}) == unknown
        assert sent(alices, "POST", "/one/runs", {key: "x"}) == unknown
        within = (422, "bad_priority", key) if key in OURS else (422, "unknown_field", f"options.{key}")
        assert sent(alices, "POST", "", {**body, "options": {key: "x"}}) == within
    assert nothing_happened()


@pytest.mark.django_db
def test_the_api_says_what_there_is_instead(alices: Client, body: Json) -> None:
    answer = alices.post("/api/v1/workloads", {**body, "hostNetwork": True}, content_type="application/json")
    text = answer.json()["message"]
    assert text.startswith("Unknown field 'hostNetwork'. Nothing was changed. Known fields: kind, gpu_class,")
    answer = alices.post("/api/v1/workloads", {**body, "options": {"x": 1}}, content_type="application/json")
    text = answer.json()["message"]
    assert text.startswith("Unknown field 'options.x'. Nothing was changed. Known fields of options: cpu,")


@pytest.mark.django_db
def test_the_same_without_it_is_taken(alices: Client, body: Json) -> None:
    answer = alices.post("/api/v1/workloads", {**body, "options": {"cpu": 1}}, content_type="application/json")
    assert answer.status_code == 201, answer.content


@pytest.mark.django_db
def test_variables_that_reach_devices_are_refused(alices: Client, body: Json) -> None:
    names = [one.env for one in FIELDS.values() if one.env]
    assert len(names) >= 9
    for name in names:
        refused = (422, "forbidden_variable", "env")
        assert sent(alices, "POST", "", {**body, "options": {"env": {name: "all"}}}) == refused, name
    assert sent(alices, "POST", "", {**body, "options": {"env": {"A": {"valueFrom": 1}}}})[1] == "invalid"
    assert nothing_happened()


@pytest.mark.django_db
def test_the_form_refuses_each_with_its_name(alices: Client, body: Json) -> None:
    for key in KEYS:
        answer = alices.post("/teams/team-a/launch", {**body, key: "x"})
        assert answer.status_code == 422, key
        if key in OURS:
            assert "Select a valid choice" in answer.context["form"].errors[key][0]
            continue
        assert answer.context["form"].non_field_errors()[0].startswith(f"Unknown field '{key}'"), key
    assert nothing_happened()
    assert alices.post("/teams/team-a/launch", body).status_code == 302


# ---- admission in the cluster ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A team's namespace as the worker provisions it, and the identities that write there."""

    name: str
    worker: Api
    tenant: Api
    controller: Api


@pytest.fixture(scope="module")
def place(services: Json, admin: Api) -> Iterator[Place]:
    worker = Api(services["kubeconfigs"]["worker"])
    name = f"pod-fields-{uuid.uuid4().hex[:8]}"
    quota = QuotaSpec(devices={f"requests.{PLUGIN}": 8, "requests.nvidia.com/mig-1g.10gb": 0}, cpu=64, memory_gib=256)
    wanted = NamespaceSpec(name, f"test.{name}", GROUP, "gpu-portal", quota, cells=None, is_held=False)
    for manifest in walls.isolation_objects(wanted):
        worker.create(manifest)
        if manifest["kind"] == "Namespace":
            wait_for_default_account(admin, name)
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": name}})
    config = services["kubeconfigs"]["admin"]
    controller = "system:serviceaccount:kube-system:job-controller"
    yield Place(
        name,
        worker,
        Impersonating(config, user="alice@example.org", group=GROUP),
        Impersonating(config, user=controller, group="system:serviceaccounts"),
    )
    admin.delete("v1/namespaces", name)


PROBE = RunSpec(
    owner="workloads.workload.7",
    namespace="",
    workload="probe",
    number=1,
    kind="notebook",
    gpu_class="a100",
    units=1,
    interface="device-plugin",
    resource=PLUGIN,
    device_class="",
    device_selector="",
    node_labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
    tolerations=({"key": PLUGIN, "operator": "Exists", "effect": "NoSchedule"},),
    weight="1.0000",
    price_per_unit_hour="2.5000",
    image="quay.io/jupyter/minimal-notebook:2026-09-01",
    command=(),
    cpu=8,
    memory_gib=32,
    shared_memory_gib=8,
    claim="",
)


def job_of(place: Place, change: Change | None = None, **said: Any) -> Json:
    """Returns the Job as the worker builds it from the user's input, with `change` applied."""
    job = manifests.job(replace(PROBE, namespace=place.name, **said))
    job = copy.deepcopy(job)
    if change is not None:
        change(job["spec"]["template"])
    return job


def pod_of(job: Json) -> Json:
    """Returns the pod as the Job controller builds it, without its owner, because a dry run creates none."""
    template = job["spec"]["template"]
    metadata = {
        **template["metadata"],
        "name": f"{job['metadata']['name']}-abcde",
        "namespace": job["metadata"]["namespace"],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def try_out(api: Api, resource: str, body: Json) -> tuple[int, str]:
    path = path_of(resource, namespace=body["metadata"]["namespace"])
    status, data = api.raw("POST", path, body, params={"dryRun": "All"})
    return status, data.decode().replace('\\"', '"')


@pytest.mark.parametrize("name", FIELDS)
def test_the_cluster_refuses_it_from_everybody(place: Place, name: str) -> None:
    one = FIELDS[name]
    job = job_of(place, one.change)
    pod = pod_of(job)

    for nobody, what in ((place.tenant, "v1/pods"), (place.tenant, "batch/v1/jobs"), (place.worker, "v1/pods")):
        status, text = try_out(nobody, what, pod if what == "v1/pods" else job)
        assert (status, "cannot create resource" in text) == (403, True), text

    status, text = try_out(place.controller, "v1/pods", pod)
    assert status in (403, 422), text
    assert one.words in text, text
    if one.on_job:
        status, text = try_out(place.worker, "batch/v1/jobs", job)
        assert status == 422, text
        assert one.words in text, text


def test_what_the_portal_itself_makes_is_taken(place: Place) -> None:
    job = job_of(place)

    status, text = try_out(place.controller, "v1/pods", pod_of(job))
    assert status == 201, text
    status, text = try_out(place.worker, "batch/v1/jobs", job)
    assert status == 201, text


def test_a_container_that_is_put_into_a_pod_later_is_held_to_the_same(place: Place, admin: Api) -> None:
    pod = pod_of(job_of(place, spec(schedulingGates=[{"name": "kueue.x-k8s.io/topology"}])))
    admin.create(pod)
    path = path_of("v1/pods", pod["metadata"]["name"], namespace=place.name, subresource="ephemeralcontainers")

    def put(api: Api, **fields: Any) -> tuple[int, str]:
        late = {"name": "late", "image": "example.org/debug:1", "securityContext": manifests.NO_PRIVILEGES, **fields}
        body, kind = {"spec": {"ephemeralContainers": [late]}}, "application/strategic-merge-patch+json"
        status, data = api.raw("PATCH", path, body, params={"dryRun": "All"}, content_type=kind)
        return status, data.decode()

    assert put(admin)[0] == 200
    capable = {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}}}
    for fields, words in ((capable, "SYS_ADMIN"), ({"env": [{"name": "LD_PRELOAD", "value": "x"}]}, "LD_PRELOAD")):
        status, text = put(admin, **fields)
        assert status in (403, 422), text
        assert words in text
    for nobody in (place.tenant, place.worker):
        assert put(nobody)[0] == 403


# ---- several workers and priorities ------------------------------------------------------------------------------


GANG = {"kind": "job", "workload": "gang", "workers": 4, "units": 2, "retries": 3, "script": "torchrun train.py"}


def test_several_workers_pass_with_their_service_and_bring_no_other_field(place: Place) -> None:
    job = job_of(place, **GANG)
    # 409 while another process writes the ResourceQuota that counts it.
    wait_until(lambda: try_out(place.controller, "v1/pods", pod_of(job))[0] == 201)
    one = job_of(place, **{**GANG, "workers": 1})
    assert job["spec"]["template"]["spec"].keys() - one["spec"]["template"]["spec"].keys() == {"subdomain"}
    assert job["spec"].keys() - one["spec"].keys() == {"completionMode", "backoffLimitPerIndex", "maxFailedIndexes"}

    # The fence refuses dry runs of the worker, because they could be used to read.
    made = place.worker.create(job)
    service = workers.headless_service(
        replace(PROBE, namespace=place.name, workload="gang"), "gang-1", job_uid=made["metadata"]["uid"]
    )
    assert place.worker.create(service)["spec"]["clusterIP"] == "None"
    place.worker.delete("batch/v1/jobs", "gang-1", namespace=place.name)


def test_production_is_the_portals_to_give(place: Place, admin: Api) -> None:
    """Other identities may create and change Jobs in the namespace, but may not set production."""
    job = job_of(place, kind="job", workload="first", priority="production")
    code, text = try_out(admin, "batch/v1/jobs", job)
    assert (code, "only the portal may set production" in text) == (422, True)
    assert try_out(admin, "batch/v1/jobs", job_of(place, kind="job", priority="interactive"))[0] == 201

    place.worker.create(job)
    label = "kueue.x-k8s.io/priority-class"
    admin.patch("batch/v1/jobs", "first-1", {"spec": {"activeDeadlineSeconds": 60}}, namespace=place.name)
    place.worker.create(job_of(place, kind="job", workload="second"))
    with pytest.raises(ApiError, match="only the portal may set production"):
        admin.patch("batch/v1/jobs", "second-1", {"metadata": {"labels": {label: "production"}}}, namespace=place.name)
    for name in ("first-1", "second-1"):
        place.worker.delete("batch/v1/jobs", name, namespace=place.name)
