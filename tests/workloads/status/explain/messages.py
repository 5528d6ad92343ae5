"""Messages of kubelets, container runtimes, NVIDIA's toolkit and plugins, registries and storage.

Each has the code of its cause, who can act, and a part of the step that helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.workloads.cases.problems import at_node, disrupted, ended, pulled_in_vain, rejected, told_of
from workloads.core.observation import Observation

YOU, OPERATORS, NOBODY = "you", "operators", "nobody"


@dataclass(frozen=True)
class Message:
    """`place` makes the observation of the text; `step` is a part of the remedy, `says` of the sentence."""

    place: Any
    text: str
    reason: str
    who: str
    step: str
    says: str = ""

    @property
    def seen(self) -> Observation:
        found: Observation = self.place(self.text)
        return found


def never_started(text: str) -> Observation:
    start = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
    return ended(128, "StartError", f"{start}{text}: unknown")


def not_created(text: str) -> Observation:
    return at_node("CreateContainerError", text)


def not_run(text: str) -> Observation:
    return at_node("RunContainerError", text)


def refused(text: str) -> Observation:
    return rejected("UnexpectedAdmissionError", f"Pod was rejected: {text}, which is unexpected")


def sandbox(text: str) -> Observation:
    return told_of("FailedCreatePodSandBox", f"Failed to create pod sandbox: rpc error: code = Unknown desc = {text}")


def unmounted(text: str) -> Observation:
    return told_of("FailedMount", text)


def unattached(text: str) -> Observation:
    return told_of("FailedAttachVolume", text)


def unprepared(text: str) -> Observation:
    return told_of("FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {text}")


def pulled(text: str) -> Observation:
    return pulled_in_vain(f'failed to resolve reference "registry.example.org/minimal:1": {text}')


def logged(text: str) -> Observation:
    return ended(1, message=f"Traceback (most recent call last):\n{text}\n")


def evicted(text: str) -> Observation:
    return disrupted("TerminationByKubelet", text, pod_reason="Evicted")


def not_let_in(text: str) -> Observation:
    return rejected("Evicted", f"Pod was rejected: {text}")


HOOK = (
    "runc create failed: unable to start container process: error during container init: error running prestart hook "
    "#0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: "
)
OLD_HOOK = (
    "container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: Running "
    "hook #0:: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: "
)
CDI = (
    "could not apply required modification to OCI specification: error modifying OCI spec: failed to inject CDI "
    "devices: unresolvable CDI devices nvidia.com/gpu=GPU-e78e68c0"
)
NODE = "node has to be repaired"
OPERATOR = "Contact an operator"
IF_AGAIN = "If it happens again, contact an operator."
MORE_MEMORY = "more GPU memory per unit"

DEVICES = [
    Message(never_started, f"{HOOK}initialization error: nvml error: driver not loaded", "gpu_driver_down", OPERATORS,
            OPERATOR, "its GPU driver is not loaded"),
    Message(never_started, f"{OLD_HOOK}initialization error: nvml error: driver not loaded", "gpu_driver_down",
            OPERATORS, OPERATOR),
    Message(never_started, f"{HOOK}initialization error: nvml error: driver/library version mismatch",
            "gpu_driver_down", OPERATORS, OPERATOR, "does not match its libraries"),
    Message(never_started, f"{OLD_HOOK}initialization error: driver error: failed to process request",
            "gpu_driver_down", OPERATORS, OPERATOR, "does not respond"),
    Message(never_started, f"{OLD_HOOK}initialization error: cuda error: unknown error", "gpu_driver_down", OPERATORS,
            OPERATOR),
    Message(never_started, f"{HOOK}initialization error: load library failed: libnvidia-ml.so.1: cannot open shared "
            "object file: no such file or directory", "gpu_driver_down", OPERATORS, OPERATOR, "is not installed"),
    Message(not_run, f"failed to create task: {HOOK}initialization error: nvml error: driver not loaded",
            "gpu_driver_down", OPERATORS, OPERATOR),
    Message(never_started, f"{HOOK}requirement error: unsatisfied condition: cuda>=12.8, please update your driver to "
            "a newer version, or use an earlier cuda container", "image_needs_newer_driver", YOU,
            "earlier CUDA version", "The image requires CUDA 12.8 or later"),
    Message(never_started, f"{OLD_HOOK}requirement error: unsatisfied condition: cuda >= 9.0",
            "image_needs_newer_driver", YOU, "earlier CUDA version", "CUDA 9.0 or later"),
    Message(never_started, f"{HOOK}requirement error: unsatisfied condition: arch>=9.0", "image_wrong_gpu", YOU,
            "built for this GPU", "requires compute capability 9.0 or later, which the GPU of node a100-1"),
    Message(never_started, f"{HOOK}device error: GPU-12: unknown device id", "gpu_lost", OPERATORS, OPERATOR),
    Message(never_started, f"{HOOK}ldcache error: process /sbin/ldconfig failed with error code: 1",
            "gpu_not_injected", OPERATORS, OPERATOR),
    Message(never_started, f"{HOOK}mount error: file creation failed: /run/containerd/rootfs/dev/nvidia0",
            "gpu_not_injected", OPERATORS, OPERATOR),
    Message(never_started, CDI, "gpu_not_injected", OPERATORS, OPERATOR, "(CDI)"),
    Message(not_created, "failed to create containerd container: CDI device injection failed: unresolvable CDI devices "
            "nvidia.com/gpu=0", "gpu_not_injected", OPERATORS, OPERATOR),
    Message(never_started, 'exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
            "gpu_runtime_missing", OPERATORS, OPERATOR),
    Message(sandbox, 'failed to get sandbox runtime: no runtime for "nvidia" is configured', "gpu_runtime_missing",
            OPERATORS, OPERATOR),
    Message(sandbox, 'unable to get OCI runtime for sandbox "18073b": no runtime for "nvidia" is configured',
            "gpu_runtime_missing", OPERATORS, OPERATOR),
    Message(sandbox, 'RuntimeHandler "nvidia" not supported', "gpu_runtime_missing", OPERATORS, OPERATOR),
    Message(refused, "Allocate failed due to rpc error: code = Unknown desc = invalid request: maximum request size "
            "for shared resources is 1; found 2", "share_limit", YOU, "Change it to 1 unit",
            "at most 1 unit of a shared GPU; 2 are requested"),
    Message(refused, "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
            "nvidia.com/mig-1g.5gb", "device_unavailable", NOBODY, "contact an operator",
            "none of its nvidia.com/mig-1g.5gb is healthy"),
    Message(refused, "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, "
            "Available: 0", "device_unavailable", NOBODY, "contact an operator", "1 requested, 0 available"),
    Message(refused, "Allocate failed due to can't allocate unregistered device nvidia.com/gpu", "device_plugin_down",
            OPERATORS, IF_AGAIN, "the device plugin for nvidia.com/gpu is not running there"),
    Message(refused, "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code "
            "= Unknown desc = Unable to retrieve list of available devices: error creating nvml.Device 5: nvml: GPU is "
            "lost", "gpu_lost", OPERATORS, IF_AGAIN),
    Message(refused, "Allocate failed due to device plugin GetPreferredAllocation; unable to get device link "
            "information: error calling nvml.Init", "gpu_driver_down", OPERATORS, IF_AGAIN),
    Message(refused, "Allocate failed due to rpc error: code = Unavailable desc = connection error: desc = "
            '"transport: Error while dialing: dial unix nvidia-gpu.sock: connect: connection refused"',
            "device_plugin_down", OPERATORS, IF_AGAIN, "does not respond"),
    Message(unprepared, "prepare dynamic resources: DRA driver gpu.nvidia.com is not registered",
            "device_driver_missing", OPERATORS, OPERATOR, "the DRA driver gpu.nvidia.com is not running"),
    Message(unprepared, "NodePrepareResources failed for ResourceClaim team-a/one: error preparing devices: timed out",
            "devices_not_prepared", OPERATORS, OPERATOR),
]  # fmt: skip

PROGRAMS = [
    Message(logged, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 79 GiB",
            "out_of_gpu_memory", YOU, MORE_MEMORY),
    Message(logged, "RuntimeError: CUDA error: out of memory", "out_of_gpu_memory", YOU, MORE_MEMORY),
    Message(logged, "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", "out_of_gpu_memory", YOU,
            MORE_MEMORY),
    Message(logged, "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 21474836480 bytes.",
            "out_of_gpu_memory", YOU, MORE_MEMORY),
    Message(logged, "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY", "out_of_gpu_memory", YOU,
            MORE_MEMORY),
    Message(logged, "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory",
            "out_of_gpu_memory", YOU, MORE_MEMORY),
    Message(logged, "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
            "out_of_gpu_memory", YOU, MORE_MEMORY),
    Message(logged, "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
            "image_needs_newer_driver", YOU, "earlier CUDA version"),
    Message(logged, "CUDA driver version is insufficient for CUDA runtime version", "image_needs_newer_driver", YOU,
            "earlier CUDA version"),
    Message(logged, "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "image_wrong_gpu", YOU, "built for this GPU"),
    Message(logged, "RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu_fault", OPERATORS, OPERATOR,
            "uncorrectable ECC error"),
    Message(logged, "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "gpu_fault", OPERATORS, OPERATOR, "XID 79 (GPU has fallen off the bus)."),
    Message(logged, "RuntimeError: CUDA error: an illegal memory access was encountered", "gpu_program_error", YOU,
            "CUDA_LAUNCH_BLOCKING=1", "an illegal memory access"),
    Message(logged, "RuntimeError: CUDA error: device-side assert triggered", "gpu_program_error", YOU,
            "the program or one of its libraries"),
    # An XID of a program is no fault of the GPU, and the xid of a database is none at all.
    Message(logged, "NVRM: Xid (PCI:0000:3b:00): 31, pid=93\nCUDA_ERROR_ILLEGAL_ADDRESS", "gpu_program_error", YOU, ""),
    Message(logged, "psycopg.errors.SerializationFailure: xid 732 could not be serialized", "crashed", YOU, "log"),
    Message(logged, "[rank4]:[E321 02:07:08.414640780 ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, "
            "Timeout(ms)=600000) ran for 600067 milliseconds before timing out.", "nccl_timeout", YOU,
            "the logs of its other processes", "it waited 600 s for its other processes (NCCL, ALLREDUCE)."),
    Message(logged, "[rank4]:[E1016 03:31:38.929241154 ProcessGroupNCCL.cpp:621] [Rank 4] Some NCCL operations have "
            "failed or timed out.", "nccl_timeout", YOU, "NVLink", "it waited too long for its other processes"),
    Message(logged, "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process "
            "exited or there was a network error, NCCL version 2.21.5", "peer_lost", YOU, "one of them failed"),
    Message(logged, "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.2.3]:36712",
            "peer_lost", YOU, "one of them failed"),
    Message(logged, "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients "
            "joined.", "workers_not_joined", YOU, "the same address, port",
            "only 1 of 2 processes had joined after 601 s"),
    # The cause, and not what follows from it.
    Message(logged, "CUDA error: out of memory\nncclRemoteError: A call failed possibly due to a network error",
            "out_of_gpu_memory", YOU, MORE_MEMORY),
    Message(logged, "Failed to initialize NVML: Unknown Error", "gpu_not_visible", OPERATORS, "contact an operator"),
    Message(logged, "RuntimeError: No CUDA GPUs are available", "gpu_not_visible", OPERATORS, "contact an operator"),
    Message(logged, "RuntimeError: Found no NVIDIA driver on your system.", "gpu_not_visible", OPERATORS,
            "contact an operator"),
    Message(logged, "RuntimeError: DataLoader worker (pid 93) is killed by signal: Bus error. It is possible that "
            "dataloader's workers are out of shared memory.", "bus_error", YOU, "shared memory"),
    Message(never_started, 'runc create failed: unable to start container process: exec: "/start.sh": permission '
            "denied", "command_not_executable", YOU, "Check the command"),
    Message(never_started, "runc create failed: unable to start container process: exec /start.sh: no such file or "
            "directory", "command_not_found", YOU, "Check the command", "The command /start.sh"),
    Message(never_started, 'runc create failed: unable to start container process: exec: "python": executable file '
            "not found in $PATH", "command_not_found", YOU, "Check the command", "The command python"),
    Message(never_started, "runc create failed: unable to start container process: exec /usr/bin/python: exec format "
            "error", "image_wrong_platform", YOU, "another image"),
    Message(logged, "exec /usr/bin/python: exec format error", "image_wrong_platform", YOU, "another image"),
    Message(never_started, 'runc create failed: unable to start container process: error during container init: chdir '
            'to cwd ("/root/app") set in config.json failed: permission denied', "working_directory", YOU,
            "another image", "/root/app"),
]  # fmt: skip

ON_NODES = [
    Message(not_created, 'failed to reserve container name "one": name "one" is reserved for "818fcf"',
            "node_runtime_down", NOBODY, OPERATOR),
    Message(not_created, "context deadline exceeded", "node_runtime_down", NOBODY, OPERATOR),
    Message(sandbox, 'connection error: desc = "transport: Error while dialing dial unix '
            '/run/containerd/containerd.sock: connect: connection refused"', "node_runtime_down", NOBODY, OPERATOR),
    Message(sandbox, 'failed to reserve sandbox name "one_0": name "one_0" is reserved for "62d706"',
            "node_runtime_down", NOBODY, OPERATOR),
    Message(sandbox, 'failed to setup network for sandbox "42bf": failed to allocate for range 0: no IP addresses '
            "available in range set: 10.60.28.1-10.60.28.254", "no_pod_address", NOBODY, OPERATOR),
    Message(sandbox, 'failed to setup network for sandbox "42bf": plugin type="aws-cni" failed (add): add cmd: failed '
            "to assign an IP address to container", "no_pod_address", NOBODY, OPERATOR),
    Message(sandbox, 'failed to setup network for sandbox "42bf": plugin type="calico" failed (add): stat '
            "/var/lib/calico/nodename: no such file or directory", "pod_not_set_up", OPERATORS, OPERATOR, "network"),
    Message(sandbox, "failed to get sandbox image: failed to pull image registry.k8s.io/pause:3.9", "pod_not_set_up",
            OPERATORS, OPERATOR, "cannot set up the pod."),
    Message(evicted, "The node was low on resource: pids. Threshold quantity: 3194, available: 22. ", "evicted", NOBODY,
            "", "process ids (22 left)"),
    Message(evicted, "The node was low on resource: inodes. Threshold quantity: 5, available: 4. ", "evicted", NOBODY,
            "", "(4 left)"),
    Message(evicted, 'Container notebook exceeded its local ephemeral storage limit "1Gi". ', "too_many_files", YOU,
            "write to a volume", "more than 1 GiB"),
    Message(evicted, "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ", "too_many_files",
            YOU, "write to a volume", "more than 2 GiB"),
    Message(not_let_in, "The node had condition: [DiskPressure]. ", "node_pressure", NOBODY, "contact an operator",
            "it reports DiskPressure"),
    Message(not_let_in, "The node had condition: [MemoryPressure, PIDPressure]. ", "node_pressure", NOBODY,
            "contact an operator", "MemoryPressure and PIDPressure"),
]  # fmt: skip

IMAGES = [
    Message(pulled, 'failed to do request: Head "https://registry.example.org/v2/": tls: failed to verify certificate: '
            "x509: certificate signed by unknown authority", "registry_untrusted", OPERATORS, OPERATOR),
    Message(pulled, 'failed to do request: Head "https://registry.example.org/v2/": http: server gave HTTP response to '
            "HTTPS client", "registry_untrusted", OPERATORS, OPERATOR),
    Message(pulled, 'failed to do request: Head "https://registry.example.org/v2/": net/http: TLS handshake timeout',
            "registry_unavailable", NOBODY, OPERATOR),
    Message(pulled, "failed to authorize: failed to fetch oauth token: unexpected status: 403 Forbidden",
            "image_not_allowed", YOU, "another image"),
    Message(pulled, "unexpected status from HEAD request: 504 Gateway Timeout: i/o timeout", "registry_unavailable",
            NOBODY, OPERATOR),
    Message(pulled, "manifest unknown: manifest unknown", "image_not_found", YOU, "another image"),
    Message(pulled, 'media type "application/vnd.docker.distribution.manifest.v1+prettyjws" is no longer supported '
            "since containerd v2.1", "image_wrong_format", YOU, "another image"),
    Message(pulled, "short-name resolution enforced but cannot prompt without a TTY", "bad_image_name", YOU,
            "another image", "its name has no registry"),
]  # fmt: skip

STORAGE = [
    Message(unmounted, 'MountVolume.MountDevice failed for volume "pvc-4d70" : kubernetes.io/csi: '
            "attacher.MountDevice failed to create newCsiDriverClient: driver name efs.csi.aws.com not found in the "
            "list of registered CSI drivers", "storage_driver_missing", OPERATORS, OPERATOR,
            "the storage driver efs.csi.aws.com is not running there"),
    Message(unmounted, 'MountVolume.SetUp failed for volume "pvc-4d70" : mount failed: exit status 32 Output: '
            "mount.nfs: access denied by server while mounting nfs.example.org:/data", "volume_denied", OPERATORS,
            OPERATOR, "pvc-4d70"),
    Message(unmounted, 'MountVolume.MountDevice failed for volume "pvc-4d70" : rpc error: code = Internal desc = mount '
            "failed: exit status 32: wrong fs type, bad option, bad superblock on /dev/sdb", "volume_damaged",
            OPERATORS, OPERATOR, "pvc-4d70"),
    Message(unmounted, "Unable to attach or mount volumes: unmounted volumes=[home], unattached volumes=[home]: timed "
            "out waiting for the condition", "volume_not_mounted", OPERATORS, OPERATOR),
    Message(unattached, 'AttachVolume.Attach failed for volume "pvc-4d70" : rpc error: code = Internal desc = '
            "Could not attach volume to node: attachment limit exceeded", "node_volume_limit", NOBODY, OPERATOR),
    Message(unattached, 'AttachVolume.Attach failed for volume "pvc-4d70" : rpc error: code = DeadlineExceeded desc = '
            "context deadline exceeded", "volume_not_attached", OPERATORS, OPERATOR, "pvc-4d70"),
]  # fmt: skip

MESSAGES = [*DEVICES, *PROGRAMS, *ON_NODES, *IMAGES, *STORAGE]
