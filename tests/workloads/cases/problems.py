"""What can stand in the way of a run, written down before the code that explains it.

Each problem: the text as the cluster says it, what is expected of it, and a neighbour that looks alike and must differ.
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
TELL = "Tell the operators"


@dataclass(frozen=True)
class Problem:
    """`sentence` whole; `remedy` a part of it; `neighbour` the name of the one that must differ in its reason."""

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
        "Its units are assigned, but the namespace's quota gpu-portal is full: nvidia.com/gpu: 2 asked, 3 of 4 used.",
        "when a pod that is ending has gone",
        facts={"quota": "gpu-portal", "resource": "nvidia.com/gpu", "asked": 2, "used": 3, "limit": 4},
    ),
    Problem(
        "quota of cpu and memory full", "cpu over the limits",
        refused(
            f"{FORBIDDEN}exceeded quota: gpu-portal, requested: requests.cpu=16,requests.memory=64Gi, "
            "used: requests.cpu=50,requests.memory=214748364800, limited: requests.cpu=64,requests.memory=256Gi"
        ),
        "preparing", "quota_full",
        "Its units are assigned, but the namespace's quota gpu-portal is full: cpu: 16 cores asked, 50 of 64 used; "
        "memory: 64 GiB asked, 200 of 256 used.",
        "when a pod that is ending has gone",
        facts={"quota": "gpu-portal", "resource": "cpu", "asked": 16, "used": 50, "limit": 64},
    ),
    Problem(
        "quota too small", "quota full",
        refused(
            f"{FORBIDDEN}exceeded quota: gpu-portal, requested: requests.nvidia.com/gpu=8, "
            "used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=4"
        ),
        "blocked", "quota_too_small",
        "The namespace's quota gpu-portal can never take it: nvidia.com/gpu: 8 asked, 4 at most.",
        "Ask for less", (STOP, CHANGE),
        {"quota": "gpu-portal", "resource": "nvidia.com/gpu", "asked": 8, "limit": 4},
    ),
    Problem(
        "quota wants sizes", "quota full",
        refused(f"{FORBIDDEN}failed quota: gpu-portal: must specify limits.cpu for: clone; requests.memory for: clone"),
        "blocked", "quota_needs_sizes",
        "The namespace's quota gpu-portal wants sizes that its pod does not name: limits.cpu, requests.memory.",
        TELL,
    ),
    Problem(
        "quota not counted yet", "quota full",
        refused(f"{FORBIDDEN}status unknown for quota: gpu-portal, resources: requests.nvidia.com/gpu"),
        "preparing", "quota_starting",
        "The namespace's quota gpu-portal is not counted yet.", "tried again by itself",
    ),
    Problem(
        "cpu over the limits", "quota too small", refused(FORBIDDEN + LIMITS),
        "blocked", "limit_range",
        "The namespace's limits refuse its pod: cpu per container: 8 cores asked, 4 at most; memory per container: "
        "16 GiB asked, 8 at most.",
        "Ask for less cpu or memory", (STOP, CHANGE), {"resource": "cpu", "asked": 8, "limit": 4},
    ),
    Problem(
        "memory below the limits", "cpu over the limits",
        refused(f"{FORBIDDEN}minimum memory usage per Container is 1Gi, but request is 512Mi"),
        "blocked", "below_limit_range",
        "The namespace's limits refuse its pod: memory per container: 0.5 GiB asked, 1 at least.",
        "Ask for more", (STOP, CHANGE), {"resource": "memory", "asked": 0.5, "limit": 1},
    ),
    Problem(
        "Pod Security", "webhook says no", refused(FORBIDDEN + VIOLATES),
        "blocked", "pod_security",
        "The cluster's Pod Security rules (restricted) refuse its pod: allowPrivilegeEscalation != false, unrestricted "
        "capabilities, runAsNonRoot != true.",
        f"{TELL}; nothing that you chose can change it.",
    ),
    Problem(
        "webhook says no", "webhook does not answer",
        refused('admission webhook "images.example.org" denied the request: the image is not signed'),
        "blocked", "admission_denied",
        "The cluster's admission check images.example.org refuses its pod: the image is not signed.",
        "Change what it objects to", (STOP, CHANGE),
    ),
    Problem(
        "policy says no", "webhook does not answer",
        refused(
            f"{FORBIDDEN}ValidatingAdmissionPolicy 'tenant-pods' with binding 'tenant-pods' denied request: no nodeName"
        ),
        "blocked", "admission_denied", "The cluster's policy tenant-pods refuses its pod: no nodeName.",
        "Change what it objects to", (STOP, CHANGE),
    ),
    Problem(
        "webhook does not answer", "webhook says no",
        refused(
            'Internal error occurred: failed calling webhook "images.example.org": failed to call webhook: Post '
            '"https://images.policy.svc:443/check?timeout=10s": dial tcp 10.0.3.1:443: connect: connection refused'
        ),
        "preparing", "admission_unavailable",
        "The cluster's admission check images.example.org does not answer, and no pod is made without it.",
        "tried again by itself",
    ),
    Problem(
        "no service account", "Pod Security",
        refused(
            f"{FORBIDDEN}error looking up service account team-a/gpu-portal: serviceaccount \"gpu-portal\" not found"
        ),
        "preparing", "service_account", "The namespace lacks the service account gpu-portal for its pod.",
        "The portal repairs it",
    ),
    Problem(
        "namespace goes", "Pod Security",
        refused(f"{FORBIDDEN}unable to create new content in namespace team-a because it is being terminated"),
        "blocked", "namespace_ending", "Its namespace is being removed from the cluster.", TELL,
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
        "no card free", "no node of its kind",
        unplaced(
            "0/8 nodes are available: 3 Insufficient nvidia.com/gpu, 5 node(s) had untolerated taint(s)." + PREEMPTION
        ),
        "blocked", "no_node_fits",
        "Units are assigned, but none of the 8 nodes takes it now: 3 have too little nvidia.com/gpu free, 5 are kept "
        "for other work.",
        "when something ends on a fitting node", (STOP, CHANGE), {"nodes": 8},
    ),
    Problem(
        "no cpu and memory free", "no card free",
        unplaced("0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory."),
        "blocked", "no_cpu_or_memory",
        "Units are assigned, but none of the 2 nodes takes it now: 2 have too little memory free, 1 has too little cpu "
        "free.",
        "ask for less cpu or memory", (STOP, CHANGE), {"nodes": 2},
    ),
    Problem(
        "no node of its kind", "nodes closed",
        unplaced(
            "0/8 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, "
            "5 node(s) had untolerated taint {nvidia.com/gpu: present}."
        ),
        "blocked", "no_node_matches",
        "Units are assigned, but none of the 8 nodes is one for it: 5 are kept for other work, 3 are of another kind.",
        TELL, (STOP,), {"nodes": 8},
    ),
    Problem(
        "nodes closed", "no node of its kind",
        unplaced(
            "0/8 nodes are available: 2 node(s) were unschedulable, 6 node(s) didn't match Pod's node "
            "affinity/selector."
        ),
        "blocked", "nodes_closed",
        "Units are assigned, but none of the 8 nodes takes it now: 2 are closed for new work, 6 are of another kind.",
        "when a node is opened again", (STOP,), {"nodes": 8},
    ),
    Problem(
        "volume tied to other nodes", "volume not bound",
        unplaced(
            "0/8 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity, 6 node(s) didn't match "
            "Pod's node affinity/selector."
        ),
        "blocked", "volume_elsewhere",
        "Units are assigned, but none of the 8 nodes is one for it: 2 cannot reach its volume, 6 are of another kind.",
        "another volume", (STOP, CHANGE), {"nodes": 8}, has_volume=True,
    ),
    Problem(
        "volume not bound", "volume not there",
        unplaced("0/8 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
        "blocked", "volume_unbound", "Waits for its volume: the storage has not provided it yet.", TELL,
        has_volume=True,
    ),
    Problem(
        "volume not there", "volume not bound",
        unplaced('0/8 nodes are available: persistentvolumeclaim "data" not found.'),
        "blocked", "volume_missing", "Its volume data is not in the cluster.", "Choose another volume", (STOP, CHANGE),
        has_volume=True,
    ),
    Problem(
        "volume being deleted", "volume not bound",
        unplaced('0/8 nodes are available: persistentvolumeclaim "data" is being deleted. not found'),
        "blocked", "volume_missing", "Its volume data is being deleted in the cluster.", "Choose another volume",
        (STOP, CHANGE), has_volume=True,
    ),
    Problem(
        "port taken", "no card free",
        unplaced("0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."),
        "blocked", "port_taken",
        "Units are assigned, but none of the 2 nodes takes it now: 2 have its port in use.",
        "when the port is free", (STOP,), {"nodes": 2},
    ),
    Problem(
        "devices claimed", "no card free",
        unplaced("0/8 nodes are available: 8 cannot allocate all claims. still not schedulable, preemption: 0/8 ..."),
        "blocked", "devices_unavailable", "None of the 8 nodes can give it the devices that it claims right now.",
        "when devices are free", (STOP, CHANGE), {"nodes": 8},
    ),
    Problem(
        "no node at all", "no node of its kind", unplaced("no nodes available to schedule pods"),
        "blocked", "no_nodes", "The cluster has no node at the moment.", TELL,
    ),
]  # fmt: skip

# ---- on its node: image, volume, settings ----------------------------------------------------------------------------


def at_node(reason: str, message: str = "", **more: Any) -> Observation:
    return Observation(
        job(), ADMITTED, (pod(BOUND, state="waiting", reason=reason, message=message, node="a100-1", **more),)
    )


def cloning(state: str, **container: Any) -> Pod:
    """A pod whose first container, which clones the repository, is in that state; the other waits for it."""
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
        "There is no image minimal:1 in its registry; the node a100-1 tries again.",
        "Check its name and tag", (STOP, CHANGE), NODE,
    ),
    Problem(
        "image not given out", "image not found",
        pulled_in_vain(
            f"{RESOLVE}: pull access denied, repository does not exist or may require authorization: server message: "
            "insufficient_scope: authorization failed"
        ),
        "blocked", "image_not_allowed",
        "The registry does not give out the image minimal:1: it wants a sign-in, or has no such repository.",
        "Check its name", (STOP, CHANGE), NODE,
    ),
    Problem(
        "image not signed", "image not given out",
        at_node("SignatureValidationFailed", "Source image rejected: no matching signatures"),
        "blocked", "image_not_accepted",
        "The node a100-1 does not accept the image minimal:1: its signature is missing or wrong.",
        TELL, (STOP, CHANGE), NODE,
    ),
    Problem(
        "registry does not answer", "image not found",
        pulled_in_vain(f"{RESOLVE}: Head \"https://registry-1.docker.io/v2\": dial tcp 1.2.3.4:443: i/o timeout"),
        "blocked", "registry_unavailable",
        "The registry of the image minimal:1 does not answer the node a100-1, which tries again.",
        "It starts by itself", (STOP,), NODE,
    ),
    Problem(
        "registry's name unknown", "registry does not answer",
        pulled_in_vain(f"{RESOLVE}: dial tcp: lookup registry.exmaple.org: no such host"),
        "blocked", "registry_unknown",
        "The node a100-1 knows no registry registry.exmaple.org for the image minimal:1.",
        "Check its name", (STOP, CHANGE), NODE,
    ),
    Problem(
        "registry limits", "registry does not answer",
        pulled_in_vain(f"{RESOLVE}: unexpected status: 429 Too Many Requests - Server message: toomanyrequests"),
        "blocked", "registry_limit",
        "The registry of the image minimal:1 takes no more requests from the cluster for now; the node tries again.",
        "It starts by itself", (STOP,), NODE,
    ),
    Problem(
        "node's disk full", "image not found",
        pulled_in_vain("write /var/lib/containerd/ingest: no space left on device"),
        "blocked", "node_disk_full", "The node a100-1 has no room for the image minimal:1.", TELL, (STOP,), NODE,
    ),
    Problem(
        "image for other processors", "image not found",
        pulled_in_vain("no match for platform in manifest: not found"),
        "blocked", "image_wrong_platform",
        "The image minimal:1 is not made for the processor of the node a100-1.", "Choose another image",
        (STOP, CHANGE), NODE,
    ),
    Problem(
        "image's name is none", "image not found",
        at_node("InvalidImageName", 'Failed to apply default image tag "Minimal": invalid reference format'),
        "blocked", "bad_image_name", "minimal:1 is not a valid name of an image.",
        "Check its name", (STOP, CHANGE), NODE,
    ),
    Problem(
        "image for long", "image for a while",
        Observation(
            job(), ADMITTED,
            (pod(BOUND, IN_CLUSTER_SANDBOX, state="waiting", reason="ContainerCreating", node="a100-1"),),
        ),
        "preparing", "image_slow",
        "On a100-1: fetching its image since 21 Nov 2026, 11:53, for more than 5 minutes now.",
        "a large image takes long", (STOP,), NODE,
    ),
    Problem(
        "image for long that others have", "image for a while",
        Observation(
            job(), ADMITTED,
            (pod(BOUND, IN_CLUSTER_SANDBOX, state="waiting", reason="ContainerCreating", node="a100-1"),),
            image=ImagePresence(4300, frozenset({"a100-2", "a100-3", "a100-4"})),
        ),
        "preparing", "image_slow",
        "On a100-1: fetching its image (4.2 GiB) since 21 Nov 2026, 11:53, for more than 5 minutes now; 3 other nodes "
        "have it already.",
        "a large image takes long", (STOP,), {**NODE, "image_mib": 4300, "nodes_with_image": 3},
    ),
    Problem(
        "image for a while", "image for long",
        Observation(
            job(), ADMITTED, (pod(BOUND, SANDBOX_NOW, state="waiting", reason="ContainerCreating", node="a100-1"),)
        ),
        "preparing", "pulling", "On a100-1: fetching its image.", "", (STOP,), NODE,
    ),
    Problem(
        "volume on another node", "volume not mounted",
        told_of(
            "FailedAttachVolume", 'Multi-Attach error for volume "pvc-8f21" Volume is already used by pod(s) two-1-b'
        ),
        "blocked", "volume_in_use", "Its volume is still in use on another node, by two-1-b.",
        "Stop what uses it", (STOP,), NODE, has_volume=True,
    ),
    Problem(
        "volume attached to another node", "volume not attached",
        told_of(
            "FailedAttachVolume",
            'Multi-Attach error for volume "pvc-8f21" Volume is already exclusively attached to one node and can\'t be '
            "attached to another",
        ),
        "blocked", "volume_in_use", "Its volume is still attached to another node.",
        "let go", (STOP,), NODE, has_volume=True,
    ),
    Problem(
        "volume not attached", "volume not mounted",
        told_of(
            "FailedAttachVolume",
            'AttachVolume.Attach failed for volume "pvc-8f21" : rpc error: code = DeadlineExceeded desc = timed out',
        ),
        "blocked", "volume_not_attached", "The storage cannot attach its volume to the node a100-1.", TELL,
        (STOP,), NODE, has_volume=True,
    ),
    Problem(
        "volume not mounted", "volume not attached",
        told_of(
            "FailedMount", 'MountVolume.MountDevice failed for volume "pvc-8f21" : rpc error: code = Internal'
        ),
        "blocked", "volume_not_mounted", "The node a100-1 cannot mount its volume.", TELL, (STOP,), NODE,
        has_volume=True,
    ),
    Problem(
        "no network", "volume not mounted",
        told_of("FailedCreatePodSandBox", 'Failed to create pod sandbox: plugin type="cni" failed (add): no addresses'),
        "blocked", "pod_not_set_up", "The node a100-1 cannot set up its network.", TELL, (STOP,), NODE,
    ),
    Problem(
        "runs as root", "secret missing",
        at_node(
            "CreateContainerConfigError",
            'container has runAsNonRoot and image will run as root (pod: "one-1-x_team-a(1)", container: notebook)',
        ),
        "blocked", "image_runs_as_root", "The image minimal:1 wants to run as root, which this cluster never allows.",
        "Choose another image", (STOP, CHANGE), NODE,
    ),
    Problem(
        "secret missing", "key missing", at_node("CreateContainerConfigError", NO_SECRET),
        "blocked", "secret_missing", "The secret one-1 that its container needs is not in the cluster.",
        "The portal makes it", (STOP,), NODE,
    ),
    Problem(
        "worker without a key", "worker with another key", at_node("CreateContainerConfigError", NO_SECRET),
        "blocked", "no_worker_key",
        "The portal cannot open all of the 2 secrets that it was launched with: its worker has no key.",
        "Tell the operators; nothing that you chose is wrong. It starts by itself when the worker has its key.",
        facts={**NODE, "secrets": 2}, raw="The worker has no SECRETS_PRIVATE_KEY.",
        sealed=UnreadableSecrets("no_worker_key", "The worker has no SECRETS_PRIVATE_KEY.", 2),
    ),
    Problem(
        "worker with another key", "secret missing", at_node("CreateContainerConfigError", NO_SECRET),
        "blocked", "sealed_for_another_key",
        "The portal cannot open the secret that it was launched with: its worker has another key than sealed it.",
        "Put it again on your team's page Secrets, or tell the operators. Then it starts by itself.",
        facts={**NODE, "secrets": 1}, raw="It does not open MINE.",
        sealed=UnreadableSecrets("sealed_for_another_key", "It does not open MINE.", 1),
    ),
    Problem(
        "key missing", "secret missing",
        at_node("CreateContainerConfigError", "couldn't find key token in Secret team-a/one-1"),
        "blocked", "secret_incomplete", "The secret one-1 that its container needs lacks the key token.",
        "The portal puts it back", (STOP,), NODE,
    ),
    Problem(
        "container not set up", "key missing", at_node("CreateContainerConfigError", "cannot make subPath"),
        "blocked", "container_config", "The node a100-1 cannot set its container up: cannot make subPath.", TELL,
        (STOP,), NODE,
    ),
    Problem(
        "cloning", "clone failed", Observation(job(), ADMITTED, (cloning("running"),)),
        "preparing", "cloning", "On a100-1: cloning its repository.", "", (STOP, LOG), NODE,
    ),
    Problem(
        "image of the clone not found", "clone failed",
        Observation(job(), ADMITTED, (cloning("waiting", reason="ErrImagePull", message="x: not found"),)),
        "blocked", "image_not_found", "There is no image minimal:1 in its registry; the node a100-1 tries again.",
        "Check its name and tag", (STOP, CHANGE), NODE,
    ),
]  # fmt: skip

# ---- how a pod ends badly --------------------------------------------------------------------------------------------

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


AGAIN = "Kubernetes starts it again by itself."
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
        "crash", "host memory", ended(3), "failed", "crashed", "It ended with exit code 3.", "Its log says more",
        ENDED, {"exit_code": 3},
    ),
    Problem(
        "exit code 1", "GPU memory", ended(1), "failed", "crashed", "It ended with exit code 1.", "Its log says more",
        ENDED, {"exit_code": 1},
    ),
    Problem(
        "GPU memory", "host memory",
        ended(1, message="…\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 …"),
        "failed", "out_of_gpu_memory",
        "Its last lines say that the GPU's memory was full: CUDA out of memory. Tried to allocate 20.00 GiB.",
        "smaller batches", ENDED, {"exit_code": 1},
    ),
    Problem(
        "host memory", "killed", ended(137, "OOMKilled"), "failed", "out_of_memory",
        "It used more than its 16 GiB of host memory and was ended; this is not the GPU's memory.",
        "take more memory", (STOP, CHANGE, LOG), {"exit_code": 137, "memory_gib": 16},
    ),
    Problem(
        "killed", "host memory", ended(137), "failed", "killed",
        "It was killed (signal 9, exit code 137); by whom the cluster does not say.", "Its log", ENDED,
        {"exit_code": 137},
    ),
    Problem(
        "segmentation fault", "killed", ended(139), "failed", "crashed",
        "It crashed with a segmentation fault (signal 11, exit code 139).", "Its log", ENDED, {"exit_code": 139},
    ),
    Problem(
        "bus error", "segmentation fault", ended(135), "failed", "bus_error",
        "It crashed with a bus error (signal 7, exit code 135).", "/dev/shm", (STOP, CHANGE, LOG), {"exit_code": 135},
    ),
    Problem(
        "asked to end", "killed", ended(143), "failed", "terminated",
        "It was asked to end (signal 15, exit code 143) and did.", "Its log", ENDED, {"exit_code": 143},
    ),
    Problem(
        "command not found", "command not executable", ended(127), "failed", "command_not_found",
        "Its command was not found in the image (exit code 127).", "Check the command", (STOP, CHANGE, LOG),
        {"exit_code": 127},
    ),
    Problem(
        "start error", "crash",
        ended(
            128, "StartError",
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
            'failed: unable to start container process: exec: "trian.py": executable file not found in $PATH: unknown',
        ),
        "failed", "command_not_found", "Its command trian.py was not found in the image.", "Check the command",
        (STOP, CHANGE), {"exit_code": 128},
    ),
    Problem(
        "command not executable", "command not found", ended(126), "failed", "command_not_executable",
        "Its command is not a program that may be run (exit code 126).", "Check the command", (STOP, CHANGE, LOG),
        {"exit_code": 126},
    ),
    Problem(
        "device gone", "topology", rejected("UnexpectedAdmissionError", ALLOCATE), "preparing", "device_unavailable",
        f"The node a100-1 refused it: nvidia.com/gpu: 2 asked, 1 there. {AGAIN}", "operators", (STOP,),
        {**NODE, "resource": "nvidia.com/gpu", "asked": 2, "available": 1},
    ),
    Problem(
        "topology", "device gone",
        rejected("TopologyAffinityError", "Pod was rejected: Resources cannot be allocated with Topology locality"),
        "preparing", "topology_refused",
        f"The node a100-1 refused it: it cannot give its cards and cores close to each other. {AGAIN}", "Fewer",
        (STOP, CHANGE), NODE,
    ),
    Problem(
        "no cpu at the node", "device gone",
        rejected(
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 8000, used: 62000, capacity: 64000",
        ),
        "preparing", "node_full", f"The node a100-1 refused it: cpu: 8 cores asked, 62 of 64 used. {AGAIN}",
        "operators", (STOP,), {**NODE, "resource": "cpu", "asked": 8, "used": 62, "limit": 64},
    ),
    Problem(
        "no card at the node", "device gone",
        rejected(
            "OutOfnvidia.com/gpu",
            "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 2, used: 7, capacity: 8",
        ),
        "preparing", "node_full", f"The node a100-1 refused it: nvidia.com/gpu: 2 asked, 7 of 8 used. {AGAIN}",
        "operators", (STOP,), {**NODE, "resource": "nvidia.com/gpu", "asked": 2, "used": 7, "limit": 8},
    ),
    Problem(
        "node changed its labels", "node shuts down",
        rejected("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node"),
        "preparing", "node_changed", f"The node a100-1 refused it: its labels have changed. {AGAIN}", "operators",
        (STOP,), NODE,
    ),
    Problem(
        "node low on memory", "host memory", disrupted("TerminationByKubelet", LOW, pod_reason="Evicted"),
        "preparing", "evicted",
        "The node a100-1 ran low on memory (52 MiB left) and ended it: it used 12 GiB, 8 GiB were promised. "
        + AGAIN, "not saved", (STOP,), NODE,
    ),
    Problem(
        "node low on disk", "own files too large",
        disrupted(
            "TerminationByKubelet",
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. ",
            pod_reason="Evicted",
        ),
        "preparing", "evicted", f"The node a100-1 ran low on disk space (9 GiB left) and ended it. {AGAIN}",
        "not saved", (STOP,), NODE,
    ),
    Problem(
        "own files too large", "node low on disk",
        disrupted(
            "TerminationByKubelet", 'Usage of EmptyDir volume "shared-memory" exceeds the limit "2Gi". ',
            pod_reason="Evicted",
        ),
        "preparing", "too_many_files",
        f"It wrote more to /dev/shm than its 2 GiB, and the node a100-1 ended it. {AGAIN}", "Write less",
        (STOP, CHANGE), NODE,
    ),
    Problem(
        "node shuts down", "node low on memory",
        disrupted(
            "TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.", pod_reason="Terminated"
        ),
        "preparing", "node_shutdown", f"The node a100-1 was shut down. {AGAIN}", "not saved", (STOP,), NODE,
    ),
    Problem(
        "node gone", "node shuts down",
        disrupted("DeletionByPodGC", "PodGC: node no longer exists"), "preparing", "node_lost",
        f"The node a100-1 is no longer in the cluster. {AGAIN}", "not saved", (STOP,), NODE,
    ),
    Problem(
        "node emptied", "node gone",
        disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), "preparing", "drained",
        f"The node a100-1 is being emptied. {AGAIN}", "not saved", (STOP,), NODE,
    ),
    Problem(
        "pushed off its node", "preempted in the queue",
        disrupted(
            "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"
        ),
        "preparing", "preempted_on_node", f"More important work took its place on the node a100-1. {AGAIN}",
        "not saved", (STOP,), NODE,
    ),
    Problem(
        "clone failed", "crash", failed_clone(128), "failed", "clone_failed",
        "Its repository could not be cloned (git's exit code 128).", "log of the clone", (STOP, LOG, CHANGE),
        {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "no such repository", "private repository",
        failed_clone(128, "Cloning into './.a.part'...\nfatal: repository 'https://git.example.org/a.git/' not found"),
        "failed", "repository_not_found", "There is no repository https://git.example.org/a.git.", "Check its address",
        (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "private repository", "no such repository",
        failed_clone(128, "fatal: could not read Username for 'https://git.example.org': terminal prompts disabled"),
        "failed", "repository_private",
        "Its repository wants a sign-in at https://git.example.org, or does not exist there.", "public",
        (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "git host unknown", "no such repository",
        failed_clone(128, "fatal: unable to access 'https://git.exmaple.org/a/': Could not resolve host: exmaple.org"),
        "failed", "repository_unreachable", "Its repository cannot be reached: Could not resolve host: exmaple.org.",
        "Check its address", (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "no such branch", "no such repository",
        failed_clone(128, "warning: Could not find remote branch v9 to clone.\nfatal: Remote branch v9 not found in "
        "upstream origin"),
        "failed", "reference_not_found", "Its repository has no branch or tag v9.", "Check its name",
        (STOP, CHANGE, LOG), {"exit_code": 128, "container": "clone"},
    ),
    Problem(
        "no git in the image", "clone failed", failed_clone(127, "sh: 1: git: not found"), "failed", "no_git",
        "Its image has no git to clone its repository with.", "Choose another image", (STOP, CHANGE, LOG),
        {"exit_code": 127, "container": "clone"},
    ),
    Problem(
        "clone out of memory", "host memory",
        Observation(
            job(), ADMITTED,
            (replace(cloning("terminated", reason="OOMKilled", exit_code=137), phase="Failed", requests=MEMORY),),
        ),
        "failed", "clone_out_of_memory",
        "Cloning its repository used more host memory than its 16 GiB and was ended.", "take more memory",
        (STOP, CHANGE, LOG), {"exit_code": 137, "container": "clone", "memory_gib": 16},
    ),
]  # fmt: skip

# ---- in the queue, and nodes that are silent -------------------------------------------------------------------------


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
        "Interrupted: its units were borrowed, and the team that they belong to needed them. Waits in your team's "
        "queue.",
        "It starts again by itself", raw="Preempted to accommodate a workload due to reclamation within the cohort",
    ),
    Problem(
        "preempted by the team", "preempted in the queue", preempted("prioritization in the ClusterQueue"),
        "queued", "preempted_in_team",
        "Interrupted: more important work of your team needed its units. Waits in your team's queue.",
        "It starts again by itself",
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
        "The namespace's limits refuse its pod: more cpu and memory asked than one container may have.",
        "Ask for less", (STOP, CHANGE),
    ),
    Problem(
        "node silent", "node not ready",
        Observation(
            job(), ADMITTED, (RUNNING_POD,), lost=NodeTrouble("a100-1", AGO, "NodeStatusUnknown", "Kubelet stopped")
        ),
        "unknown", "node_lost",
        "Its node a100-1 is not heard of any more; how it does there is not known.",
        "answers again or is taken out of the cluster", (STOP,), NODE, raw="NodeStatusUnknown: Kubelet stopped",
    ),
    Problem(
        "node not ready", "node silent",
        Observation(
            job(), ADMITTED, (RUNNING_POD,),
            lost=NodeTrouble("a100-1", AGO, "KubeletNotReady", "container runtime is down"),
        ),
        "unknown", "node_not_ready",
        "Its node a100-1 is not ready: container runtime is down.",
        "Tell the operators", (STOP,), NODE, raw="KubeletNotReady: container runtime is down",
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
        "Kubernetes gave up its node a100-1, which is not heard of any more; another pod can only start when the node "
        "answers again or is taken out of the cluster.",
        TELL, (STOP,), NODE,
    ),
]  # fmt: skip

PROBLEMS = [*REFUSED_PODS, *UNSCHEDULABLE_PODS, *STARTING, *ENDINGS, *OTHERS]
__all__ = ["JUST", "NOW", "PROBLEMS", "WISH", "Problem"]
