"""Pod statuses and events as a kubelet writes them, for the notebook runner and the scripted kubelet."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from devcluster.client.kube import STRATEGIC, Api, ApiError
from devcluster.client.types import Json

NODE_ADDRESS = "127.0.0.1"
# The API server's message when a container that has ended for good is started again.
OVER = "may not be transitioned to non-terminated state"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# what a container may be doing


def waiting(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def running(started_at: str) -> Json:
    return {"running": {"startedAt": started_at}}


def terminated(exit_code: int, *, reason: str = "", message: str = "", started_at: str = "", signal: int = 0) -> Json:
    """`reason` defaults to the kubelet's reason for that exit code."""
    state: Json = {"exitCode": exit_code, "reason": reason or ("Completed" if exit_code == 0 else "Error")}
    state |= {"startedAt": started_at or now(), "finishedAt": now()}
    return {"terminated": state | ({"message": message} if message else {}) | ({"signal": signal} if signal else {})}


# what the pod's status says of it


def status(
    pod: Json,
    state: Json,
    *,
    ready: bool = False,
    pod_ip: str = "",
    restarts: int = 0,
    last_state: Json | None = None,
    reason: str = "",
    message: str = "",
    init: dict[str, Json] | None = None,
    sandbox: bool = False,
) -> Json:
    """Returns the status of a bound pod whose containers are all in `state`.

    The phase follows from the state: terminated means Succeeded or Failed, for good (restartPolicy is ignored: a
    container that will restart is `waiting` with `last_state`). `reason` and `message` are the pod's own. `init`:
    states of init containers by name; if omitted, those before a waiting container wait for the same thing, and those
    before any other container are done. `sandbox`: volumes and network are ready although nothing runs.
    """
    names = [container["name"] for container in pod["spec"].get("initContainers", ())]
    if names and init is None:
        init = {name: terminated(0) for name in names}
        if "waiting" in state and last_state is None:
            init = {names[0]: state} | {name: waiting("PodInitializing") for name in names[1:]}
            state = waiting("PodInitializing")
    init = init or {}
    failed = next((one for one in init.values() if one.get("terminated", {}).get("exitCode")), None)
    ended = state.get("terminated") or (failed or {}).get("terminated")
    phase = "Pending" if "waiting" in state else "Running"
    if ended is not None:
        phase = "Succeeded" if ended["exitCode"] == 0 else "Failed"
    if "waiting" in state and last_state is not None:
        phase = "Running"  # it has run: a kubelet never sets it back to Pending
    images = {c["name"]: c.get("image", "") for c in pod["spec"]["containers"]}
    found: Json = {
        "phase": phase,
        "conditions": _conditions(
            pod, phase=phase, ready=ready, sandbox=sandbox or _is_set_up([state, *init.values()]), todo=_todo(init)
        ),
        "hostIP": NODE_ADDRESS,
        "hostIPs": [{"ip": NODE_ADDRESS}],
        "startTime": pod.get("status", {}).get("startTime") or now(),
        "containerStatuses": [
            {
                "name": name,
                "image": image,
                "imageID": "" if "waiting" in state and last_state is None else _image_id(image),
                "ready": ready,
                "started": "running" in state,
                "restartCount": restarts,
                "state": state,
                "lastState": last_state or {},
            }
            for name, image in images.items()
        ],
    }
    if names:
        specs = {container["name"]: container for container in pod["spec"]["initContainers"]}
        found["initContainerStatuses"] = [
            {
                "name": name,
                "image": specs[name].get("image", ""),
                "imageID": "" if "waiting" in init[name] else _image_id(specs[name].get("image", "")),
                "ready": init[name].get("terminated", {}).get("exitCode") == 0,
                "started": "running" in init[name],
                "restartCount": 0,
                "state": init[name],
                "lastState": {},
            }
            for name in names
        ]
    if pod_ip:
        found |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}, {"$patch": "replace"}]}  # else merged by address
    return found | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def refused(reason: str, message: str) -> Json:
    """The kubelet refuses to run the pod: Failed at once, no container ever existed."""
    return {"phase": "Failed", "reason": reason, "message": message, "startTime": now()}


def pull_error(image: str) -> str:
    """containerd's message about an image that the registry does not provide."""
    repository = image.partition("@")[0]
    where = repository if "." in repository.partition("/")[0] else f"docker.io/{repository}"
    return (
        f'failed to pull and unpack image "{where}": failed to resolve reference "{where}": pull access denied, '
        "repository does not exist or may require authorization: server message: insufficient_scope: "
        "authorization failed"
    )


def disruption(reason: str, message: str) -> Json:
    """The condition that tells a Job's failure policy that the pod did not cause the failure."""
    return _condition("DisruptionTarget", holds=True, reason=reason, message=message)


# Applies to a container whose pod has its volumes and its network.
_AFTER_SANDBOX = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "CrashLoopBackOff",
)


def _is_set_up(states: list[Json]) -> bool:
    return any("running" in one or one.get("waiting", {}).get("reason") in _AFTER_SANDBOX for one in states)


def _todo(init: dict[str, Json]) -> list[str]:
    return [name for name, state in init.items() if state.get("terminated", {}).get("exitCode") != 0]


def _conditions(pod: Json, *, phase: str, ready: bool, sandbox: bool, todo: list[str]) -> list[Json]:
    """All conditions except PodScheduled, which the scheduler sets. A condition that did not change keeps its time."""
    why = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
    names = " ".join(c["name"] for c in pod["spec"]["containers"])
    text = "" if phase in ("Succeeded", "Failed") else f"containers with unready status: [{names}]"
    blame = {} if ready else {"reason": why, "message": text}
    fresh = [
        _condition("PodReadyToStartContainers", holds=phase in ("Pending", "Running") and sandbox),
        _condition("Initialized", holds=True, reason="PodCompleted" if phase == "Succeeded" else "")
        if not todo
        else _condition(
            "Initialized",
            holds=False,
            reason="ContainersNotInitialized",
            message=f"containers with incomplete status: [{' '.join(todo)}]",
        ),
        _condition("ContainersReady", holds=ready, **blame),
        _condition("Ready", holds=ready, **blame),
    ]
    before = {c["type"]: c for c in pod.get("status", {}).get("conditions", ())}
    for condition in fresh:
        old = before.get(condition["type"], {})
        if old.get("status") == condition["status"]:
            condition["lastTransitionTime"] = old["lastTransitionTime"]
    return fresh


def _condition(kind: str, *, holds: bool, reason: str = "", message: str = "") -> Json:
    # None, not absent: a strategic merge would otherwise keep the old text.
    text = {"reason": reason or None, "message": message or None}
    return {"type": kind, "status": str(holds), "lastProbeTime": None, "lastTransitionTime": now(), **text}


def _image_id(image: str) -> str:
    return f"{image.partition('@')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


# writing


def report(api: Api, pod: Json, new_status: Json) -> Json:
    """Writes the status of exactly this pod (by uid). Returns the updated pod. Conditions merge by type.

    404 or 409 (ApiError) means that the pod is gone, or that another one has its name.
    """
    meta = pod["metadata"]
    return api.patch(
        "v1/pods",
        meta["name"],
        {"metadata": {"uid": meta["uid"]}, "status": new_status},
        namespace=meta["namespace"],
        subresource="status",
        content_type=STRATEGIC,
    )


def remove(api: Api, pod: Json) -> None:
    """Does what a kubelet does when nothing of the pod runs any more: removes the object."""
    meta = pod["metadata"]
    try:
        api.delete("v1/pods", meta["name"], namespace=meta["namespace"], grace_s=0, uid=meta["uid"])
    except ApiError as error:
        if error.status != 409:  # a pod of the same name, but not this one
            raise


def event(api: Api, pod: Json, reason: str, message: str, *, kind: str = "Normal", container: bool = True) -> None:
    """Records an event on the pod from the kubelet of its node. Repeating the same text raises the event's count."""
    meta, spec = pod["metadata"], pod["spec"]
    path = f"spec.containers{{{spec['containers'][0]['name']}}}" if container else ""
    key = hashlib.sha256(f"{meta['uid']}{reason}{message}{path}".encode()).hexdigest()[:16]
    name = f"{meta['name'][:230]}.{key}"
    regarding = {"kind": "Pod", "apiVersion": "v1", "uid": meta["uid"], "name": meta["name"]}
    regarding |= {"namespace": meta["namespace"], **({"fieldPath": path} if path else {})}
    body: Json = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": meta["namespace"]},
        "involvedObject": regarding,
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": "kubelet", "host": spec["nodeName"]},
        "reportingComponent": "kubelet",
        "reportingInstance": spec["nodeName"],
        "firstTimestamp": now(),
        "lastTimestamp": now(),
        "count": 1,
    }
    try:
        api.create(body)
    except ApiError as error:
        if error.status in (403, 404):  # the namespace is being deleted, with its events
            return
        if error.status != 409:
            raise
        old = api.find("v1/events", name, namespace=meta["namespace"])
        again = {"count": (old or body)["count"] + 1, "lastTimestamp": now()}
        api.patch("v1/events", name, again, namespace=meta["namespace"])
