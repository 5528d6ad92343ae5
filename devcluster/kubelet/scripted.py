"""A scripted kubelet: writes any status and event of pods on simulated nodes, when a test says so.

    kubelet = ScriptedKubelet(admin)
    with kubelet.claim("team-a", labels={"gpu-portal/workload": "7"}):
        pod = kubelet.bound("team-a", labels="gpu-portal/workload=7")
        kubelet.pull_error(pod)
        kubelet.running(pod, ready=True)
        kubelet.oom_killed(pod)

Claimed pods get the annotation `devcluster/scripted: "true"` before they run on a node, so kwok and the notebook runner
ignore them until the claim ends. In a claim of a whole namespace they get it when they are bound; the portal's fence
(the admission policy for pods) does not check this. In a claim with labels they get it when they are created; this is
for namespaces without the fence.

A claimed pod that is deleted becomes Failed (exit code 137) and is then removed, except with `stuck=True` or
`is_silent=True`. Messages are those of kubelet 1.36.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from devcluster.client.annotations import LOST, SCRIPTED, SIMULATED
from devcluster.client.kube import STRATEGIC, Api, ApiError
from devcluster.client.list_watch import ListWatch
from devcluster.client.types import Json
from devcluster.kubelet import claims, pod_status

POD_IP = "127.0.0.1"

Script = Callable[["ScriptedKubelet", Json], None]


@dataclass
class PodClaim:
    """A claim of the pods in a namespace, or only of those with `labels`. It lasts as long as the `with` block."""

    namespace: str
    labels: dict[str, str] = field(default_factory=dict)
    script: Script | None = None
    stuck: bool = False  # deleted pods stay Terminating, as on a node that does not respond
    is_silent: bool = False  # deleted pods are removed without an exit code, which could fail their Job

    @property
    def selector(self) -> str:
        return claims.selector_of(self.labels)


class ScriptedKubelet:
    def __init__(self, api: Api) -> None:
        self.api = api

    @contextmanager
    def claim(
        self,
        namespace: str,
        *,
        labels: dict[str, str] | None = None,
        script: Script | None = None,
        stuck: bool = False,
        is_silent: bool = False,
    ) -> Iterator[PodClaim]:
        """Claims pods. `script(kubelet, pod)` runs for each of them when it is bound, in a thread of its own."""
        claim = PodClaim(namespace, labels or {}, script, stuck, is_silent)
        policy = claims.bind(self.api, claim.namespace, claim.labels)
        pods = ListWatch(self.api, "v1/pods", namespace=namespace, labels=claim.selector)
        thread = threading.Thread(target=self._follow, args=(claim, pods), daemon=True)
        thread.start()
        try:
            yield claim
        finally:
            claims.unbind(self.api, policy)
            self.unstick(claim)
            self._give_back(claim)
            pods.stop()
            thread.join()

    def unstick(self, claim: PodClaim) -> None:
        """Ends `stuck`: removes the pods that were deleted, and from now on each pod when it is deleted."""
        claim.stuck = False
        for pod in self.api.list("v1/pods", namespace=claim.namespace, labels=claim.selector):
            self._finish_deleted(claim, pod)

    def bound(self, namespace: str, *, labels: str = "", timeout_s: float = 20.0) -> Json:
        """Returns the newest pod that is bound to a node and neither finished nor terminating. Raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = [
                pod
                for pod in self.api.list("v1/pods", namespace=namespace, labels=labels)
                if pod["spec"].get("nodeName")
                and "deletionTimestamp" not in pod["metadata"]
                and pod["status"]["phase"] not in ("Succeeded", "Failed")
            ]
            if found:
                return max(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
            time.sleep(0.05)
        raise TimeoutError(f"No pod {labels} in {namespace} was bound to a node within {timeout_s:.0f} s.")

    # starting

    def creating(self, pod: Json, message: str = "") -> Json:
        return self._tell(pod, pod_status.waiting("ContainerCreating", message))

    def pulling(self, pod: Json) -> Json:
        """Volumes and network are ready, and the image is being pulled."""
        self.event(pod, "Pulling", f'Pulling image "{pod["spec"]["containers"][0]["image"]}"')
        return self._tell(pod, pod_status.waiting("ContainerCreating"), sandbox=True)

    def pull_error(self, pod: Json, error: str = "") -> Json:
        """`error`: the message of the registry or the container runtime. By default: the repository does not exist, or
        access is denied.
        """
        image = pod["spec"]["containers"][0]["image"]
        error = error or pod_status.pull_error(image)
        self.event(pod, "Pulling", f'Pulling image "{image}"')
        self.event(pod, "Failed", f'Failed to pull image "{image}": {error}', kind="Warning")
        self.event(pod, "Failed", "Error: ErrImagePull", kind="Warning")
        return self._tell(pod, pod_status.waiting("ErrImagePull", error))

    def pull_backoff(self, pod: Json) -> Json:
        image = pod["spec"]["containers"][0]["image"]
        text = f'Back-off pulling image "{image}"'
        self.event(pod, "BackOff", text)
        self.event(pod, "Failed", "Error: ImagePullBackOff", kind="Warning")
        error = pod_status.pull_error(image)
        return self._tell(pod, pod_status.waiting("ImagePullBackOff", f"{text}: ErrImagePull: {error}"))

    def config_error(self, pod: Json, message: str) -> Json:
        """For example with the message `secret "token" not found`."""
        self.event(pod, "Failed", f"Error: {message}", kind="Warning")
        return self._tell(pod, pod_status.waiting("CreateContainerConfigError", message))

    def attach_error(self, pod: Json, message: str) -> Json:
        """An error of attaching a volume, for example Multi-Attach. In a cluster the attach/detach controller records
        it.
        """
        self.event(pod, "FailedAttachVolume", message, kind="Warning", container=False)
        return self._tell(pod, pod_status.waiting("ContainerCreating"))

    def mount_error(self, pod: Json, message: str) -> Json:
        self.event(pod, "FailedMount", message, kind="Warning", container=False)
        return self._tell(pod, pod_status.waiting("ContainerCreating"))

    def running(self, pod: Json, *, ready: bool = True, pod_ip: str = POD_IP) -> Json:
        name, image = pod["spec"]["containers"][0]["name"], pod["spec"]["containers"][0]["image"]
        self.event(pod, "Pulled", f'Container image "{image}" already present on machine')
        self.event(pod, "Created", f"Created container: {name}")
        self.event(pod, "Started", f"Started container {name}")
        return self._tell(pod, pod_status.running(pod_status.now()), ready=ready, pod_ip=pod_ip)

    def initializing(self, pod: Json) -> Json:
        """The first init container runs."""
        first, *others = (container["name"] for container in pod["spec"]["initContainers"])
        init = {first: pod_status.running(pod_status.now())} | dict.fromkeys(
            others, pod_status.waiting("PodInitializing")
        )
        return self._tell(pod, pod_status.waiting("PodInitializing"), init=init)

    def init_failed(self, pod: Json, code: int, message: str = "") -> Json:
        first, *others = (container["name"] for container in pod["spec"]["initContainers"])
        init = {first: pod_status.terminated(code, message=message)}
        init |= dict.fromkeys(others, pod_status.waiting("PodInitializing"))
        return self._tell(pod, pod_status.waiting("PodInitializing"), init=init)

    def unready(self, pod: Json, message: str = "HTTP probe failed with statuscode: 503") -> Json:
        self.event(pod, "Unhealthy", f"Readiness probe failed: {message}", kind="Warning")
        return self._tell(pod, pod_status.running(pod_status.now()), ready=False)

    # ending

    def exited(self, pod: Json, code: int, *, reason: str = "", message: str = "") -> Json:
        """The container ended. `message`: its termination message."""
        return self._tell(pod, pod_status.terminated(code, reason=reason, message=message))

    def oom_killed(self, pod: Json) -> Json:
        return self._tell(pod, pod_status.terminated(137, reason="OOMKilled"))

    def crash_loop(self, pod: Json, *, code: int = 1, restarts: int = 3, backoff: str = "40s") -> Json:
        """The container ended and waits for its next restart (restartPolicy Always or OnFailure)."""
        meta, name = pod["metadata"], pod["spec"]["containers"][0]["name"]
        what = f"restarting failed container={name} pod={meta['name']}_{meta['namespace']}({meta['uid']})"
        short = f"Back-off restarting failed container {name} in pod {meta['name']}_{meta['namespace']}({meta['uid']})"
        self.event(pod, "BackOff", short, kind="Warning")
        state = pod_status.waiting("CrashLoopBackOff", f"back-off {backoff} {what}")
        return self._tell(pod, state, restarts=restarts, last_state=pod_status.terminated(code))

    def rejected(self, pod: Json, reason: str, message: str) -> Json:
        """The kubelet rejects the pod at admission: no container is ever created."""
        self.event(pod, reason, message, kind="Warning", container=False)
        return pod_status.report(self.api, pod, pod_status.refused(reason, f"Pod was rejected: {message}"))

    def unexpected_admission(self, pod: Json, resource: str = "nvidia.com/gpu", *, asked: int = 1) -> Json:
        text = (
            f"Allocate failed due to requested number of devices unavailable for {resource}. "
            f"Requested: {asked}, Available: 0, which is unexpected"
        )
        return self.rejected(pod, "UnexpectedAdmissionError", text)

    def topology_affinity(self, pod: Json) -> Json:
        text = "Resources cannot be allocated with Topology locality"
        return self.rejected(pod, "TopologyAffinityError", text)

    def out_of(self, pod: Json, resource: str = "nvidia.com/gpu", *, asked: int = 1, capacity: int = 4) -> Json:
        numbers = f"requested: {asked}, used: {capacity}, capacity: {capacity}"
        return self.rejected(pod, f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {numbers}")

    def evicted(self, pod: Json, resource: str = "memory") -> Json:
        text = f"The node was low on resource: {resource}. Threshold quantity: 100Mi, available: 52Mi. "
        self.event(pod, "Evicted", text, kind="Warning", container=False)
        return self._disrupted(pod, "Evicted", text)

    def node_shutdown(self, pod: Json) -> Json:
        return self._disrupted(pod, "Terminated", "Pod was terminated in response to imminent node shutdown.")

    def deleted(self, pod: Json, *, code: int = 137) -> None:
        """Ends a pod that is being deleted: its container terminates, then the object is removed."""
        if pod["status"]["phase"] not in ("Succeeded", "Failed"):
            self.event(pod, "Killing", f"Stopping container {pod['spec']['containers'][0]['name']}")
            self._tell(pod, pod_status.terminated(code))
        pod_status.remove(self.api, pod)

    # nodes

    def node_lost(self, node: str) -> None:
        """The node stops responding: kwok no longer updates it, and its conditions become Unknown. The control plane
        then reacts. Only for a test's own nodes.
        """
        self.api.patch("v1/nodes", node, {"metadata": {"annotations": {SIMULATED: LOST}}})
        text = "Kubelet stopped posting node status."
        kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
        unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": text}
        times = {"lastTransitionTime": pod_status.now()}
        conditions = [{"type": kind, **unknown, **times} for kind in kinds]
        body = {"status": {"conditions": conditions}}
        self.api.patch("v1/nodes", node, body, subresource="status", content_type=STRATEGIC)

    def node_unready(self, node: str, message: str) -> None:
        """The node responds, and reports that it cannot run pods. Only for a test's own nodes."""
        self.api.patch("v1/nodes", node, {"metadata": {"annotations": {SIMULATED: LOST}}})
        ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message}
        body = {"status": {"conditions": [ready | {"lastTransitionTime": pod_status.now()}]}}
        self.api.patch("v1/nodes", node, body, subresource="status", content_type=STRATEGIC)

    def node_back(self, node: str) -> None:
        self.api.patch("v1/nodes", node, {"metadata": {"annotations": {SIMULATED: "fake"}}})

    # anything else

    def event(self, pod: Json, reason: str, message: str, *, kind: str = "Normal", container: bool = True) -> None:
        pod_status.event(self.api, pod, reason, message, kind=kind, container=container)

    def status(self, pod: Json, status: Json) -> Json:
        """Writes any status, as a strategic merge patch."""
        return pod_status.report(self.api, pod, status)

    def _tell(
        self,
        pod: Json,
        state: Json,
        *,
        ready: bool = False,
        pod_ip: str = "",
        restarts: int = 0,
        last_state: Json | None = None,
        init: dict[str, Json] | None = None,
        sandbox: bool = False,
    ) -> Json:
        meta = pod["metadata"]
        now = self.api.get("v1/pods", meta["name"], namespace=meta["namespace"])  # with its startTime and conditions
        status = pod_status.status(
            now,
            state,
            ready=ready,
            pod_ip=pod_ip,
            restarts=restarts,
            last_state=last_state,
            init=init,
            sandbox=sandbox,
        )
        return pod_status.report(self.api, pod, status)

    def _disrupted(self, pod: Json, reason: str, message: str) -> Json:
        status = pod_status.status(pod, pod_status.terminated(137), reason=reason, message=message)
        status["conditions"].append(pod_status.disruption("TerminationByKubelet", message))
        return pod_status.report(self.api, pod, status)

    def _follow(self, claim: PodClaim, pods: ListWatch) -> None:
        begun: set[str] = set()
        for kind, pod in pods:
            if kind == "DELETED" or not pod["spec"].get("nodeName"):
                continue
            if "deletionTimestamp" in pod["metadata"]:
                self._finish_deleted(claim, pod)
            elif claim.script is not None and pod["metadata"]["uid"] not in begun:
                begun.add(pod["metadata"]["uid"])
                threading.Thread(target=_play, args=(self, claim.script, pod), daemon=True).start()

    def _give_back(self, claim: PodClaim) -> None:
        """Removes the annotation, so that kwok and the notebook runner handle the pods again. Otherwise nothing would
        end them, and their namespace could not be deleted.
        """
        for pod in self.api.list("v1/pods", namespace=claim.namespace, labels=claim.selector):
            body = {"metadata": {"annotations": {SCRIPTED: None}}}
            with suppress(ApiError):  # it no longer exists
                self.api.patch("v1/pods", pod["metadata"]["name"], body, namespace=claim.namespace)

    def _finish_deleted(self, claim: PodClaim, pod: Json) -> None:
        ours = pod["metadata"].get("annotations", {}).get(SCRIPTED) == "true"
        if ours and "deletionTimestamp" in pod["metadata"] and not claim.stuck:
            with suppress(ApiError):  # it no longer exists
                if claim.is_silent:
                    pod_status.remove(self.api, pod)
                else:
                    self.deleted(pod)


# scripts


def runs(kubelet: ScriptedKubelet, pod: Json) -> None:
    kubelet.creating(pod)
    kubelet.running(pod)


def ends(code: int, *, after_s: float = 0.2) -> Script:
    def script(kubelet: ScriptedKubelet, pod: Json) -> None:
        runs(kubelet, pod)
        time.sleep(after_s)
        kubelet.exited(pod, code)

    return script


def starts_slowly(seconds: float) -> Script:
    def script(kubelet: ScriptedKubelet, pod: Json) -> None:
        kubelet.creating(pod)
        time.sleep(seconds)
        kubelet.running(pod)

    return script


def _play(kubelet: ScriptedKubelet, script: Script, pod: Json) -> None:
    try:
        script(kubelet, pod)
    except ApiError as error:
        # Not an error: the pod was deleted, or the claim ended, while the script ran.
        if error.status not in (404, 409) and pod_status.OVER not in str(error):
            raise
