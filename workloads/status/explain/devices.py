"""What a node reports if it cannot give a container its GPU: driver, toolkit, device plugin, DRA driver. Pure.

These texts come in many places: the end of a container that never started, a waiting container, an event about the
pod, a pod that the kubelet rejected. Their cause is the node, not the command or the image, unless the image requires
a newer driver.
"""

from __future__ import annotations

import re

from workloads.status.explain.types import NOT_YOUR_SETTINGS, STOP, STOP_OR_CHANGE, Explanation

WRONG_GPU = "Choose an image that is built for this GPU, or another class."
_REPAIR = f"{NOT_YOUR_SETTINGS} If it is started again, it may get another node."
# An image states its requirements in NVIDIA_REQUIRE_CUDA, such as `cuda>=12.8`.
_UNSATISFIED = re.compile(r"unsatisfied condition: (cuda|driver|arch|brand) ?(>=|=|>) ?([\w.]+)")
_SHARES = re.compile(r"maximum request size for shared resources is (\d+); found (\d+)")
_UNHEALTHY = re.compile(r"no healthy devices present; cannot allocate unhealthy devices (\S+?)(?:,|$)")
_UNREGISTERED = re.compile(r"can't allocate unregistered device (\S+?)(?:,|$)")
_DRA_DRIVER = re.compile(r"DRA driver (\S+) is not registered")
_OTHER_TOOLKIT = re.compile(r"nvidia-container-cli(?:\.real)?: |nvidia-container-runtime|nvidia-ctk")
# Parts of a message, and what the driver does not do, in words. The first match counts.
_DRIVER = (
    ("driver/library version mismatch", "does not match its libraries"),
    ("driver not loaded", "is not loaded"),
    ("load library failed", "is not installed"),
    ("libnvidia-ml.so", "is not installed"),
    ("ERROR_LIBRARY_NOT_FOUND", "is not installed"),
    ("couldn't communicate with the NVIDIA driver", "does not respond"),
    ("failed to process request", "does not respond"),
    ("nvidia-container-cli: initialization error", "does not respond"),
    ("nvml.Init", "does not respond"),
    ("Failed to initialize NVML", "does not respond"),
)
_LOST = ("GPU is lost", "fallen off the bus", "unknown device id", "device error: unknown device")
_CDI = ("unresolvable CDI devices", "CDI device injection failed", "failed to inject CDI devices")
_NO_RUNTIME = (
    'no runtime for "nvidia',
    'RuntimeHandler "nvidia',
    'exec: "nvidia-container-runtime',
    "nvidia-container-runtime: no such file",
    "nvidia-container-cli: no such file",
    "nvidia-container-runtime-hook: no such file",
    'exec: "nvidia-container-cli',
)


def explain_device_fault(message: str, node: str) -> Explanation | None:
    """Returns None if the message is not about GPUs. The caller adds the message and the facts of the place."""
    where = f"Node {node}" if node else "The node"
    return _image_requirement(message, where) or _driver(message, where) or _plugin(message, where)


def _image_requirement(message: str, where: str) -> Explanation | None:
    found = _UNSATISFIED.search(message)
    if found is None:
        return None
    name = {"cuda": "CUDA", "driver": "driver version", "arch": "compute capability", "brand": "GPU brand"}[found[1]]
    least = "" if found[2] == "=" else " or later"
    here = f"{where[:1].lower()}{where[1:]}"
    if found[1] in ("arch", "brand"):
        text = f"The image requires {name} {found[3]}{least}, which the GPU of {here} does not have."
        return Explanation("image_wrong_gpu", text, WRONG_GPU, actions=STOP_OR_CHANGE)
    text = f"The image requires {name} {found[3]}{least}, which the GPU driver of {here} lacks."
    remedy = "Choose an image for an earlier CUDA version. An operator can update the driver of the node."
    return Explanation("image_needs_newer_driver", text, remedy, actions=STOP_OR_CHANGE)


def _driver(message: str, where: str) -> Explanation | None:
    if any(part in message for part in _NO_RUNTIME):
        text = f"{where} cannot start containers with a GPU: its NVIDIA container runtime is missing or not configured."
        return Explanation("gpu_runtime_missing", text, _REPAIR, actions=STOP)
    if any(part in message for part in _LOST):
        text = f"{where} cannot access a GPU that it lists: the GPU is lost or was replaced."
        return Explanation("gpu_lost", text, _REPAIR, actions=STOP)
    lowered = message.lower()
    for part, state in _DRIVER:
        if part.lower() in lowered:
            return Explanation("gpu_driver_down", f"{where} cannot start it: its GPU driver {state}.", _REPAIR)
    if any(part in message for part in _CDI):
        text = f"{where} cannot give the container its GPU: the container toolkit of the node does not list it (CDI)."
        return Explanation("gpu_not_injected", text, _REPAIR)
    if _OTHER_TOOLKIT.search(message):
        text = f"{where} cannot give the container its GPU: the NVIDIA container toolkit of the node failed."
        return Explanation("gpu_not_injected", text, _REPAIR)
    return None


def _plugin(message: str, where: str) -> Explanation | None:
    if found := _SHARES.search(message):
        most, asked = int(found[1]), int(found[2])
        text = f"{where} gives a container at most {most} unit of a shared GPU; {asked} are requested."
        remedy = f"Change it to {most} unit: more shares give one container no more of the GPU."
        facts = {"asked": asked, "limit": most}
        return Explanation("share_limit", text, remedy, is_final=True, actions=STOP_OR_CHANGE, facts=facts)
    if found := _UNHEALTHY.search(message):
        text = f"{where} rejected the pod: none of its {found[1]} is healthy."
        remedy = (
            "After a restart of the node this ends when its device plugin reports the devices. If it happens again, "
            "contact an operator."
        )
        return Explanation("device_unavailable", text, remedy, facts={"resource": found[1], "available": 0})
    if found := _UNREGISTERED.search(message):
        text = f"{where} rejected the pod: the device plugin for {found[1]} is not running there."
        return Explanation("device_plugin_down", text, _REPAIR, facts={"resource": found[1]})
    if found := _DRA_DRIVER.search(message):
        text = f"{where} cannot prepare the devices: the DRA driver {found[1]} is not running there."
        return Explanation("device_driver_missing", text, _REPAIR)
    if "Allocate failed due to" in message and ("code = Unavailable" in message or "DeadlineExceeded" in message):
        text = f"{where} rejected the pod: its device plugin does not respond."
        return Explanation("device_plugin_down", text, _REPAIR)
    if "prepare dynamic resources" in message or "NodePrepareResources" in message:
        text = f"{where} cannot prepare the devices that were allocated to the pod."
        return Explanation("devices_not_prepared", text, _REPAIR)
    return None
