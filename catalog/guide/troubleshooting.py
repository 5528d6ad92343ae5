"""Known failures by kind of class: the message of Kubernetes, its meaning, and what to do.

Pure. `…` stands for names and numbers. Messages are from Kubernetes, Kueue and NVIDIA's device plugin; explanations are
ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.contract.types import Axes


@dataclass(frozen=True)
class KnownFailure:
    """`text` as it is seen, `where` it is seen."""

    text: str
    where: str
    means: str
    action: str


def known_failures(axes: Axes, *, units_per_workload: int) -> tuple[KnownFailure, ...]:
    """Common failures first, then those that only this kind of class has."""
    is_one = units_per_workload == 1
    if axes.interface == "none":
        return (_insufficient("cpu", is_one=is_one), _exceeded("requests.cpu"), _killed(is_one=is_one))
    if axes.interface == "dra":
        return (_queue(axes.resource), *_dra(is_one=is_one), _killed(is_one=is_one), _OUT_OF_MEMORY)
    usual = (_queue(axes.resource), _insufficient(axes.resource, is_one=is_one), _exceeded(f"requests.{axes.resource}"))
    if axes.sharing == "time-slicing":
        return (*usual, _more_than_one(axes), _FILLED_BY_NEIGHBOUR, _NEIGHBOURS_FAULT, _killed(is_one=is_one))
    if axes.sharing == "mps":
        return (*usual, _more_than_one(axes), _MPS_LIMIT, _MPS_FAULT, _killed(is_one=is_one))
    unhealthy = _unhealthy(axes.resource)
    if axes.vendor != "nvidia":
        return (*usual, unhealthy, _killed(is_one=is_one))
    if axes.partition != "none":
        return (*usual, unhealthy, _SLICE_MEMORY, _ONE_SLICE_ONLY, _killed(is_one=is_one))
    return (*usual, unhealthy, _OUT_OF_MEMORY, _killed(is_one=is_one))


def _queue(resource: str) -> KnownFailure:
    return KnownFailure(
        f"couldn't assign flavors to pod set main: insufficient unused quota for {resource} in flavor …, 1 more needed",
        "Job, before a pod exists",
        "Your team's quota is in use, and nothing can be borrowed now.",
        "Wait, stop a workload of your team, or request more quota.",
    )


def _insufficient(resource: str, *, is_one: bool) -> KnownFailure:
    """`is_one`: the class gives a workload one unit, and no more."""
    text, where = f"0/… nodes are available: … Insufficient {resource}", "pod, Pending"
    if is_one:
        return KnownFailure(text, where, "No node has a free unit.", "Wait for a free unit, or choose another class.")
    return KnownFailure(
        text,
        where,
        "No single node has enough free units. One pod cannot use free units of several nodes.",
        _FEWER,
    )


def _dra(*, is_one: bool) -> tuple[KnownFailure, ...]:
    return (
        KnownFailure(
            "0/… nodes are available: … cannot allocate all claims",
            "pod, Pending",
            "No node has enough free devices that match the class's selector.",
            "Wait for a free unit, or choose another class." if is_one else _FEWER,
        ),
        KnownFailure(
            "exceeded quota: gpu-portal, requested: ….deviceclass.resource.k8s.io/devices=…",
            "creation of a ResourceClaim",
            "ResourceQuota limit: claims outside the queue use too much, or your team has no quota for this class.",
            "Launch it in the portal. Ask an operator to delete the claims that were created outside the queue, or "
            "request quota for this class.",
        ),
        KnownFailure(
            "FailedPrepareDynamicResources",
            "event of the pod",
            "The driver on the node could not prepare the allocated device.",
            "Wait a few minutes: it is retried. Report it if it persists.",
        ),
    )


_FEWER = "Wait, or request fewer: “most free on one node” above is what can start now."


def _killed(*, is_one: bool) -> KnownFailure:
    more = "choose a class with more node memory" if is_one else "request more units: each adds node memory"
    return KnownFailure(
        "OOMKilled, exit code 137",
        "container, terminated",
        "The program used more of the node's memory than the class gives. This is not the memory of the GPU.",
        f"Load less data at once, use fewer worker processes, or {more}.",
    )


def _exceeded(key: str) -> KnownFailure:
    return KnownFailure(
        f"exceeded quota: gpu-portal, requested: {key}=…, used: {key}=…, limited: {key}=…",
        "creation of a pod, or the events of its Deployment",
        "ResourceQuota limit: pods outside the queue use too much, or your team has no quota for this class.",
        "Launch it in the portal. Ask an operator to delete the pods that were created outside the queue, or request "
        "quota for this class.",
    )


def _unhealthy(resource: str) -> KnownFailure:
    return KnownFailure(
        f"UnexpectedAdmissionError: no healthy devices present; cannot allocate unhealthy devices {resource}",
        "pod, Failed",
        "A GPU failed between scheduling and the start of the pod.",
        "No action: the portal starts its workloads again on another node. Report it if it happens twice.",
    )


def _more_than_one(axes: Axes) -> KnownFailure:
    return KnownFailure(
        "UnexpectedAdmissionError: Allocate failed due to … maximum request size for shared resources is 1; found 2",
        "pod, Failed",
        f"Two shares of {axes.resource} were requested. A second share may be on the same GPU, so it is refused.",
        "Request 1. For more compute, use a class of whole GPUs or slices. The portal refuses 2 before submission.",
    )


_FILLED_BY_NEIGHBOUR = KnownFailure(
    "CUDA error: out of memory",
    "program log, although it requested little memory",
    "Time-sliced pods share the GPU's memory without limits: another pod has filled it.",
    "Restart the workload later, and use little memory. If you need isolated memory, use a MIG slice or a whole GPU.",
)
_NEIGHBOURS_FAULT = KnownFailure(
    "CUDA error: unspecified launch failure",
    "program log, without a change of yours",
    "It may be a fault of another pod on the same GPU, or of your own program: this class does not isolate faults.",
    "Restart the workload. If it persists, try an exclusive class: a fault there is your own.",
)
_MPS_LIMIT = KnownFailure(
    "CUDA error: out of memory",
    "program log",
    "You reached the GPU memory limit of your share; each share gets an equal part of the GPU's memory.",
    "Use less memory, or use a class with more memory per unit.",
)
_MPS_FAULT = KnownFailure(
    "CUDA error: the remote procedural call between the MPS server and the MPS client failed",
    "program log",
    "The MPS server of the GPU was stopped, usually by a fault of one of its clients.",
    "Restart the workload. For work that must survive the faults of other pods, use a MIG slice or a whole GPU.",
)
_SLICE_MEMORY = KnownFailure(
    "CUDA out of memory",
    "program log",
    "The memory of the slice is full. No other pod can use it, and its size is fixed.",
    "Use a smaller batch, or a larger slice.",
)
_ONE_SLICE_ONLY = KnownFailure(
    "torch.cuda.device_count() is 1 although two slices were given",
    "program log",
    "CUDA shows a process only one slice, and slices do not exchange data with each other.",
    "Start one process per slice, or use a larger slice or whole GPUs.",
)
_OUT_OF_MEMORY = KnownFailure(
    "CUDA out of memory",
    "program log",
    "The program needs more memory than the GPU has. Other pods are not the cause.",
    "Use a smaller batch, several GPUs, or a class with more memory.",
)
