"""What kubelets, container runtimes, registries, storage systems and programs say: see cases/situations.py.

Each case is named by its reason.
"""

from __future__ import annotations

from tests.workloads.cases.situations import NOT_YET, OVER, STUCK, Situation

TOLD = "kubelets/test_said_live::test_what_kubelets_say"
TELL, CHANGE, WAIT, LOG = "tell_operators", "change", "wait", "read_log"
NODE = r"said-\w+"
# An image of the catalog, and one that a person typed.
IMAGE, TYPED = r"docker\.io/library/python:3\.14-slim", r"registry\.exmaple\.org/vision/train:7"
OTHER_IMAGE = "Choose another image, and contact an operator"

OF_TYPED_IMAGES = {
    "image_not_pulled", "image_wrong_platform", "image_runs_as_root", "registry_unknown", "registry_limit",
    "registry_untrusted", "no_credentials",
}  # fmt: skip
# The volume of a run, by reason.
VOLUMES = {
    "volume_not_attached": "not-attached",
    "volume_denied": "denied",
    "volume_damaged": "damaged",
    "storage_driver_missing": "undriven",
    "node_volume_limit": "one-more",
    "volume_in_use": "in-use",
    "volume_not_mounted": "not-mounted",
}

MENDED = "runs when the operators have mended the node"
ANEW = "runs when the operators have mended the node and it is started again"
STORED = "runs when the operators have mended the storage"

SAYINGS: dict[str, Situation] = {
    # the volume
    "volume_not_attached": Situation(
        TOLD, "blocked", "volume_not_attached",
        rf"The storage system cannot attach the volume not-attached \(pvc-8f21\) to node {NODE}\.",
        STUCK, TELL, "the reason volume_not_attached", "node_volume_limit", then=STORED,
    ),
    "volume_denied": Situation(
        TOLD, "blocked", "volume_denied",
        rf"The storage system denied node {NODE} access to the volume denied \(pvc-4d70\)\.",
        STUCK, TELL, "the reason volume_denied", "volume_damaged", then=STORED,
    ),
    "volume_damaged": Situation(
        TOLD, "blocked", "volume_damaged",
        rf"The file system of the volume damaged \(pvc-4d70\) is damaged or unknown; node {NODE} does not mount it\.",
        STUCK, TELL, "the reason volume_damaged", "volume_denied", then=STORED,
    ),
    "storage_driver_missing": Situation(
        TOLD, "blocked", "storage_driver_missing",
        rf"Node {NODE} cannot mount the volume undriven \(pvc-4d70\): the storage driver efs\.csi\.aws\.com is not "
        r"running there\.",
        STUCK, TELL, "the reason storage_driver_missing", "volume_denied", then=STORED,
    ),
    "node_volume_limit": Situation(
        TOLD, "blocked", "node_volume_limit",
        rf"Node {NODE} has reached its limit of volumes\.",
        NOT_YET, WAIT, "when another volume is detached", "volume_not_attached",
        then="runs when another volume of the node is detached",
    ),
    "volume_in_use": Situation(
        TOLD, "blocked", "volume_in_use",
        r"The volume in-use is still in use on another node, by two-1-b\.",
        NOT_YET, WAIT, "Stop the workload that uses it, or wait", "volume_not_attached",
        then="runs when the other node has detached it",
    ),
    "volume_not_mounted": Situation(
        TOLD, "blocked", "volume_not_mounted",
        rf"Node {NODE} cannot mount the volume not-mounted \(pvc-8f21\)\.",
        STUCK, TELL, "the reason volume_not_mounted", "volume_not_attached", then=STORED,
    ),
    # the devices
    "device_driver_missing": Situation(
        TOLD, "blocked", "device_driver_missing",
        rf"Node {NODE} cannot prepare the devices: the DRA driver gpu\.nvidia\.com is not running there\.",
        STUCK, TELL, "the reason device_driver_missing", "devices_not_prepared", then=MENDED,
    ),
    "devices_not_prepared": Situation(
        TOLD, "blocked", "devices_not_prepared",
        rf"Node {NODE} cannot prepare the devices that were allocated to the pod\.",
        STUCK, TELL, "the reason devices_not_prepared", "device_driver_missing", then=MENDED,
    ),
    "gpu_driver_down": Situation(
        TOLD, "failed", "gpu_driver_down",
        rf"Node {NODE} cannot start it: its GPU driver is not loaded\.",
        OVER, TELL, "the reason gpu_driver_down", "gpu_lost", then=ANEW,
    ),
    "gpu_runtime_missing": Situation(
        TOLD, "failed", "gpu_runtime_missing",
        rf"Node {NODE} cannot start containers with a GPU: its NVIDIA container runtime is missing or not configured\.",
        OVER, TELL, "the reason gpu_runtime_missing", "gpu_not_injected", then=ANEW,
    ),
    "gpu_not_injected": Situation(
        TOLD, "failed", "gpu_not_injected",
        rf"Node {NODE} cannot give the container its GPU: the NVIDIA container toolkit of the node failed\.",
        OVER, TELL, "the reason gpu_not_injected", "gpu_runtime_missing", then=ANEW,
    ),
    "gpu_lost": Situation(
        TOLD, "failed", "gpu_lost",
        rf"Node {NODE} cannot access a GPU that it lists: the GPU is lost or was replaced\.",
        OVER, TELL, "the reason gpu_lost", "gpu_driver_down", then=ANEW,
    ),
    # the node
    "node_disk_full": Situation(
        TOLD, "blocked", "node_disk_full",
        rf"Node {NODE} has no disk space for the image {IMAGE}\.",
        STUCK, TELL, "the reason node_disk_full", "image_not_pulled", then=MENDED,
    ),
    "node_runtime_down": Situation(
        TOLD, "blocked", "node_runtime_down",
        rf"The container runtime of node {NODE} has not finished an earlier attempt to start it\.",
        NOT_YET, WAIT, "Contact an operator if this continues", "pod_not_set_up",
        then="runs when the container runtime responds",
    ),
    "pod_not_set_up": Situation(
        TOLD, "blocked", "pod_not_set_up",
        rf"Node {NODE} cannot set up the pod's network\.",
        STUCK, TELL, "the reason pod_not_set_up", "no_pod_address", then=MENDED,
    ),
    "no_pod_address": Situation(
        TOLD, "blocked", "no_pod_address",
        rf"Node {NODE} has no free IP address for the pod\.",
        NOT_YET, WAIT, "when a pod on the node ends", "pod_not_set_up",
        then="runs when another pod of the node has ended",
    ),
    # the image
    "image_not_pulled": Situation(
        TOLD, "blocked", "image_not_pulled",
        rf"Node {NODE} cannot pull the image {TYPED}: the moon is full\.",
        STUCK, CHANGE, "choose another one", "registry_unavailable",
        then="runs with an image that can be pulled",
    ),
    "bad_image_name": Situation(
        TOLD, "blocked", "bad_image_name",
        rf"{IMAGE} is not a valid image name\.",
        STUCK, CHANGE, OTHER_IMAGE, "image_not_pulled",
        then="runs with another image",
    ),
    "image_wrong_platform": Situation(
        TOLD, "blocked", "image_wrong_platform",
        rf"The image {TYPED} is not built for the CPU architecture of node {NODE}\.",
        STUCK, CHANGE, "Choose another image", "image_wrong_format",
        then="runs with an image for the processors of the node",
    ),
    "image_wrong_format": Situation(
        TOLD, "blocked", "image_wrong_format",
        rf"The image {IMAGE} has a format that node {NODE} no longer supports\.",
        STUCK, CHANGE, "another image", "image_wrong_platform",
        then="runs with an image of a current format",
    ),
    "image_runs_as_root": Situation(
        TOLD, "blocked", "image_runs_as_root",
        rf"The image {TYPED} runs as root, which this cluster does not allow\.",
        STUCK, CHANGE, "Choose another image", "container_config",
        then="runs with an image of another user",
    ),
    "image_not_allowed": Situation(
        TOLD, "blocked", "image_not_allowed",
        rf"The registry denied access to the image {IMAGE}: it requires authentication, or the repository does not "
        r"exist\.",
        STUCK, CHANGE, OTHER_IMAGE, "no_credentials",
        then="runs with another image",
    ),
    "no_credentials": Situation(
        TOLD, "blocked", "no_credentials",
        rf"The registry registry\.exmaple\.org denied anonymous access to the image {TYPED}, and the team has no "
        r"credentials for it; or the repository does not exist\.",
        STUCK, CHANGE, "An owner or manager can add credentials under Team, Images", "image_not_allowed",
        then="runs with another image",
    ),
    "registry_unknown": Situation(
        TOLD, "blocked", "registry_unknown",
        rf"Node {NODE} cannot find the registry registry\.exmaple\.org of the image {TYPED}\.",
        STUCK, CHANGE, "Check the image name", "registry_unavailable",
        then="runs with an image of a registry that exists",
    ),
    "registry_unavailable": Situation(
        TOLD, "blocked", "registry_unavailable",
        rf"The registry of the image {IMAGE} does not respond to node {NODE}, which retries\.",
        NOT_YET, WAIT, "It starts automatically", "registry_unknown",
        then="runs when the registry responds",
    ),
    "registry_limit": Situation(
        TOLD, "blocked", "registry_limit",
        rf"The registry of the image {TYPED} rate-limits pulls from the cluster; node {NODE} retries\.",
        NOT_YET, WAIT, "Credentials may raise its limit", "registry_unavailable",
        then="runs when the registry allows the pull",
    ),
    "registry_untrusted": Situation(
        TOLD, "blocked", "registry_untrusted",
        rf"Node {NODE} does not trust the registry of the image {TYPED}: its certificate is missing or not valid\.",
        STUCK, TELL, "the reason registry_untrusted", "registry_unavailable",
        then="runs when the operators have added the certificate to the node",
    ),
    "container_config": Situation(
        TOLD, "blocked", "container_config",
        rf"Node {NODE} cannot create the container: cannot make subPath\.",
        STUCK, TELL, "the reason container_config", "image_runs_as_root", then=MENDED,
    ),
    # the program
    "killed": Situation(
        TOLD, "failed", "killed",
        r"It was killed \(signal 9, exit code 137\); the cluster reports no cause\.",
        OVER, LOG, "See its last lines.", "terminated",
        then="a log says what it did last", facts={"exit_code": 137},
    ),
    "out_of_gpu_memory": Situation(
        TOLD, "failed", "out_of_gpu_memory",
        r"Its last log lines report that GPU memory was full: CUDA out of memory\. Tried to allocate 20\.00 GiB\.",
        OVER, CHANGE, "Use smaller batches or a smaller model, or a class with more GPU memory", "bus_error",
        then="runs with a command for smaller batches", facts={"exit_code": 1},
    ),
    "command_not_found": Situation(
        TOLD, "failed", "command_not_found",
        r"The command was not found in the image \(exit code 127\)\.",
        OVER, CHANGE, "Check the command", "command_not_executable",
        then="runs with another command", facts={"exit_code": 127},
    ),
    "bus_error": Situation(
        TOLD, "failed", "bus_error",
        r"It crashed with a bus error \(signal 7, exit code 135\)\.",
        OVER, CHANGE, "/dev/shm", "terminated",
        then="runs with more shared memory", facts={"exit_code": 135},
    ),
    "terminated": Situation(
        TOLD, "failed", "terminated",
        r"It was terminated \(signal 15, exit code 143\)\.",
        OVER, LOG, "See its last lines.", "bus_error",
        then="a log says why; started again unchanged, it ends in the same way", facts={"exit_code": 143},
    ),
    "gpu_fault": Situation(
        TOLD, "failed", "gpu_fault",
        rf"Its last log lines report that a GPU of node {NODE} is faulty: uncorrectable ECC error\.",
        OVER, TELL, "the reason gpu_fault", "gpu_not_visible", then=ANEW, facts={"exit_code": 1},
    ),
    "gpu_program_error": Situation(
        TOLD, "failed", "gpu_program_error",
        r"Its last log lines report that its computation on the GPU failed: an illegal memory access was encountered\.",
        OVER, LOG, "See its last lines.", "gpu_fault",
        then="a log says where; what is wrong with the program nobody else can mend", facts={"exit_code": 1},
    ),
    "nccl_timeout": Situation(
        TOLD, "failed", "nccl_timeout",
        r"Its last log lines report that it waited 600 s for its other processes \(NCCL, ALLREDUCE\)\.",
        OVER, LOG, "See its last lines.", "peer_lost",
        then="the logs of the others say which one failed", facts={"exit_code": 1},
    ),
    "peer_lost": Situation(
        TOLD, "failed", "peer_lost",
        r"Its last log lines report that it lost the connection to one of its other processes\.",
        OVER, LOG, "See its last lines.", "nccl_timeout",
        then="the logs of the others say which one failed", facts={"exit_code": 1},
    ),
    "workers_not_joined": Situation(
        TOLD, "failed", "workers_not_joined",
        r"Its last log lines report that only 1 of 2 processes had joined after 601 s\.",
        OVER, LOG, "See its last lines.", "nccl_timeout",
        then="the logs of the others say which one did not join", facts={"exit_code": 1},
    ),
    "gpu_not_visible": Situation(
        TOLD, "failed", "gpu_not_visible",
        rf"Its last log lines report that no GPU is accessible on node {NODE}\.",
        OVER, TELL, "the reason gpu_not_visible", "gpu_fault", then=ANEW, facts={"exit_code": 1},
    ),
    "gpu_not_requested": Situation(
        TOLD, "failed", "gpu_not_requested",
        r"Its last log lines report that no GPU is accessible\. Its class gives it none\.",
        OVER, CHANGE, "Choose a class with GPUs", "gpu_not_visible",
        then="runs on a class with GPUs", facts={"exit_code": 1},
    ),
    "image_needs_newer_driver": Situation(
        TOLD, "failed", "image_needs_newer_driver",
        rf"The image requires CUDA 12\.8 or later, which the GPU driver of node {NODE} lacks\.",
        OVER, CHANGE, "earlier CUDA version", "gpu_driver_down",
        then="runs with an image for an earlier CUDA version",
    ),
    "image_wrong_gpu": Situation(
        TOLD, "failed", "image_wrong_gpu",
        rf"The image requires compute capability 9\.0 or later, which the GPU of node {NODE} does not have\.",
        OVER, CHANGE, "built for this GPU", "image_needs_newer_driver",
        then="runs with an image for this GPU model", facts={"exit_code": 128},
    ),
    "command_not_executable": Situation(
        TOLD, "failed", "command_not_executable",
        r"The command is not executable \(exit code 126\)\.",
        OVER, CHANGE, "Check the command", "working_directory",
        then="runs with another command", facts={"exit_code": 126},
    ),
    "working_directory": Situation(
        TOLD, "failed", "working_directory",
        r"The image's working directory /root/app cannot be used\.",
        OVER, CHANGE, "another image", "command_not_executable",
        then="runs with an image with another working directory", facts={"exit_code": 128},
    ),
    # the repository
    "clone_failed": Situation(
        TOLD, "failed", "clone_failed",
        r"The repository could not be cloned \(git exit code 128\)\.",
        OVER, LOG, "See its last lines.", "repository_unreachable",
        then="a log says why", facts={"exit_code": 128, "container": "clone"},
    ),
    "clone_out_of_memory": Situation(
        TOLD, "failed", "clone_out_of_memory",
        r"Cloning the repository exceeded its host memory limit of 4 GiB and was killed \(OOMKilled\)\.",
        OVER, CHANGE, "It had 4 GiB.", "clone_failed",
        then="runs with more memory", facts={"exit_code": 137, "container": "clone", "memory_gib": 4},
    ),
    "no_git": Situation(
        TOLD, "failed", "no_git",
        r"The image has no git to clone the repository\.",
        OVER, CHANGE, "another image", "command_not_executable",
        then="runs with an image with git", facts={"exit_code": 127, "container": "clone"},
    ),
    "repository_not_found": Situation(
        TOLD, "failed", "repository_not_found",
        r"The repository https://git\.example\.org/a\.git does not exist\.",
        OVER, CHANGE, "Check the address of the repository", "repository_private",
        then="runs with another address", facts={"exit_code": 128, "container": "clone"},
    ),
    "repository_private": Situation(
        TOLD, "failed", "repository_private",
        r"The repository requires authentication at https://git\.example\.org, or does not exist there\.",
        OVER, CHANGE, "public", "repository_unreachable",
        then="runs with a public repository", facts={"exit_code": 128, "container": "clone"},
    ),
    "repository_unreachable": Situation(
        TOLD, "failed", "repository_unreachable",
        r"The repository is not reachable: Could not resolve host: exmaple\.org\.",
        OVER, CHANGE, "Check its address", "repository_private",
        then="runs with another address", facts={"exit_code": 128, "container": "clone"},
    ),
    "reference_not_found": Situation(
        TOLD, "failed", "reference_not_found",
        r"The repository has no branch or tag v9\.",
        OVER, CHANGE, "Check the name of the branch or tag", "repository_private",
        then="runs with a branch that exists", facts={"exit_code": 128, "container": "clone"},
    ),
    "kubelet_silent": Situation(
        TOLD, "blocked", "kubelet_silent",
        rf"Node {NODE} got the pod at \d+ \w+ \d+, \d\d:\d\d and has reported nothing about it since\.",
        STUCK, TELL, "the reason kubelet_silent", "what waits on the same node, a moment before",
        then="runs when the kubelet of the node responds",
    ),
}  # fmt: skip

# Reported by the node, beside what the kubelet tells of the pod.
OF_NODES: dict[str, Situation] = {
    "node_gpu_error": Situation(
        "kubelets/test_node_errors_live::test_an_error_of_a_gpu_on_the_node_is_told", "failed", "node_gpu_error",
        rf"It ended with exit code 1\. While it ran, node {NODE} reported XID 79 \(GPU has fallen off the bus\)\.",
        OVER, TELL, "the reason node_gpu_error", "out_of_gpu_memory",
        then="runs when the operators have mended the node and it is started again", facts={"exit_code": 1},
    ),
}  # fmt: skip
