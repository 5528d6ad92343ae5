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
}  # fmt: skip
