"""What people see when a workload fails, by kind of class: the text of Kubernetes, its meaning, and what to do.

Pure. `…` stands for names and numbers. Texts of Kubernetes, Kueue and NVIDIA's device plugin; the sentences are ours.
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
    """The usual ones first, then those of this kind of class alone."""
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
        "Your team's units are all in use, and none can be borrowed now.",
        "Wait, stop a workload of your team, or request more quota.",
    )


def _insufficient(resource: str, *, is_one: bool) -> KnownFailure:
    """`is_one`: of a class that gives a workload one unit, and no more."""
    text, where = f"0/… nodes are available: … Insufficient {resource}", "pod, Pending"
    if is_one:
        return KnownFailure(text, where, "No node has a unit free.", "Wait for one, or choose another class.")
    return KnownFailure(
        text,
        where,
        "No single node has as many units free. Free units on several nodes do not add up for one pod.",
        _FEWER,
    )


def _dra(*, is_one: bool) -> tuple[KnownFailure, ...]:
    return (
        KnownFailure(
            "0/… nodes are available: … cannot allocate all claims",
            "pod, Pending",
            "No node has enough free devices that match the class's selector.",
            "Wait for one, or choose another class." if is_one else _FEWER,
        ),
        KnownFailure(
            "exceeded quota: gpu-portal, requested: ….deviceclass.resource.k8s.io/devices=…",
            "creation of a ResourceClaim",
            "The namespace's fuse: claims beside the queue hold too much, or your team has no units of this class.",
            "Delete what you started beside the queue, and start it as a Job.",
        ),
        KnownFailure(
            "FailedPrepareDynamicResources",
            "event of the pod",
            "The driver on the node could not hand over the device that was chosen.",
            "Nothing for some minutes: it is tried again. Report it if it stays.",
        ),
    )


_FEWER = "Wait, or ask for fewer: “most on one node” above is what can start now."


def _killed(*, is_one: bool) -> KnownFailure:
    more = "choose a class with more of it" if is_one else "take more units: each brings its own memory"
    return KnownFailure(
        "OOMKilled, exit code 137",
        "container, terminated",
        "The program used more of the node's memory than the class gives. This is not the memory of the GPU.",
        f"Load less at once, use fewer worker processes, or {more}.",
    )


def _exceeded(key: str) -> KnownFailure:
    return KnownFailure(
        f"exceeded quota: gpu-portal, requested: {key}=…, used: {key}=…, limited: {key}=…",
        "creation of a pod, or the events of its Deployment",
        "The namespace's fuse: pods beside the queue hold too much, or your team has no units of this class.",
        "Delete what you started beside the queue, and start it as a Job.",
    )


def _unhealthy(resource: str) -> KnownFailure:
    return KnownFailure(
        f"UnexpectedAdmissionError: no healthy devices present; cannot allocate unhealthy devices {resource}",
        "pod, Failed",
        "A card failed between the choice of the node and the start.",
        "Nothing: a workload of the portal is started again elsewhere. Report it if it comes twice.",
    )


def _more_than_one(axes: Axes) -> KnownFailure:
    return KnownFailure(
        "UnexpectedAdmissionError: Allocate failed due to … maximum request size for shared resources is 1; found 2",
        "pod, Failed",
        f"Two shares of {axes.resource} were asked for. A second share may be of the same card, so it is refused.",
        "Ask for 1. For more compute take a class of whole cards or slices. The portal refuses 2 before it starts.",
    )


_FILLED_BY_NEIGHBOUR = KnownFailure(
    "CUDA error: out of memory",
    "log of the program, although it asked for little",
    "The card's memory is not divided between those who take turns: another one has filled it.",
    "Start again later, and keep your own use small. If you need memory of your own, take a MIG slice or a whole card.",
)
_NEIGHBOURS_FAULT = KnownFailure(
    "CUDA error: unspecified launch failure",
    "log of the program, without a change of yours",
    "It may be a fault of a neighbour on the same card, or one of your own: this class does not keep them apart.",
    "Start again. If it stays, try once on an exclusive class: then it is yours.",
)
_MPS_LIMIT = KnownFailure(
    "CUDA error: out of memory",
    "log of the program",
    "You reached the limit of your share; a share gets an equal part of the card's memory and no more.",
    "Use less, or take a class with more memory for each unit.",
)
_MPS_FAULT = KnownFailure(
    "CUDA error: the remote procedural call between the MPS server and the MPS client failed",
    "log of the program",
    "The process that serves all clients of the card was stopped, mostly by a fault of one of them.",
    "Start again. For work that must not end for others' faults take a MIG slice or a whole card.",
)
_SLICE_MEMORY = KnownFailure(
    "CUDA out of memory",
    "log of the program",
    "The slice's memory is full. Nobody else can use it, and it does not grow.",
    "Use a smaller batch, or take a larger slice.",
)
_ONE_SLICE_ONLY = KnownFailure(
    "torch.cuda.device_count() is 1 although two slices were given",
    "log of the program",
    "CUDA lets one process see one slice, and slices do not exchange data with each other.",
    "Start one process for each slice, or take a larger slice or whole cards.",
)
_OUT_OF_MEMORY = KnownFailure(
    "CUDA out of memory",
    "log of the program",
    "The program needs more memory than the card has. No neighbour has any part in it.",
    "Use a smaller batch, several cards, or a class with more memory.",
)
