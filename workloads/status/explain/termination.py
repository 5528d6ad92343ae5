"""Why a pod ended: by itself, by the node or by the cluster; and why a repository was not cloned. Pure.

States only what the facts support: exit code 137 means that the process was killed, not that memory ran out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cluster.manifests.run import CLONE_CONTAINER
from cluster.manifests.run_spec import HOME
from workloads.status.explain.devices import WRONG_GPU, explain_device_fault
from workloads.status.explain.quantities import GIB, figures, number, quantity_text, resource_name, sized
from workloads.status.explain.types import Explanation, Who, who_acts

AGAIN = "Kubernetes restarts it automatically."
IF_AGAIN = "If it happens again, contact an operator."
NOT_SAVED = "Unsaved work is lost."
LOG = "See the log."
ENDED = ("stop", "log", "change")
CHANGE = ("stop", "change", "log")
# A container that has not started has no log.
NEVER_RAN = ("stop", "change")
# For a reason of the kubelet, or of a disruption, that is not known here.
UNKNOWN_DISRUPTIONS = frozenset({"node_refused", "disrupted"})

_SIGNALS = {
    4: "an illegal instruction",
    6: "an abort",
    8: "an arithmetic error",
    11: "a segmentation fault",
}
_EXECUTABLE = re.compile(r"exec:? \"?([^\s\":]+)\"?: (?:executable file not found|stat |no such file)")
_NOT_EXECUTABLE = re.compile(r"exec:? \"?([^\s\":]+)\"?: permission denied")
_WORK_DIR = re.compile(r"chdir to cwd \(\"([^\"]+)\"\)|mkdir (/\S+): (?:permission denied|read-only)")
_GPU_MEMORY = re.compile(
    r"(CUDA(?: error:)? out of memory\.?(?: Tried to allocate [\d.]+ \w+)?|HIP out of memory"
    r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc failed: out of memory"
    r"|RESOURCE_EXHAUSTED: Out of memory[^\n.]*|OOM when allocating tensor[^\n.]*"
    r"|No available memory for the cache blocks)"
)
_SHARED_MEMORY = re.compile(r"out of shared memory|unable to (?:open|mmap \d+ bytes from) shared memory")
_OLD_DRIVER = ("driver version is insufficient for CUDA runtime version", "driver on your system is too old")
_OTHER_GPU = "no kernel image is available for execution on the device"
_BROKEN_GPU = re.compile(r"uncorrectable (?:NVLink |ECC )error|hardware slowdown|GPU is lost|fallen off the bus")
_NO_GPU = (
    "no CUDA-capable device is detected",
    "No CUDA GPUs are available",
    "Found no NVIDIA driver on your system",
    "Failed to initialize NVML",
    "communicate with the NVIDIA driver",
)
_INSUFFICIENT = re.compile(r"resource: (\S+), requested: (\d+), used: (\d+), capacity: (\d+)")
_DEVICES = re.compile(r"unavailable for (\S+)\. Requested: (\d+), Available: (\d+)")
_PRESSURE = re.compile(r"The node had condition: \[([A-Za-z, ]+)\]")
_LOW = re.compile(r"low on resource: ([a-zA-Z-]+)\.(?:.*?available: ([^\s,]+?)\.(?:\s|$))?")
_USING = re.compile(r"was using ([^\s,]+), request is ([^\s,]+), has larger")
_TOO_MUCH = re.compile(r"Usage of EmptyDir volume \"([^\"]+)\" exceeds the limit \"([^\"]+)\"")
_OWN_LIMIT = re.compile(r"(?:total limit of containers|local ephemeral storage limit) \"?([0-9.]+[A-Za-z]*)")


@dataclass(frozen=True)
class PodTermination:
    """A pod that failed or is being removed. `disruption`: reason of its condition DisruptionTarget, "" if none;
    `container`: which container ended; `message`: the last lines of that container; `memory`: bytes that the pod may
    use; `resources`: names of what it requests; `has_devices`: a GPU is among it.
    """

    node: str
    pod_reason: str = ""
    pod_message: str = ""
    disruption: str = ""
    disruption_message: str = ""
    container: str = ""
    state_reason: str = ""
    message: str = ""
    exit_code: int | None = None
    memory: int | None = None
    resources: tuple[str, ...] = ()
    has_devices: bool = True

    @property
    def comes_back(self) -> bool:
        """The Job starts another pod after a disruption or a refusal by the kubelet, but not after a crash."""
        return bool(self.disruption) or (self.exit_code is None and bool(self.pod_reason))


def explain_termination(ended: PodTermination) -> Explanation:
    found = _by_cluster(ended) if ended.comes_back else _by_itself(ended)
    parts = [
        f"{ended.pod_reason}: {ended.pod_message}" if ended.pod_reason else "",
        f"{ended.disruption}: {ended.disruption_message}" if ended.disruption and not ended.pod_reason else "",
        f"{ended.state_reason}, exit code {ended.exit_code}" if ended.exit_code is not None else ended.state_reason,
        ended.message,
    ]
    raw = "\n".join(part for part in parts if part)
    return replace(found, raw=raw, raw_from="the kubelet" if not ended.disruption else "the cluster")


# ---- terminated by the cluster ---------------------------------------------------------------------------------------


def _by_cluster(ended: PodTermination) -> Explanation:
    if ended.pod_reason == "UnexpectedAdmissionError" and (
        found := explain_device_fault(ended.pod_message, ended.node)
    ):
        # Another pod follows, maybe on another node.
        remedy = IF_AGAIN if who_acts(found.reason) is Who.OPERATORS else found.remedy
        return replace(found, remedy=remedy, facts=({"node": ended.node} if ended.node else {}) | dict(found.facts))
    reason, sentence, remedy, actions = _disruption(ended)
    facts = ({"node": ended.node} if ended.node else {}) | _numbers(ended.pod_message)
    is_known = reason not in UNKNOWN_DISRUPTIONS
    return Explanation(reason, sentence, remedy, actions=actions, facts=facts, is_known=is_known)


def _numbers(text: str) -> dict[str, Any]:
    """Why the kubelet rejected or evicted the pod. A volume of the pod is named as it is there."""
    if found := _TOO_MUCH.search(text):
        return {"resource": found[1]}
    if found := _DEVICES.search(text):
        return {"resource": found[1], "asked": int(found[2]), "available": int(found[3])}
    if found := _INSUFFICIENT.search(text):
        return figures(found[1], **dict(zip(("asked", "used", "limit"), _quantities(found), strict=True)))
    return {}


def _quantities(found: re.Match[str]) -> list[str]:
    """Reads the kubelet's numbers: cpu in millicores, memory in bytes."""
    return [f"{part}m" if found[1] == "cpu" else part for part in found.group(2, 3, 4)]


def _disruption(ended: PodTermination) -> tuple[str, str, str, tuple[str, ...]]:
    node, why, text = f"Node {ended.node}", ended.pod_reason, ended.pod_message
    stop = ("stop",)
    if why == "UnexpectedAdmissionError":
        found = _DEVICES.search(text)
        said = f"{found[1]}: {found[2]} requested, {found[3]} available" if found else "its devices are not available"
        return "device_unavailable", f"{node} rejected the pod: {said}.", IF_AGAIN, stop
    if why == "TopologyAffinityError":
        said = f"{node} rejected the pod: its GPUs and cores are not available on the same NUMA node."
        return "topology_refused", said, "Fewer units or cores may fit.", ("stop", "change")
    if why.startswith("OutOf"):
        return "node_full", f"{node} rejected the pod: {_full(why, text)}.", IF_AGAIN, stop
    if why == "NodeAffinity":
        return "node_changed", f"{node} rejected the pod: the labels of the node have changed.", IF_AGAIN, stop
    if why == "Evicted":
        return _evicted(ended.node, text)
    if why in ("Terminated", "NodeShutdown", "Shutdown") or "node shutdown" in ended.disruption_message:
        return "node_shutdown", f"{node} was shut down.", NOT_SAVED, stop
    if ended.disruption == "DeletionByTaintManager":
        # Kubernetes taints nodes that are not ready, and operators taint others.
        said = (
            f"A taint (NoExecute) of node {ended.node} removed it: the node was not ready, or an operator cleared it."
        )
        return "drained", said, NOT_SAVED, stop
    if why == "NodeLost" or ended.disruption == "DeletionByPodGC":
        is_gone = "no longer exists" in ended.disruption_message
        said = f"{node} {'is no longer in the cluster' if is_gone else 'no longer responds'}."
        return "node_lost", said, NOT_SAVED, stop
    if ended.disruption == "EvictionByEvictionAPI":
        return "drained", f"It was evicted from node {ended.node}, as when a node is drained.", NOT_SAVED, stop
    if ended.disruption == "PreemptionByScheduler" or why == "Preempting":
        said = f"A pod with a higher priority preempted it on node {ended.node}."
        return "preempted_on_node", said, NOT_SAVED, stop
    if why:
        return "node_refused", f"{node} rejected the pod ({why}).", IF_AGAIN, stop
    return "disrupted", f"The pod was removed from node {ended.node} ({ended.disruption}).", NOT_SAVED, stop


def _full(why: str, text: str) -> str:
    found = _INSUFFICIENT.search(text)
    if found is None:
        return f"too little {why.removeprefix('OutOf')} free"
    name = found[1]
    asked, used, capacity = _quantities(found)
    taken = f"{number(name, used)} of {number(name, capacity)} used"
    return f"{resource_name(name)}: {sized(name, asked)} requested, {taken}"


# What a node ran low on, as a kubelet names it. The last two are counts.
_LOW_ON = {
    "ephemeral-storage": "disk space",
    "nodefs": "disk space",
    "imagefs": "disk space",
    "inodes": "files that its disk can hold (inodes)",
    "pids": "process ids",
}
_COUNTED = frozenset({"inodes", "pids"})
# Where the volumes of our pods are mounted.
SHARED_MEMORY = "shared-memory"
_PLACES = {SHARED_MEMORY: "/dev/shm", "home": HOME}


def _evicted(node: str, text: str) -> tuple[str, str, str, tuple[str, ...]]:
    if found := _TOO_MUCH.search(text):
        place = _PLACES.get(found[1], found[1])
        said = f"It wrote more than {quantity_text(found[2])} to {place}, and node {node} evicted it."
        return "too_many_files", said, "Write less there, or request more.", ("stop", "change")
    if found := _OWN_LIMIT.search(text):
        said = f"It wrote more than {quantity_text(found[1])} of files, and node {node} evicted it."
        return "too_many_files", said, "Write less, or write to a volume.", ("stop", "change")
    if found := _PRESSURE.search(text):
        said = f"Node {node} rejected the pod: it reports {found[1].replace(', ', ' and ')}."
        return "node_pressure", said, IF_AGAIN, ("stop",)
    found = _LOW.search(text)
    if found is None:
        return "evicted", f"Node {node} evicted it and reported no reason.", NOT_SAVED, ("stop",)
    what = _LOW_ON.get(found[1], found[1])
    amount = found[2] and (found[2] if found[1] in _COUNTED else quantity_text(found[2]))
    left = f" ({amount} left)" if amount else ""
    said = f"Node {node} ran low on {what}{left} and evicted it"
    if using := _USING.search(text):
        said += f": it used {quantity_text(using[1])}, {quantity_text(using[2])} were requested"
    return "evicted", f"{said}.", NOT_SAVED, ("stop",)


# ---- ended by itself -------------------------------------------------------------------------------------------------


def _by_itself(ended: PodTermination) -> Explanation:
    if ended.container == CLONE_CONTAINER:
        return _clone(ended)
    code = ended.exit_code
    facts: Mapping[str, Any] = {} if code is None else {"exit_code": code}
    if ended.state_reason == "OOMKilled":
        return Explanation(
            "out_of_memory",
            f"It exceeded {_limit(ended)} and was killed (OOMKilled). This is not GPU memory.",
            "Use less memory, or request more memory or a class with more memory per unit.",
            actions=CHANGE,
            facts=_with_memory(facts, ended),
        )
    if ended.state_reason in _NEVER_STARTED and (found := explain_device_fault(ended.message, ended.node)):
        return replace(found, facts={**facts, **found.facts, **({"node": ended.node} if ended.node else {})})
    reason, sentence, remedy, actions = _by_log(ended) or _by_code(ended)
    return Explanation(reason, sentence, remedy, actions=actions, facts=facts)


_NEVER_STARTED = ("StartError", "ContainerCannotRun")
_Told = tuple[str, str, str, tuple[str, ...]]


def _by_log(ended: PodTermination) -> _Told | None:
    """Reads the last log lines, which are those of the program: sentences name them as such."""
    text = ended.message
    lead = "Its last log lines report that"
    if found := _GPU_MEMORY.search(text):
        return "out_of_gpu_memory", f"{lead} GPU memory was full: {found[1].rstrip('.')}.", _larger(ended), ENDED
    if any(part in text for part in _OLD_DRIVER):
        said = f"{lead} the image needs a newer GPU driver than that of node {ended.node}."
        remedy = "Choose an image for an earlier CUDA version. An operator can update the driver of the node."
        return "image_needs_newer_driver", said, remedy, CHANGE
    if _OTHER_GPU in text:
        said = f"{lead} its programs are not built for this GPU model."
        return "image_wrong_gpu", said, WRONG_GPU, CHANGE
    if found := _BROKEN_GPU.search(text):
        said = f"{lead} a GPU of node {ended.node} is faulty: {found[0]}."
        return "gpu_fault", said, "Contact an operator. If it is started again, it may get another GPU.", ENDED
    if any(part in text for part in _NO_GPU):
        if not ended.has_devices:
            said = f"{lead} no GPU is accessible. Its class gives it none."
            return "gpu_not_requested", said, "Choose a class with GPUs, or a program that needs none.", CHANGE
        said = f"{lead} no GPU is accessible on node {ended.node}."
        remedy = "Check that its environment does not hide the GPU. Otherwise contact an operator."
        return "gpu_not_visible", said, remedy, ENDED
    if _SHARED_MEMORY.search(text):
        return "bus_error", f"{lead} shared memory (/dev/shm) was full.", "Request more shared memory.", CHANGE
    return None


def _larger(ended: PodTermination) -> str:
    """More units help only if each is a whole GPU, which the resource's name does not always show."""
    less = "Use smaller batches or a smaller model, or a class with"
    if any("/mig-" in name for name in ended.resources):
        return f"{less} a larger slice or a whole GPU. More slices of this size give one process no more memory."
    if any(name.endswith(".shared") for name in ended.resources):
        return f"{less} a GPU of its own or more GPU memory. More shares give one process no more memory."
    return (
        f"{less} more GPU memory per unit. More units help only if each is a whole GPU and the program uses several "
        "GPUs."
    )


def _by_code(ended: PodTermination) -> tuple[str, str, str, tuple[str, ...]]:
    code, check = ended.exit_code, "Check the command and the image."
    if "exec format error" in ended.message:
        said = f"The image or its command is not built for the CPU architecture of node {ended.node}."
        return "image_wrong_platform", said, "Choose another image.", NEVER_RAN
    if found := _EXECUTABLE.search(ended.message):
        return "command_not_found", f"The command {found[1]} was not found in the image.", check, NEVER_RAN
    if found := _NOT_EXECUTABLE.search(ended.message):
        return "command_not_executable", f"The command {found[1]} is not executable.", check, NEVER_RAN
    if found := _WORK_DIR.search(ended.message):
        said = f"The image's working directory {found[1] or found[2]} cannot be used."
        return (
            "working_directory",
            said,
            "Choose another image, or build it with a directory that it may use.",
            NEVER_RAN,
        )
    if ended.state_reason in _NEVER_STARTED:
        return "command_not_found", "The command could not be started in this image.", check, NEVER_RAN
    if code == 127:
        return "command_not_found", "The command was not found in the image (exit code 127).", check, CHANGE
    if code == 126:
        said = "The command is not executable (exit code 126)."
        return "command_not_executable", said, check, CHANGE
    if code == 137:
        said = "It was killed (signal 9, exit code 137); the cluster reports no cause."
        return "killed", said, LOG, ENDED
    if code == 143:
        return "terminated", "It was terminated (signal 15, exit code 143).", LOG, ENDED
    if code == 130:
        return "terminated", "It was interrupted (signal 2, exit code 130).", LOG, ENDED
    if code == 135:
        said = "It crashed with a bus error (signal 7, exit code 135)."
        return "bus_error", said, "Too little shared memory (/dev/shm) is a common cause: request more.", CHANGE
    if code is not None and code - 128 in _SIGNALS:
        said = f"It crashed with {_SIGNALS[code - 128]} (signal {code - 128}, exit code {code})."
        return "crashed", said, LOG, ENDED
    if code is not None:
        return "crashed", f"It ended with exit code {code}.", LOG, ENDED
    return "failed", "It failed.", LOG, ENDED


# ---- failed clone of the repository ----------------------------------------------------------------------------------

_NO_REPOSITORY = re.compile(r"fatal: repository '([^']+)' (?:not found|does not exist)")
_SIGN_IN = re.compile(
    r"could not read (?:Username|Password) for '([^']+)'|Authentication failed for '([^']+)'"
    r"|unable to access '([^']+)': The requested URL returned error: 40[13]"
)
_UNREACHABLE = re.compile(r"fatal: unable to (?:access|connect to|look up) [^\n]*?'?: ([^\n]+)")
_BRANCH = "Check the name of the branch or tag, then start it again."
_NO_BRANCH = re.compile(r"Remote branch (\S+) not found")


def _clone(ended: PodTermination) -> Explanation:
    facts = {"exit_code": ended.exit_code, "container": CLONE_CONTAINER}
    if ended.state_reason == "OOMKilled":
        return Explanation(
            "clone_out_of_memory",
            f"Cloning the repository exceeded {_limit(ended)} and was killed (OOMKilled).",
            "Clone less, or request more memory.",
            actions=CHANGE,
            facts=_with_memory(facts, ended),
        )
    reason, sentence, remedy = _clone_by_text(ended)
    is_known = reason != "clone_failed"
    actions = CHANGE if is_known else ENDED
    return Explanation(reason, sentence, remedy, actions=actions, facts=facts, is_known=is_known)


def _clone_by_text(ended: PodTermination) -> tuple[str, str, str]:
    text = ended.message
    if found := _NO_BRANCH.search(text):
        return "reference_not_found", f"The repository has no branch or tag {found[1]}.", _BRANCH
    if found := _NO_REPOSITORY.search(text):
        said = f"The repository {_bare(found[1]).rstrip('/')} does not exist."
        return "repository_not_found", said, "Check the address of the repository, then start it again."
    if found := _SIGN_IN.search(text):
        where = _bare(found[1] or found[2] or found[3])
        said = f"The repository requires authentication at {where}, or does not exist there."
        return "repository_private", said, "Make it public, or clone it in the workload with your own credentials."
    if found := _UNREACHABLE.search(text):
        said = f"The repository is not reachable: {found[1].strip().rstrip('.')}."
        return "repository_unreachable", said, "Check its address, and whether the cluster can reach it."
    if ended.exit_code == 127 or "git: not found" in text or "git: command not found" in text:
        said = "The image has no git to clone the repository."
        return "no_git", said, "Choose another image, or clone the repository in the workload."
    said = f"The repository could not be cloned (git exit code {ended.exit_code})."
    return "clone_failed", said, "See the log of the clone."


def _bare(address: str) -> str:
    """Removes credentials before an @."""
    return re.sub(r"//[^/@]*@", "//", address)


def _limit(ended: PodTermination) -> str:
    size = f" of {round(ended.memory / GIB, 1):g} GiB" if ended.memory else ""
    return f"its host memory limit{size}"


def _with_memory(facts: Mapping[str, Any], ended: PodTermination) -> dict[str, Any]:
    if not ended.memory:
        return dict(facts)
    whole = ended.memory / GIB
    return {**facts, "memory_gib": int(whole) if whole.is_integer() else round(whole, 1)}
