"""Pod statuses and events as a kubelet writes them. Used by the notebook runner and the scripted kubelet."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from devcluster.client.kube import STRATEGIC, Api, ApiError
from devcluster.client.types import Json

NODE_ADDRESS = "127.0.0.1"
# Part of the API server's message if a terminated container is set to another state.
OVER = "may not be transitioned to non-terminated state"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# states of a container


def waiting(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def running(started_at: str) -> Json:
    return {"running": {"startedAt": started_at}}


def terminated(exit_code: int, *, reason: str = "", message: str = "", started_at: str = "", signal: int = 0) -> Json:
    """`reason` defaults to Completed for exit code 0, otherwise Error, as for a kubelet."""
    state: Json = {"exitCode": exit_code, "reason": reason or ("Completed" if exit_code == 0 else "Error")}
    state |= {"startedAt": started_at or now(), "finishedAt": now()}
    return {"terminated": state | ({"message": message} if message else {}) | ({"signal": signal} if signal else {})}


# status of a pod


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

    The phase follows from the state. A terminated container means Succeeded or Failed, which is final: restartPolicy is
    ignored, and a container that will restart is `waiting` with a `last_state`. `reason` and `message` are those of the
    pod. `init`: states of the init containers by name. If it is omitted and the container has not run yet, `state` is
    the state of the first init container and all others wait with PodInitializing; otherwise all init containers have
    succeeded. `sandbox`: volumes and network are ready although no container runs.
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
        phase = "Running"  # it has run before: a kubelet does not set it back to Pending
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
        found |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}, {"$patch": "replace"}]}  # not merged with old IPs
    return found | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def refused(reason: str, message: str) -> Json:
    """The status of a pod that the kubelet refuses to run: Failed at once, and no container was ever created."""
    return {"phase": "Failed", "reason": reason, "message": message, "startTime": now()}


def pull_error(image: str) -> str:
    """containerd's message for an image that the registry does not provide."""
    repository = image.partition("@")[0]
    where = repository if "." in repository.partition("/")[0] else f"docker.io/{repository}"
    return (
        f'failed to pull and unpack image "{where}": failed to resolve reference "{where}": pull access denied, '
        "repository does not exist or may require authorization: server message: insufficient_scope: "
        "authorization failed"
    )


def disruption(reason: str, message: str) -> Json:
    """The condition DisruptionTarget. The podFailurePolicy of a Job can use it to ignore failures that the pod did not
    cause.
    """
    return _condition("DisruptionTarget", holds=True, reason=reason, message=message)


# Reasons of a waiting container that occur only after the volumes and the network of its pod are ready.
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
    """All conditions except PodScheduled, which the scheduler sets. A condition whose status did not change keeps its
    lastTransitionTime.
    """
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
    # None removes an old text. If the key were missing, a strategic merge would keep it.
    text = {"reason": reason or None, "message": message or None}
    return {"type": kind, "status": str(holds), "lastProbeTime": None, "lastTransitionTime": now(), **text}


def _image_id(image: str) -> str:
    return f"{image.partition('@')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


# writing


def report(api: Api, pod: Json, new_status: Json) -> Json:
    """Writes the status of exactly this pod (checked by uid), and returns the updated pod. Conditions are merged by
    type.

    ApiError 404 or 409 means that the pod no longer exists, or that another pod has its name.
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
    """Removes the object, as a kubelet does when nothing of the pod runs any more."""
    meta = pod["metadata"]
    try:
        api.delete("v1/pods", meta["name"], namespace=meta["namespace"], grace_s=0, uid=meta["uid"])
    except ApiError as error:
        if error.status != 409:  # another pod has this name now
            raise


def event(api: Api, pod: Json, reason: str, message: str, *, kind: str = "Normal", container: bool = True) -> None:
    """Records an event of the pod, with the kubelet of its node as the source. If the same text was recorded before,
    only the count is increased.
    """
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
