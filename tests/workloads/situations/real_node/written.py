"""What a real kubelet, containerd and runc say on the node real-1: see cases/situations.py.

Most are those that a scripted kubelet says too, with the same expectation: only node and image differ.
"""

from __future__ import annotations

from dataclasses import replace

from tests.workloads.cases.situations import OVER, STUCK, Situation
from tests.workloads.cases.situations_nodes import ON_NODES
from tests.workloads.situations.kubelets import written

JOBS, PULLS = "real_node/test_kubelet::test_what_programs_do", "real_node/test_kubelet::test_what_registries_answer"
REGISTRY = "registry.real.node"


def _here(reason: str, live: str) -> Situation:
    said = written.SAYINGS[reason]
    sentence = said.sentence.replace(written.NODE, "real-1").replace(written.TYPED, rf"{REGISTRY}/team/[\w-]+:1")
    sentence = sentence.replace(written.IMAGE, rf"{REGISTRY}/team/[\w-]+:1").replace(
        r"registry\.exmaple\.org", REGISTRY
    )
    return replace(said, live=live, sentence=sentence)


def _job(reason: str, **more: object) -> Situation:
    return replace(_here(reason, JOBS), **more)  # type: ignore[arg-type]


# by the name of the workload
PROGRAMS: dict[str, Situation] = {
    "not-in-image": Situation(
        JOBS, "failed", "command_not_found",
        r"The command trian was not found in the image\.",
        OVER, "change", "Check the command", "script-not-found",
    ),
    "script-not-found": _job("command_not_found"),
    "no-program": Situation(
        JOBS, "failed", "command_not_executable",
        r"The command /etc/hostname is not executable\.",
        OVER, "change", "Check the command", "not-in-image",
    ),
    "crash": replace(ON_NODES["crash"], live=JOBS),
    "memory": Situation(
        JOBS, "failed", "out_of_memory",
        r"It exceeded its host memory limit of 1 GiB and was killed \(OOMKilled\)\. This is not GPU memory\.",
        OVER, "change", "It had 1 GiB.", "killed",
    ),
    "killed": _job("killed"),
    "terminated": _job("terminated"),
    "bus-error": _job("bus_error"),
    "gpu-memory": _job("out_of_gpu_memory"),
    "no-gpu-seen": _job("gpu_not_visible"),
    "gpu-fault": _job("gpu_fault"),
    "old-driver": _job(
        "image_needs_newer_driver", facts={"exit_code": 1},
        sentence=r"Its last log lines report that the image needs a newer GPU driver than that of node real-1\.",
    ),
    "wrong-gpu": _job(
        "image_wrong_gpu", facts={"exit_code": 1},
        sentence=r"Its last log lines report that its programs are not built for this GPU model\.",
    ),
    "unreachable": _job("repository_unreachable"),
}  # fmt: skip

# Registries of their own: one with a closed port, one with a certificate that nobody signed.
HOSTS = {"closed": "closed.real.node", "untrusted": "untrusted.real.node"}


def _of(host: str, reason: str) -> Situation:
    found = _here(reason, PULLS)
    return replace(found, sentence=found.sentence.replace(REGISTRY, host))


BLOCKED: dict[str, Situation] = {
    "missing": Situation(
        PULLS, "blocked", "image_not_found",
        rf"The image {REGISTRY}/team/missing:1 was not found in its registry; node real-1 retries\.",
        STUCK, "change", "Check the image name and tag", "private",
    ),
    "private": _here("no_credentials", PULLS),
    "limited": _here("registry_limit", PULLS),
    "down": _here("registry_unavailable", PULLS),
    "closed": _of(HOSTS["closed"], "registry_unavailable"),
    "untrusted": _of(HOSTS["untrusted"], "registry_untrusted"),
    "other-cpu": _here("image_wrong_platform", PULLS),
    "denied": _here("no_credentials", PULLS),
    "wrong-login": replace(
        ON_NODES["credentials refused"], live=PULLS,
        sentence=(
            rf"The registry {REGISTRY} denied access to the image {REGISTRY}/team/wrong-login:1 with the team's "
            r"credentials: they are wrong, expired or have no permission, or the repository does not exist\."
        ),
    ),
}  # fmt: skip

DEVICES = "real_node/test_devices::"
UNHEALTHY = Situation(
    f"{DEVICES}test_devices_that_are_not_healthy_are_not_offered", "queued", "no_units_offered",
    r"No units of Real are allocatable: its only schedulable node reports 0 of 8: the device plugin there has "
    r"stopped, or all are unhealthy\.",
    STUCK, "tell_operators", "reports 0", "crash", then="runs when the devices are healthy", facts={"nodes": 1},
)  # fmt: skip
LOST = replace(
    ON_NODES["node lost"], live=f"{DEVICES}test_a_node_whose_kubelet_is_silent_is_lost",
    sentence=r"Node real-1 no longer responds; the state of the run is unknown\.",
)  # fmt: skip

STORAGE = "real_node/test_storage::test_why_a_volume_is_not_provisioned"
NOT_PROVISIONED: dict[str, Situation] = {
    "shared": Situation(
        STORAGE, "blocked", "volume_unbound",
        r"Waiting for the volume shared: the storage system could not provision it on node real-1 \(storage class "
        r"local-path\)\.",
        STUCK, "tell_operators", "volume_unbound", "gone", then="runs when the operators have provided it",
    ),
    "gone": Situation(
        STORAGE, "blocked", "volume_unbound",
        r"Waiting for the volume gone: the storage system has not provisioned it yet; its storage class gone does not "
        r"exist in the cluster\.",
        STUCK, "tell_operators", "volume_unbound", "shared", then="runs when the operators have provided it",
    ),
}  # fmt: skip
