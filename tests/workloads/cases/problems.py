"""The problems that can block a run, written before the code that explains them.

Each problem has the text of the cluster, the expected result, and a similar neighbour whose result must differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from cluster.reads.observed import Container, Pod
from tests.workloads.cases.cluster_objects import (
    ADMITTED,
    AGO,
    BOUND,
    JUST,
    NOW,
    SUSPENDED,
    UNSCHEDULABLE,
    WISH,
    condition,
    job,
    pending,
    pod,
    queue,
    warning,
)
from workloads.core.observation import ImagePresence, NodeTrouble, Observation
from workloads.status.explain.container_start import UnreadableSecrets

STOP, CHANGE, LOG, START, DELETE = "stop", "change", "log", "start", "delete"
TELL = "Contact an operator"


@dataclass(frozen=True)
class Problem:
    """`sentence` is complete; `remedy` is a part; `neighbour` is the name of the problem whose reason must differ."""

    name: str
    neighbour: str
    seen: Observation
    phase: str
    reason: str
    sentence: str
    remedy: str
    actions: tuple[str, ...] = (STOP,)
    facts: dict[str, Any] = field(default_factory=dict)
    raw: str = ""
    has_volume: bool = False
    sealed: UnreadableSecrets | None = None


# ---- the pod is refused: event FailedCreate of the Job ---------------------------------------------------------------


def refused(text: str) -> Observation:
    return Observation(job(), ADMITTED, warnings=(warning("Job", "FailedCreate", f"Error creating: {text}"),))


FORBIDDEN = 'pods "one-1-x7k2p" is forbidden: '
LIMITS = (
    "[maximum cpu usage per Container is 4, but limit is 8, "
    "maximum memory usage per Container is 8Gi, but limit is 16Gi]"
)
VIOLATES = (
    'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "notebook" must set '
    'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "notebook" must set '
    'securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "notebook" must set '
    "securityContext.runAsNonRoot=true)"
)

REFUSED_PODS = [
    Problem(
        "quota full", "quota too small",
        refused(
            f"{FORBIDDEN}exceeded quota: gpu-portal, requested: requests.nvidia.com/gpu=2, "
            "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
        ),
        "preparing", "quota_full",
        "Admitted, but the namespace's ResourceQuota gpu-portal is full: nvidia.com/gpu: 2 requested, 3 of 4 used.",
        "when a terminating pod is gone",
        facts={"quota": "gpu-portal", "resource": "nvidia.com/gpu", "asked": 2, "used": 3, "limit": 4},
    ),
    Problem(
        "quota of cpu and memory full", "cpu over the limits",
        refused(
            f"{FORBIDDEN}exceeded quota: gpu-portal, requested: requests.cpu=16,requests.memory=64Gi, "
            "used: requests.cpu=50,requests.memory=214748364800, limited: requests.cpu=64,requests.memory=256Gi"
        ),
        "preparing", "quota_full",
        "Admitted, but the namespace's ResourceQuota gpu-portal is full: cpu: 16 cores requested, 50 of 64 used; "
        "memory: 64 GiB requested, 200 of 256 used.",
        "when a terminating pod is gone",
        facts={"quota": "gpu-portal", "resource": "cpu", "asked": 16, "used": 50, "limit": 64},
    ),
    Problem(
        "quota too small", "quota full",
        refused(
            f"{FORBIDDEN}exceeded quota: gpu-portal, requested: requests.nvidia.com/gpu=8, "
            "used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=4"
        ),
        "blocked", "quota_too_small",
        "The request exceeds the namespace's ResourceQuota gpu-portal: nvidia.com/gpu: 8 requested, limit 4.",
        "Request less", (STOP, CHANGE),
        {"quota": "gpu-portal", "resource": "nvidia.com/gpu", "asked": 8, "limit": 4},
    ),
    Problem(
        "quota wants sizes", "quota full",
        refused(f"{FORBIDDEN}failed quota: gpu-portal: must specify limits.cpu for: clone; requests.memory for: clone"),
        "blocked", "quota_needs_sizes",
        "The namespace's ResourceQuota gpu-portal requires values that the pod does not set: limits.cpu, "
        "requests.memory.",
        TELL,
    ),
    Problem(
        "quota not counted yet", "quota full",
        refused(f"{FORBIDDEN}status unknown for quota: gpu-portal, resources: requests.nvidia.com/gpu"),
        "preparing", "quota_starting",
        "The usage of the namespace's ResourceQuota gpu-portal is not known yet.", "retried automatically",
    ),
    Problem(
        "cpu over the limits", "quota too small", refused(FORBIDDEN + LIMITS),
        "blocked", "limit_range",
        "The namespace's LimitRange rejects the pod: cpu per container: 8 cores requested, maximum 4; memory per "
        "container: 16 GiB requested, maximum 8.",
        "Request less cpu or memory", (STOP, CHANGE), {"resource": "cpu", "asked": 8, "limit": 4},
    ),
    Problem(
        "GPUs over the limits", "memory below the limits",
        refused(f"{FORBIDDEN}maximum nvidia.com/gpu usage per Container is 1, but limit is 2"),
        "blocked", "limit_range",
        "The namespace's LimitRange rejects the pod: nvidia.com/gpu per container: 2 requested, maximum 1.",
        "Request fewer units", (STOP, CHANGE), {"resource": "nvidia.com/gpu", "asked": 2, "limit": 1},
    ),
    Problem(
        "memory below the limits", "cpu over the limits",
        refused(f"{FORBIDDEN}minimum memory usage per Container is 1Gi, but request is 512Mi"),
        "blocked", "below_limit_range",
        "The namespace's LimitRange rejects the pod: memory per container: 0.5 GiB requested, minimum 1.",
        "Request more", (STOP, CHANGE), {"resource": "memory", "asked": 0.5, "limit": 1},
    ),
    Problem(
        "Pod Security", "webhook says no", refused(FORBIDDEN + VIOLATES),
        "blocked", "pod_security",
        "The cluster's Pod Security rules (restricted) reject the pod: allowPrivilegeEscalation != false, "
        "unrestricted capabilities, runAsNonRoot != true.",
        "Contact an operator. Your settings are not the cause.",
    ),
    Problem(
        "webhook says no", "webhook does not answer",
        refused('admission webhook "images.example.org" denied the request: the image is not signed'),
        "blocked", "image_not_accepted",
        "The cluster's admission webhook images.example.org denied the image of the pod: the image is not signed.",
        "Choose an image that it allows", (STOP, CHANGE),
    ),
    Problem(
        "policy says no", "webhook does not answer",
        refused(
            f"{FORBIDDEN}ValidatingAdmissionPolicy 'tenant-pods' with binding 'tenant-pods' denied request: no nodeName"
        ),
        "blocked", "admission_denied", "The cluster's admission policy tenant-pods denied the pod: no nodeName.",
        "Change the setting that is denied", (STOP, CHANGE),
    ),
    Problem(
        "webhook does not answer", "webhook says no",
        refused(
            'Internal error occurred: failed calling webhook "images.example.org": failed to call webhook: Post '
            '"https://images.policy.svc:443/check?timeout=10s": dial tcp 10.0.3.1:443: connect: connection refused'
        ),
        "preparing", "admission_unavailable",
        "The cluster's admission webhook images.example.org does not respond, and no pod is created without it.",
        "retried automatically",
    ),
    Problem(
        "no service account", "Pod Security",
        refused(
            f"{FORBIDDEN}error looking up service account team-a/gpu-portal: serviceaccount \"gpu-portal\" not found"
        ),
        "preparing", "service_account", "The namespace has no service account gpu-portal for the pod.",
        "the portal restores it",
    ),
    Problem(
        "namespace goes", "Pod Security",
        refused(f"{FORBIDDEN}unable to create new content in namespace team-a because it is being terminated"),
        "blocked", "namespace_ending",
        "Your team's namespace is being deleted from the cluster; nothing starts in it.", TELL,
    ),
]  # fmt: skip

# ---- unschedulable ---------------------------------------------------------------------------------------------------


def unplaced(text: str) -> Observation:
    return Observation(job(), ADMITTED, (pod(replace(UNSCHEDULABLE, message=text)),))


PREEMPTION = (
    " preemption: 0/8 nodes are available: 3 No preemption victims found for incoming pod, 5 Preemption is not helpful "
    "for scheduling."
)

UNSCHEDULABLE_PODS = [
    Problem(
        "no GPU free", "no node of its kind",
        unplaced(
            "0/8 nodes are available: 3 Insufficient nvidia.com/gpu, 5 node(s) had untolerated taint(s)." + PREEMPTION
        ),
        "blocked", "no_node_fits",
        "Admitted, but none of the 8 nodes is available: 3 have too little nvidia.com/gpu free, 5 are reserved for "
        "other workloads.",
        "when a workload on a matching node ends", (STOP, CHANGE), {"nodes": 8},
    ),
    Problem(
        "no cpu and memory free", "no GPU free",
        unplaced("0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory."),
        "blocked", "no_cpu_or_memory",
        "Admitted, but none of the 2 nodes is available: 2 have too little memory free, 1 has too little cpu free.",
        "request less cpu or memory", (STOP, CHANGE), {"nodes": 2},
    ),
    Problem(
        "no node of its kind", "nodes closed",
        unplaced(
            "0/8 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, "
            "5 node(s) had untolerated taint {nvidia.com/gpu: present}."
        ),
        "blocked", "no_node_matches",
        "Admitted, but none of the 8 nodes matches: 5 are reserved for other workloads (taint "
        "nvidia.com/gpu=present), 3 do not match the class.",
        TELL, (STOP,), {"nodes": 8},
    ),
    Problem(
        "nodes closed", "no node of its kind",
        unplaced(
            "0/8 nodes are available: 2 node(s) were unschedulable, 6 node(s) didn't match Pod's node "
            "affinity/selector."
        ),
        "blocked", "nodes_closed",
        "Admitted, but none of the 8 nodes is available: 2 are cordoned, 6 do not match the class.",
        "when a node is uncordoned", (STOP,), {"nodes": 8},
    ),
    Problem(
        "volume tied to other nodes", "volume not bound",
        unplaced(
            "0/8 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity, 6 node(s) didn't match "
            "Pod's node affinity/selector."
        ),
        "blocked", "volume_elsewhere",
        "Admitted, but none of the 8 nodes matches: 2 cannot access the volume, 6 do not match the class.",
        "another volume", (STOP, CHANGE), {"nodes": 8}, has_volume=True,
    ),
    Problem(
        "volume not bound", "volume not there",
        unplaced("0/8 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
        "blocked", "volume_unbound", "Waiting for the volume: the storage system has not provisioned it yet.", TELL,
        has_volume=True,
    ),
    Problem(
        "volume not there", "volume not bound",
        unplaced('0/8 nodes are available: persistentvolumeclaim "data" not found.'),
        "blocked", "volume_missing", "The volume data does not exist in the cluster.", "Choose another volume",
        (STOP, CHANGE), has_volume=True,
    ),
    Problem(
        "volume being deleted", "volume not bound",
        unplaced('0/8 nodes are available: persistentvolumeclaim "data" is being deleted. not found'),
        "blocked", "volume_missing", "The volume data is being deleted in the cluster.", "Choose another volume",
        (STOP, CHANGE), has_volume=True,
    ),
    Problem(
        "port taken", "no GPU free",
        unplaced("0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."),
        "blocked", "port_taken",
        "Admitted, but none of the 2 nodes is available: 2 have the port in use.",
        "when the port is free", (STOP,), {"nodes": 2},
    ),
    Problem(
        "devices claimed", "no GPU free",
        unplaced("0/8 nodes are available: 8 cannot allocate all claims. still not schedulable, preemption: 0/8 ..."),
        "blocked", "devices_unavailable", "None of the 8 nodes has the requested devices free.",
        "when devices are free", (STOP, CHANGE), {"nodes": 8},
    ),
    Problem(
        "no node at all", "no node of its kind", unplaced("no nodes available to schedule pods"),
        "blocked", "no_nodes", "The cluster has no nodes.", TELL,
    ),
]  # fmt: skip

# ---- pods that wait on their node: image, volume, settings -----------------------------------------------------------


def at_node(reason: str, message: str = "", **more: Any) -> Observation:
    return Observation(
        job(), ADMITTED, (pod(BOUND, state="waiting", reason=reason, message=message, node="a100-1", **more),)
    )


def cloning(state: str, **container: Any) -> Pod:
    """A pod whose first container, which clones the repository, is in that state; the other container waits for it."""
    values: dict[str, Any] = {
        "name": "clone", "ready": False, "restarts": 0, "state": state, "reason": "", "message": "", "since": AGO,
        "exit_code": None, "ended_at": None, "last_reason": "", "last_exit_code": None,
    }  # fmt: skip
    waits = pod(BOUND, state="waiting", reason="PodInitializing", node="a100-1", since=None)
    return replace(waits, init_containers=(Container(**values | container),))


def pulled_in_vain(error: str) -> Observation:
    text = f'Back-off pulling image "minimal:1": ErrImagePull: failed to pull and unpack image "x": {error}'
    return at_node("ImagePullBackOff", text)


NO_SECRET = 'secret "one-1" not found'
RESOLVE = 'failed to resolve reference "docker.io/library/minimal:1"'
NODE = {"node": "a100-1"}
# Of the catalog, in which only operators can correct a name.
OTHER_IMAGE = "Choose another image, and contact an operator"
IN_CLUSTER_SANDBOX = condition("PodReadyToStartContainers", since=NOW - timedelta(minutes=7))
SANDBOX_NOW = condition("PodReadyToStartContainers", since=NOW - timedelta(minutes=2))


def told_of(kind: str, text: str) -> Observation:
    seen = at_node("ContainerCreating")
    return replace(seen, warnings=(warning("Pod", kind, text),))


STARTING = [
    Problem(
        "image not found", "image not given out",
        pulled_in_vain(f"{RESOLVE}: docker.io/library/minimal:1: not found"),
        "blocked", "image_not_found",
        "The image minimal:1 was not found in its registry; node a100-1 retries.",
        OTHER_IMAGE, (STOP, CHANGE), NODE,
    ),
    Problem(
        "image not given out", "image not found",
        pulled_in_vain(
            f"{RESOLVE}: pull access denied, repository does not exist or may require authorization: server message: "
            "insufficient_scope: authorization failed"
        ),
        "blocked", "image_not_allowed",
        "The registry denied access to the image minimal:1: it requires authentication, or the repository does not "
        "exist.",
        OTHER_IMAGE, (STOP, CHANGE), NODE,
    ),
    Problem(
        "image not signed", "image not given out",
        at_node("SignatureValidationFailed", "Source image rejected: no matching signatures"),
        "blocked", "image_not_accepted",
        "Node a100-1 rejected the image minimal:1: its signature is missing or invalid.",
        TELL, (STOP, CHANGE), NODE,
    ),
    Problem(
        "registry does not answer", "image not found",
        pulled_in_vain(f"{RESOLVE}: Head \"https://registry-1.docker.io/v2\": dial tcp 1.2.3.4:443: i/o timeout"),
        "blocked", "registry_unavailable",
        "The registry of the image minimal:1 does not respond to node a100-1, which retries.",
        "It starts automatically", (STOP,), NODE,
    ),
    Problem(
        "registry's name unknown", "registry does not answer",
        pulled_in_vain(f"{RESOLVE}: dial tcp: lookup registry.exmaple.org: no such host"),
        "blocked", "registry_unknown",
        "Node a100-1 cannot find the registry registry.exmaple.org of the image minimal:1.",
        OTHER_IMAGE, (STOP, CHANGE), NODE,
    ),
    Problem(
        "registry limits", "registry does not answer",
        pulled_in_vain(f"{RESOLVE}: unexpected status: 429 Too Many Requests - Server message: toomanyrequests"),
        "blocked", "registry_limit",
        "The registry of the image minimal:1 rate-limits pulls from the cluster; node a100-1 retries.",
        "It starts automatically", (STOP,), NODE,
    ),
    Problem(
        "node's disk full", "image not found",
        pulled_in_vain("write /var/lib/containerd/ingest: no space left on device"),
        "blocked", "node_disk_full", "Node a100-1 has no disk space for the image minimal:1.", TELL, (STOP,), NODE,
    ),
    Problem(
        "image for other processors", "image not found",
        pulled_in_vain("no match for platform in manifest: not found"),
        "blocked", "image_wrong_platform",
        "The image minimal:1 is not built for the CPU architecture of node a100-1.", "Choose another image",
        (STOP, CHANGE), NODE,
    ),
    Problem(
        "image's name is none", "image not found",
        at_node("InvalidImageName", 'Failed to apply default image tag "Minimal": invalid reference format'),
        "blocked", "bad_image_name", "minimal:1 is not a valid image name.",
        OTHER_IMAGE, (STOP, CHANGE), NODE,
    ),
    Problem(
        "image for long", "image for a while",
        Observation(
            job(), ADMITTED,
            (pod(BOUND, IN_CLUSTER_SANDBOX, state="waiting", reason="ContainerCreating", node="a100-1"),),
        ),
        "preparing", "image_slow",
        "On a100-1: pulling the image since 21 Nov 2026, 11:53, for more than 5 minutes.",
        "a large image on a node can take several minutes", (STOP,), NODE,
    ),
    Problem(
        "image for long that others have", "image for a while",
        Observation(
            job(), ADMITTED,
            (pod(BOUND, IN_CLUSTER_SANDBOX, state="waiting", reason="ContainerCreating", node="a100-1"),),
            image=ImagePresence(4300, frozenset({"a100-2", "a100-3", "a100-4"})),
        ),
        "preparing", "image_slow",
        "On a100-1: pulling the image (4.2 GiB) since 21 Nov 2026, 11:53, for more than 5 minutes; 3 other nodes "
        "already have it.",
        "a large image on a node can take several minutes", (STOP,), {**NODE, "image_mib": 4300, "nodes_with_image": 3},
    ),
    Problem(
        "image for a while", "image for long",
        Observation(
            job(), ADMITTED, (pod(BOUND, SANDBOX_NOW, state="waiting", reason="ContainerCreating", node="a100-1"),)
        ),
        "preparing", "pulling", "On a100-1: pulling the image.", "", (STOP,), NODE,
    ),
    Problem(
        "volume on another node", "volume not mounted",
        told_of(
            "FailedAttachVolume", 'Multi-Attach error for volume "pvc-8f21" Volume is already used by pod(s) two-1-b'
        ),
        "blocked", "volume_in_use", "The volume data is still in use on another node, by two-1-b.",
        "Stop the workload that uses it", (STOP,), NODE, has_volume=True,
    ),
    Problem(
        "volume attached to another node", "volume not attached",
        told_of(
            "FailedAttachVolume",
            'Multi-Attach error for volume "pvc-8f21" Volume is already exclusively attached to one node and can\'t be '
            "attached to another",
        ),
        "blocked", "volume_in_use", "The volume data is still attached to another node.",
        "has detached the volume", (STOP,), NODE, has_volume=True,
    ),
    Problem(
        "volume not attached", "volume not mounted",
        told_of(
            "FailedAttachVolume",
            'AttachVolume.Attach failed for volume "pvc-8f21" : rpc error: code = DeadlineExceeded desc = timed out',
        ),
        "blocked", "volume_not_attached", "The storage system cannot attach the volume data (pvc-8f21) to node a100-1.",
        TELL, (STOP,), NODE, has_volume=True,
    ),
    Problem(
        "volume not mounted", "volume not attached",
        told_of(
            "FailedMount", 'MountVolume.MountDevice failed for volume "pvc-8f21" : rpc error: code = Internal'
        ),
        "blocked", "volume_not_mounted", "Node a100-1 cannot mount the volume data (pvc-8f21).", TELL, (STOP,), NODE,
        has_volume=True,
    ),
    Problem(
        "no network", "volume not mounted",
        told_of("FailedCreatePodSandBox", 'Failed to create pod sandbox: plugin type="cni" failed (add): no addresses'),
        "blocked", "pod_not_set_up", "Node a100-1 cannot set up the pod's network.", TELL, (STOP,), NODE,
    ),
    Problem(
        "runs as root", "secret missing",
        at_node(
            "CreateContainerConfigError",
            'container has runAsNonRoot and image will run as root (pod: "one-1-x_team-a(1)", container: notebook)',
        ),
        "blocked", "image_runs_as_root", "The image minimal:1 runs as root, which this cluster does not allow.",
        "Choose another image", (STOP, CHANGE), NODE,
    ),
    Problem(
        "secret missing", "key missing", at_node("CreateContainerConfigError", NO_SECRET),
        "blocked", "secret_missing", "The secret one-1 that the container needs does not exist in the cluster.",
        "the portal creates it", (STOP,), NODE,
    ),
    Problem(
        "worker without a key", "worker with another key", at_node("CreateContainerConfigError", NO_SECRET),
        "blocked", "no_worker_key",
        "The portal cannot decrypt one or more of the 2 secrets of this run: its worker has no key.",
        "Contact an operator. Your settings are not the cause. It starts automatically when the worker has its key.",
        facts={**NODE, "secrets": 2}, raw="The worker has no SECRETS_PRIVATE_KEY.",
        sealed=UnreadableSecrets("no_worker_key", "The worker has no SECRETS_PRIVATE_KEY.", 2),
    ),
    Problem(
        "worker with another key", "secret missing", at_node("CreateContainerConfigError", NO_SECRET),
        "blocked", "sealed_for_another_key",
        "The portal cannot decrypt the secret of this run: its worker has a different key.",
        "Save it again on your team's page Secrets, or contact an operator. Then it starts automatically.",
        facts={**NODE, "secrets": 1}, raw="It does not open MINE.",
        sealed=UnreadableSecrets("sealed_for_another_key", "It does not open MINE.", 1),
    ),
    Problem(
        "key missing", "secret missing",
        at_node("CreateContainerConfigError", "couldn't find key token in Secret team-a/one-1"),
        "blocked", "secret_incomplete", "The secret one-1 that the container needs has no key token.",
        "the portal restores it", (STOP,), NODE,
    ),
    Problem(
        "container not set up", "key missing", at_node("CreateContainerConfigError", "cannot make subPath"),
        "blocked", "container_config", "Node a100-1 cannot create the container: cannot make subPath.", TELL,
        (STOP,), NODE,
    ),
    Problem(
        "cloning", "clone failed", Observation(job(), ADMITTED, (cloning("running"),)),
        "preparing", "cloning", "On a100-1: cloning the repository.", "", (STOP, LOG), NODE,
    ),
    Problem(
        "image of the clone not found", "clone failed",
        Observation(job(), ADMITTED, (cloning("waiting", reason="ErrImagePull", message="x: not found"),)),
        "blocked", "image_not_found", "The image minimal:1 was not found in its registry; node a100-1 retries.",
        OTHER_IMAGE, (STOP, CHANGE), NODE,
    ),
]  # fmt: skip

# ---- failed pods -----------------------------------------------------------------------------------------------------

MEMORY = {"memory": 16 * 2**30, "nvidia.com/gpu": 2}


def ended(exit_code: int, reason: str = "Error", message: str = "", **more: Any) -> Observation:
    over = pod(
        BOUND, state="terminated", reason=reason, message=message, exit_code=exit_code, phase="Failed", node="a100-1",
        requests=MEMORY,
    )  # fmt: skip
    return Observation(job(), ADMITTED, (replace(over, **more),))


def rejected(reason: str, message: str) -> Observation:
    return Observation(
        job(), ADMITTED, (pod(BOUND, phase="Failed", node="a100-1", pod_reason=reason, pod_message=message),)
    )  # fmt: skip


def disrupted(why: str, message: str, *, pod_reason: str = "") -> Observation:
    over = ended(137).pods[0]
    target = condition("DisruptionTarget", reason=why, message=message)
    changed = replace(over, conditions=(*over.conditions, target), reason=pod_reason, message=message)
    return Observation(job(), ADMITTED, (changed,))


def failed_clone(exit_code: int, message: str = "") -> Observation:
    over = replace(cloning("terminated", reason="Error", exit_code=exit_code, message=message), phase="Failed")
    return Observation(job(), ADMITTED, (over,))


AGAIN = "Kubernetes restarts it automatically."
ALLOCATE = (
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
    "Requested: 2, Available: 1, which is unexpected"
)
LOW = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. Container notebook was using "
    "12Gi, request is 8Gi, has larger consumption of memory. "
)
ENDED = (STOP, LOG, CHANGE)

ENDINGS = [
    Problem(
        "crash", "host memory", ended(3), "failed", "crashed", "It ended with exit code 3.", "See the log",
        ENDED, {"exit_code": 3},
    ),
    Problem(
        "exit code 1", "GPU memory", ended(1), "failed", "crashed", "It ended with exit code 1.", "See the log",
        ENDED, {"exit_code": 1},
    ),
    Problem(
        "GPU memory", "host memory",
        ended(1, message="…\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 …"),
        "failed", "out_of_gpu_memory",
        "Its last log lines report that GPU memory was full: CUDA out of memory. Tried to allocate 20.00 GiB.",
        "smaller batches", ENDED, {"exit_code": 1},
    ),
    Problem(
        "host memory", "killed", ended(137, "OOMKilled"), "failed", "out_of_memory",
        "It exceeded its host memory limit of 16 GiB and was killed (OOMKilled). This is not GPU memory.",
        "request more memory", (STOP, CHANGE, LOG), {"exit_code": 137, "memory_gib": 16},
    ),
    Problem(
        "killed", "host memory", ended(137), "failed", "killed",
        "It was killed (signal 9, exit code 137); the cluster reports no cause.", "See the log", ENDED,
        {"exit_code": 137},
    ),
    Problem(
        "segmentation fault", "killed", ended(139), "failed", "crashed",
        "It crashed with a segmentation fault (signal 11, exit code 139).", "See the log", ENDED, {"exit_code": 139},
    ),
    Problem(
        "bus error", "segmentation fault", ended(135), "failed", "bus_error",
        "It crashed with a bus error (signal 7, exit code 135).", "/dev/shm", (STOP, CHANGE, LOG), {"exit_code": 135},
    ),
    Problem(
        "asked to end", "killed", ended(143), "failed", "terminated",
        "It was terminated (signal 15, exit code 143).", "See the log", ENDED, {"exit_code": 143},
    ),
    Problem(
        "command not found", "command not executable", ended(127), "failed", "command_not_found",
        "The command was not found in the image (exit code 127).", "Check the command", (STOP, CHANGE, LOG),
        {"exit_code": 127},
    ),
    Problem(
        "start error", "crash",
        ended(
            128, "StartError",
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
            'failed: unable to start container process: exec: "trian.py": executable file not found in $PATH: unknown',
        ),
        "failed", "command_not_found", "The command trian.py was not found in the image.", "Check the command",
        (STOP, CHANGE), {"exit_code": 128},
    ),
    Problem(
        "command not executable", "command not found", ended(126), "failed", "command_not_executable",
        "The command is not executable (exit code 126).", "Check the command", (STOP, CHANGE, LOG),
        {"exit_code": 126},
    ),
    Problem(
        "device gone", "topology", rejected("UnexpectedAdmissionError", ALLOCATE), "preparing", "device_unavailable",
        f"Node a100-1 rejected the pod: nvidia.com/gpu: 2 requested, 1 available. {AGAIN}", "contact an operator",
        (STOP,), {**NODE, "resource": "nvidia.com/gpu", "asked": 2, "available": 1},
    ),
    Problem(
        "topology", "device gone",
        rejected("TopologyAffinityError", "Pod was rejected: Resources cannot be allocated with Topology locality"),
        "preparing", "topology_refused",
        f"Node a100-1 rejected the pod: its GPUs and cores are not available on the same NUMA node. {AGAIN}", "Fewer",
        (STOP, CHANGE), NODE,
    ),
    Problem(
        "no cpu at the node", "device gone",
        rejected(
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 8000, used: 62000, capacity: 64000",
        ),
        "preparing", "node_full", f"Node a100-1 rejected the pod: cpu: 8 cores requested, 62 of 64 used. {AGAIN}",
        "contact an operator", (STOP,), {**NODE, "resource": "cpu", "asked": 8, "used": 62, "limit": 64},
    ),
    Problem(
        "no GPU at the node", "device gone",
        rejected(
            "OutOfnvidia.com/gpu",
            "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 2, used: 7, capacity: 8",
        ),
        "preparing", "node_full", f"Node a100-1 rejected the pod: nvidia.com/gpu: 2 requested, 7 of 8 used. {AGAIN}",
        "contact an operator", (STOP,), {**NODE, "resource": "nvidia.com/gpu", "asked": 2, "used": 7, "limit": 8},
    ),
    Problem(
        "node changed its labels", "node shuts down",
        rejected("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node"),
        "preparing", "node_changed", f"Node a100-1 rejected the pod: the labels of the node have changed. {AGAIN}",
        "contact an operator", (STOP,), NODE,
    ),
    Problem(
        "node low on memory", "host memory", disrupted("TerminationByKubelet", LOW, pod_reason="Evicted"),
        "preparing", "evicted",
        f"Node a100-1 ran low on memory (52 MiB left) and evicted it: it used 12 GiB, 8 GiB were requested. {AGAIN}",
        "Unsaved work is lost", (STOP,), NODE,
    ),
    Problem(
        "node low on disk", "own files too large",
        disrupted(
            "TerminationByKubelet",
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. ",
            pod_reason="Evicted",
        ),
        "preparing", "evicted", f"Node a100-1 ran low on disk space (9 GiB left) and evicted it. {AGAIN}",
        "Unsaved work is lost", (STOP,), NODE,
    ),
    Problem(
        "own files too large", "node low on disk",
        disrupted(
            "TerminationByKubelet", 'Usage of EmptyDir volume "shared-memory" exceeds the limit "2Gi". ',
            pod_reason="Evicted",
        ),
        "preparing", "too_many_files",
        f"It wrote more than 2 GiB to /dev/shm, and node a100-1 evicted it. {AGAIN}", "Write less",
        (STOP, CHANGE), {**NODE, "resource": "shared-memory"},
    ),
    Problem(
        "node shuts down", "node low on memory",
        disrupted(
            "TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.", pod_reason="Terminated"
        ),
        "preparing", "node_shutdown", f"Node a100-1 was shut down. {AGAIN}", "Unsaved work is lost", (STOP,), NODE,
    ),
    Problem(
        "node gone", "node shuts down",
        disrupted("DeletionByPodGC", "PodGC: node no longer exists"), "preparing", "node_lost",
        f"Node a100-1 is no longer in the cluster. {AGAIN}", "Unsaved work is lost", (STOP,), NODE,
    ),
    Problem(
        "node emptied", "node gone",
        disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), "preparing", "drained",
        f"It was evicted from node a100-1, as when a node is drained. {AGAIN}", "Unsaved work is lost", (STOP,), NODE,
    ),
    Problem(
        "pushed off its node", "preempted in the queue",
        disrupted(
            "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"
        ),
        "preparing", "preempted_on_node", f"A pod with a higher priority preempted it on node a100-1. {AGAIN}",
        "Unsaved work is lost", (STOP,), NODE,
    ),
    Problem(
        "clone failed", "crash", failed_clone(128), "failed", "clone_failed",
        "The repository could not be cloned (git exit code 128).", "log of the clone", (STOP, LOG, CHANGE),
        {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "no such repository", "private repository",
        failed_clone(128, "Cloning into './.a.part'...\nfatal: repository 'https://git.example.org/a.git/' not found"),
        "failed", "repository_not_found", "The repository https://git.example.org/a.git does not exist.", "Check the "
        "address of the repository",
        (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "private repository", "no such repository",
        failed_clone(128, "fatal: could not read Username for 'https://git.example.org': terminal prompts disabled"),
        "failed", "repository_private",
        "The repository requires authentication at https://git.example.org, or does not exist there.", "public",
        (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "git host unknown", "no such repository",
        failed_clone(128, "fatal: unable to access 'https://git.exmaple.org/a/': Could not resolve host: exmaple.org"),
        "failed", "repository_unreachable", "The repository is not reachable: Could not resolve host: exmaple.org.",
        "Check its address", (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "no such branch", "no such repository",
        failed_clone(128, "warning: Could not find remote branch v9 to clone.\nfatal: Remote branch v9 not found in "
        "upstream origin"),
        "failed", "reference_not_found", "The repository has no branch or tag v9.", "Check the name of the branch "
        "or tag",
        (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "no git in the image", "clone failed", failed_clone(127, "sh: 1: git: not found"), "failed", "no_git",
        "The image has no git to clone the repository.", "Choose another image", (STOP, CHANGE, LOG),
        {"exit_code": 127, "container": "clone"},
    ),
    Problem(
        "clone out of memory", "host memory",
        Observation(
            job(), ADMITTED,
            (replace(cloning("terminated", reason="OOMKilled", exit_code=137), phase="Failed", requests=MEMORY),),
        ),
        "failed", "clone_out_of_memory",
        "Cloning the repository exceeded its host memory limit of 16 GiB and was killed (OOMKilled).",
        "request more memory", (STOP, CHANGE, LOG), {"exit_code": 137, "container": "clone", "memory_gib": 16},
    ),
]  # fmt: skip

# ---- queued workloads, and nodes that do not respond -----------------------------------------------------------------


def preempted(why: str) -> Observation:
    text = f"Preempted to accommodate a workload (UID: 1, JobUID: 2) due to {why}; preemptor path: /gpu-portal/team-b; "
    text += "preemptee path: /gpu-portal/team-a"
    return Observation(
        SUSPENDED,
        queue(
            condition("QuotaReserved", true=False, message=""),
            condition("Preempted", reason="x", message=text),
            condition("Evicted", reason="Preempted", message=text),
            preemptions=1,
        ),
    )


RUNNING_POD = pod(BOUND, state="running", node="a100-1", phase="Running")

OTHERS = [
    Problem(
        "preempted in the queue", "preempted by the team", preempted("reclamation within the cohort"),
        "queued", "preempted",
        "Preempted: its borrowed units were reclaimed by the lending team. Waiting in your team's queue.",
        "It restarts automatically", raw="Preempted to accommodate a workload due to reclamation within the cohort",
    ),
    Problem(
        "preempted by the team", "preempted in the queue", preempted("prioritization in the ClusterQueue"),
        "queued", "preempted_in_team",
        "Preempted: a workload of your team with a higher priority needed its units. Waiting in your team's queue.",
        "It restarts automatically",
    ),
    Problem(
        "limits seen by Kueue", "preempted in the queue",
        Observation(
            SUSPENDED,
            pending(
                "resources didn't satisfy LimitRange constraints: podSets[0].template.spec.containers[0]: Invalid "
                'value: ["cpu","memory"]: requests must not be above the limitRange max'
            ),
        ),
        "blocked", "limit_range",
        "The namespace's LimitRange rejects the pod: cpu and memory requested above the maximum for one container.",
        "Request less", (STOP, CHANGE),
    ),
    Problem(
        "node silent", "node not ready",
        Observation(
            job(), ADMITTED, (RUNNING_POD,), lost=NodeTrouble("a100-1", AGO, "NodeStatusUnknown", "Kubelet stopped")
        ),
        "unknown", "node_lost",
        "Node a100-1 no longer responds; the state of the run is unknown.",
        "responds again or is removed from the cluster", (STOP,), NODE, raw="NodeStatusUnknown: Kubelet stopped",
    ),
    Problem(
        "node not ready", "node silent",
        Observation(
            job(), ADMITTED, (RUNNING_POD,),
            lost=NodeTrouble("a100-1", AGO, "KubeletNotReady", "container runtime is down"),
        ),
        "unknown", "node_not_ready",
        "Node a100-1 is not ready: container runtime is down.",
        "Contact an operator", (STOP,), NODE, raw="KubeletNotReady: container runtime is down",
    ),
    Problem(
        "node given up", "node silent",
        Observation(
            job(), ADMITTED,
            (
                replace(
                    RUNNING_POD, deleting_since=JUST,
                    conditions=(
                        BOUND,
                        condition(
                            "DisruptionTarget", reason="DeletionByTaintManager",
                            message="Taint manager: deleting due to NoExecute taint",
                        ),
                    ),
                ),
            ),
            lost=NodeTrouble("a100-1", AGO, "NodeStatusUnknown", "Kubelet stopped"),
        ),
        "unknown", "node_given_up",
        "Its pod cannot be removed from node a100-1, which no longer responds; another pod can only start when the "
        "node responds again or is removed from the cluster.",
        TELL, (STOP,), NODE,
    ),
]  # fmt: skip

PROBLEMS = [*REFUSED_PODS, *UNSCHEDULABLE_PODS, *STARTING, *ENDINGS, *OTHERS]
__all__ = ["JUST", "NOW", "PROBLEMS", "WISH", "Problem"]
