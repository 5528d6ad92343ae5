"""What the last log lines of a program report. Sentences name them as such, because the program wrote them. Pure."""

from __future__ import annotations

import re

from cluster.reads.xid import hardware_xid, xid_words
from workloads.status.explain.devices import WRONG_GPU
from workloads.status.explain.endings.pod_termination import CHANGE, ENDED, PodTermination, Told

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
# Other programs have other xids, such as PostgreSQL.
_DRIVER_LINE = re.compile(r"NVRM: Xid[^\n]*")
_BAD_ACCESS = re.compile(
    r"an illegal (?:memory access|instruction) was encountered|misaligned address|device-side assert triggered"
    r"|unspecified launch failure|CUDA_ERROR_(?:ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|ASSERT|LAUNCH_FAILED)"
)
_NOT_JOINED = re.compile(r"Timed out after (\d+) seconds waiting for clients\. (\d+)/(\d+) clients joined")
# Of PyTorch. The last 2 KiB of a log may have only the end of the message.
_COLLECTIVE = re.compile(
    r"collective operation timeout: WorkNCCL\([^\n]*?OpType=_?(\w+)[^\n]*?\) ran for (\d+) milliseconds"
)
_COLLECTIVE_CUT = re.compile(
    "Some NCCL operations have failed or timed out|Timeout at NCCL work:|operation timeout: WorkNCCL"
)
# Of NCCL, of PyTorch about NCCL, and of Gloo.
_PEER_LOST = re.compile(
    r"ncclRemoteError|remote process exited or there was a network error|Connection closed by peer \["
)
# Reasons of a process that failed because another one did, or was late.
OF_OTHERS = frozenset({"nccl_timeout", "peer_lost", "workers_not_joined"})
_NO_GPU = (
    "no CUDA-capable device is detected",
    "No CUDA GPUs are available",
    "Found no NVIDIA driver on your system",
    "Failed to initialize NVML",
    "communicate with the NVIDIA driver",
)


def by_log(ended: PodTermination) -> Told | None:
    """Returns None if the lines report nothing that is known."""
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
    if (code := hardware_xid("\n".join(_DRIVER_LINE.findall(text)))) is not None:
        said = f"{lead} a GPU of node {ended.node} is faulty: {xid_words(code)}."
        return "gpu_fault", said, _ANOTHER_GPU, ENDED
    if found := _BROKEN_GPU.search(text):
        said = f"{lead} a GPU of node {ended.node} is faulty: {found[0]}."
        return "gpu_fault", said, _ANOTHER_GPU, ENDED
    if any(part in text for part in _NO_GPU):
        if not ended.has_devices:
            said = f"{lead} no GPU is accessible. Its class gives it none."
            return "gpu_not_requested", said, "Choose a class with GPUs, or a program that needs none.", CHANGE
        said = f"{lead} no GPU is accessible on node {ended.node}."
        remedy = "Check that its environment does not hide the GPU. Otherwise contact an operator."
        return "gpu_not_visible", said, remedy, ENDED
    if _SHARED_MEMORY.search(text):
        return "bus_error", f"{lead} shared memory (/dev/shm) was full.", "Request more shared memory.", CHANGE
    if found := _BAD_ACCESS.search(text):
        said = f"{lead} its computation on the GPU failed: {found[0]}."
        return "gpu_program_error", said, _PROGRAM_ERROR, ENDED
    return _of_others(text, lead)


_ANOTHER_GPU = "Contact an operator. If it is started again, it may get another GPU."
_PROGRAM_ERROR = (
    "Usually the program or one of its libraries is the cause: with CUDA_LAUNCH_BLOCKING=1 the log names the line. "
    "Contact an operator if programs that worked before fail on this node."
)
_SEE_OTHERS = (
    "See the logs of its other processes at that time: usually one of them failed, or was busy with something else. "
    "If all of them were waiting, contact an operator: the network or NVLink between the GPUs may be the cause."
)


def _of_others(text: str, lead: str) -> Told | None:
    """Of a process of several: what it reports is the consequence of something that happened to another one."""
    if found := _NOT_JOINED.search(text):
        said = f"{lead} only {found[2]} of {found[3]} processes had joined after {found[1]} s."
        remedy = "Check that all of them use the same address, port and number of processes, and see the other logs."
        return "workers_not_joined", said, remedy, ENDED
    if found := _COLLECTIVE.search(text):
        said = f"{lead} it waited {int(found[2]) // 1000} s for its other processes (NCCL, {found[1]})."
        return "nccl_timeout", said, _SEE_OTHERS, ENDED
    if _COLLECTIVE_CUT.search(text):
        return "nccl_timeout", f"{lead} it waited too long for its other processes (NCCL).", _SEE_OTHERS, ENDED
    if _PEER_LOST.search(text):
        said = f"{lead} it lost the connection to one of its other processes."
        return "peer_lost", said, _SEE_OTHERS, ENDED
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
